//! A connection for every transaction, between two engines over loopback.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped prints it"
)]

mod common;
mod exchange;

use common::{LOCALHOST, data_address, engine, round, wait, workload};
use ew_engine::RoundSpec;
use ew_model::record::EndRecord;
use ew_model::workload::{Limit, Pace, Workload, WorkloadKind};
use exchange::{assert_in_order, ends, exchange, has_ipv6_loopback, start_pair};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const SECOND_NS: u64 = 1_000_000_000;
/// States of /proc/net/tcp (include/net/tcp_states.h).
const TIME_WAIT: &str = "06";
const LISTEN: &str = "0A";

#[test]
fn a_stream_that_is_alone() {
    let (sender, receiver) = exchange(LOCALHOST, &round(connections(1, 64)));
    check(&sender, &receiver);
}

#[test]
fn streams_that_share_a_thread() {
    let shared = Workload {
        threads: Some(1),
        ..connections(6, 64)
    };
    let (sender, receiver) = exchange(LOCALHOST, &round(shared));
    check(&sender, &receiver);
    assert!(sender.streams.iter().all(|s| s.bytes > 0));
}

#[test]
fn over_ipv6() {
    if has_ipv6_loopback() {
        let address = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let (sender, receiver) = exchange(address, &round(connections(3, 64)));
        check(&sender, &receiver);
    }
}

#[test]
fn over_multipath_tcp_where_there_is_some() {
    for streams in [1, 3] {
        let mut multipath = connections(streams, 64);
        multipath.socket.mptcp = true;
        multipath.threads = Some(1);
        let (sender, receiver) = exchange(LOCALHOST, &round(multipath));
        check(&sender, &receiver);
    }
}

#[test]
fn requests_too_short_for_a_cookie() {
    let (sender, receiver) = exchange(LOCALHOST, &round(connections(1, 1)));
    check(&sender, &receiver);
}

#[test]
fn messages_of_many_segments() {
    let long = Workload {
        response_bytes: Some(2_000_001),
        ..connections(2, 300_003)
    };
    let (sender, receiver) = exchange(LOCALHOST, &round(long));
    check(&sender, &receiver);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let paced = Workload {
        pace: Pace {
            requests_per_sec: Some(1000.0),
            ..Pace::default()
        },
        ..connections(2, 64)
    };
    for threads in [1, 2] {
        let paced = Workload {
            threads: Some(threads),
            ..paced.clone()
        };
        let (sender, receiver) = exchange(LOCALHOST, &round(paced));
        check(&sender, &receiver);
        let latency = sender.latency.unwrap();
        // 300 ms, and what may have been late at the window's start.
        assert!(latency.times.count() <= 360, "{}", latency.times.count());
        let uncorrected = latency.uncorrected.unwrap();
        assert_eq!(uncorrected.count(), latency.times.count());
        assert!(uncorrected.sum_ns <= latency.times.sum_ns);
    }
}

#[test]
fn a_limit_ends_the_flow() {
    let limited = Workload {
        limit: Some(Limit::Messages(20)),
        ..connections(1, 64)
    };
    let spec = RoundSpec {
        window_ns: 2 * SECOND_NS,
        ..round(limited)
    };
    let (sender, _) = exchange(LOCALHOST, &spec);
    // One may have begun before the window.
    assert!((20..=21).contains(&sender.transactions.unwrap()));
    assert!(sender.window_ns < 2 * SECOND_NS);
}

#[test]
fn no_port_is_left_behind() {
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 71));
    for _ in 0..2 {
        let spec = RoundSpec {
            window_ns: SECOND_NS,
            ..round(connections(8, 64))
        };
        let (sender, receiver) = exchange(address, &spec);
        check(&sender, &receiver);
        // The streams' own connections end in order.
        let waiting = ports_in(TIME_WAIT, address).len();
        assert!(waiting < 40, "{waiting} connections in TIME-WAIT");
    }
}

#[test]
fn unauthenticated_peers_do_no_harm() {
    for (last, threads) in [(72, 1), (73, 2)] {
        let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        let (near, far) = (engine(address), engine(address));
        let shared = Workload {
            threads: Some(threads),
            ..connections(2, 64)
        };
        let spec = RoundSpec {
            window_ns: 3 * SECOND_NS,
            ..round(shared)
        };
        let (near_reports, far_reports) = start_pair(&near, &far, address, &spec);
        let own = [near.port(), far.port()];
        let ports = wait_for_listeners(address, &own, 2);
        // Before the start, and in the middle.
        let mut rejected_connections = say_all(address, &ports);
        std::thread::sleep(Duration::from_secs(1));
        rejected_connections.extend(say_all(address, &ports));
        let (sender, receiver) = ends(&near_reports, &far_reports);
        check(&sender, &receiver);
        for other in &mut rejected_connections {
            assert_closed(other);
        }
    }
}

#[test]
fn a_peer_that_is_gone_is_an_error() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let spec = RoundSpec {
        window_ns: 4 * SECOND_NS,
        ..round(connections(1, 64))
    };
    let (near_reports, far_reports) = start_pair(&near, &far, LOCALHOST, &spec);
    std::thread::sleep(Duration::from_millis(1200));
    let peer = data_address(&far, LOCALHOST);
    drop(far);
    assert!(wait(&far_reports)[0].error.is_some());
    let reports = wait(&near_reports);
    let error = reports[0].error.as_deref().unwrap();
    assert!(error.starts_with(&format!("connect {peer}: ")), "{error}");
    assert!(
        error.ends_with("Connection refused (os error 111)"),
        "{error}"
    );
}

fn connections(streams: u32, message_bytes: u64) -> Workload {
    workload(WorkloadKind::TcpCrr, streams, message_bytes)
}

fn check(sender: &EndRecord, receiver: &EndRecord) {
    for end in [sender, receiver] {
        assert!(end.transactions.unwrap() > 0);
        assert!(end.bytes > 0);
    }
    let times = &sender.latency.as_ref().unwrap().times;
    let connect_times = sender.connect_latency.as_ref().unwrap();
    assert_in_order(times);
    assert_in_order(connect_times);
    assert!(connect_times.quantile(0.5) <= times.quantile(0.5));
    assert!(receiver.latency.is_none() && receiver.connect_latency.is_none());
    let asked: Vec<_> = sender.streams.iter().map(|s| s.peer_port).collect();
    let listened: Vec<_> = receiver.streams.iter().map(|s| s.local_port).collect();
    assert_eq!(asked, listened);
}

fn wait_for_listeners(address: IpAddr, except: &[u16], count: usize) -> Vec<u16> {
    let begun = Instant::now();
    loop {
        let mut ports = ports_in(LISTEN, address);
        ports.retain(|port| !except.contains(port));
        if ports.len() == count {
            return ports;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{ports:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Local ports of this host's sockets with this IPv4 address in this state.
fn ports_in(state: &str, address: IpAddr) -> Vec<u16> {
    let IpAddr::V4(address) = address else {
        return Vec::new();
    };
    // The kernel prints the address as a number of the host's byte order.
    let local = format!("{:08X}:", u32::from_ne_bytes(address.octets()));
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect());
    rows.filter(|row: &Vec<&str>| row.get(3) == Some(&state))
        .filter_map(|row| u16::from_str_radix(row[1].strip_prefix(&local)?, 16).ok())
        .collect()
}

/// Garbage, and nothing, to all ports. Those who spoke are returned; the kernel notifies nobody of
/// those who did not, so that nobody closes them.
fn say_all(address: IpAddr, ports: &[u16]) -> Vec<TcpStream> {
    let mut rejected_connections = Vec::new();
    for port in ports {
        let port = SocketAddr::new(address, *port);
        let garbage: [&[u8]; 3] = [b"G", &[0x5a; 64], &[0x5a; 100_000]];
        rejected_connections.extend(garbage.map(|bytes| say(port, bytes)));
        // It stays open until the test's process ends.
        std::mem::forget(say(port, b""));
    }
    rejected_connections
}

fn say(port: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(port).unwrap();
    stream.set_nonblocking(true).unwrap();
    // Not all of it may fit, and it may be closed in the middle.
    let _ = stream.write(bytes);
    stream.set_nonblocking(false).unwrap();
    stream
}

fn assert_closed(stream: &mut TcpStream) {
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    let mut answer = Vec::new();
    // A reset is a close, too; a timeout is not.
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(answer.is_empty());
}
