//! Unauthenticated peers at the data port, and the doctor's question.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod common;
mod hello;

use common::{
    LOCALHOST, TOKEN, data_address, engine, order, round, start, wait, with_flows, workload,
};
use ew_engine::{Engine, EngineConfig};
use ew_model::workload::WorkloadKind;
use ew_proto::message::{PortAnswer, PortCheck, RelayKey, Role, RunToken};
use hello::{HELLO_BYTES, hello};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn unauthenticated_peers_are_closed_and_counted_and_the_flow_is_unharmed() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let (near_port, far_port) = (
        data_address(&near, LOCALHOST),
        data_address(&far, LOCALHOST),
    );
    let spec = round(workload(WorkloadKind::TcpStream, 1, 64 * 1024));
    let mut garbage = say(far_port, b"GET / HTTP/1.1\r\n\r\n");
    let mut wrong_token = say(far_port, &hello(RunToken([1; 16]), 1, Role::Send));
    let mut unknown_flow = say(far_port, &hello(TOKEN, 99, Role::Send));
    let mut silent = say(far_port, b"");
    let mut slow = say(far_port, b"ewda");
    let far_reports = start(
        &far,
        with_flows(&spec, vec![order(1, Role::Receive, false, near_port)]),
    );
    let near_reports = start(
        &near,
        with_flows(&spec, vec![order(1, Role::Send, true, far_port)]),
    );
    for reports in [wait(&near_reports), wait(&far_reports)] {
        assert_eq!(reports[0].error, None);
    }
    for other in [
        &mut garbage,
        &mut wrong_token,
        &mut unknown_flow,
        &mut silent,
        &mut slow,
    ] {
        assert_closed(other);
    }
    wait_for_rejected(&far, 5);
    assert_eq!(near.totals().rejected_connections, 0);
}

#[test]
fn a_connection_with_the_wrong_direction_is_rejected() {
    let far = engine(LOCALHOST);
    let far_port = data_address(&far, LOCALHOST);
    let spec = round(workload(WorkloadKind::TcpStream, 1, 1024));
    let reports = start(
        &far,
        with_flows(&spec, vec![order(1, Role::Send, false, far_port)]),
    );
    // The opener declares that it sends, but here the accepting end does.
    let mut other = say(far_port, &hello(TOKEN, 1, Role::Send));
    assert_closed(&mut other);
    assert!(wait(&reports)[0].error.is_some());
    wait_for_rejected(&far, 1);
}

#[test]
fn many_silent_unauthenticated_peers_do_not_keep_a_flow_out() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let (near_port, far_port) = (
        data_address(&near, LOCALHOST),
        data_address(&far, LOCALHOST),
    );
    let silent: Vec<TcpStream> = (0..300).map(|_| say(far_port, b"")).collect();
    let spec = round(workload(WorkloadKind::TcpStream, 2, 64 * 1024));
    let far_reports = start(
        &far,
        with_flows(&spec, vec![order(1, Role::Receive, false, near_port)]),
    );
    let near_reports = start(
        &near,
        with_flows(&spec, vec![order(1, Role::Send, true, far_port)]),
    );
    for reports in [wait(&near_reports), wait(&far_reports)] {
        assert_eq!(reports[0].error, None);
    }
    wait_for_rejected(&far, silent.len() as u64);
}

fn check_ports(engine: &Engine, peers: &[SocketAddr], with_udp: bool) -> Vec<PortAnswer> {
    let peers = peers.to_vec();
    engine.check_ports(&PortCheck { peers, with_udp }, Duration::from_millis(500))
}

#[test]
fn ports_are_checked_with_a_hello() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let closed = TcpListener::bind((LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let other_run = Engine::start(EngineConfig {
        address: LOCALHOST,
        ports: (0, 0),
        token: RunToken([3; 16]),
        relay_key: None,
    })
    .unwrap();
    let peers = [
        data_address(&far, LOCALHOST),
        closed,
        data_address(&other_run, LOCALHOST),
    ];
    for with_udp in [false, true] {
        let answers = check_ports(&near, &peers, with_udp);
        let PortAnswer::Reached { round_trip_ns } = answers[0] else {
            panic!("{answers:?}");
        };
        assert!(
            round_trip_ns.is_some_and(|ns| ns < 10_000_000),
            "{answers:?}"
        );
        let refused = format!("connect {closed}: Connection refused (os error 111)");
        assert_eq!(answers[1].error(), Some(refused.as_str()));
        assert!(answers[2].error().is_some());
    }
    assert_eq!(far.totals().rejected_connections, 0);
    assert!(check_ports(&near, &[], true).is_empty());
}

/// As behind a firewall that lets TCP through alone.
#[test]
fn a_port_that_answers_no_datagram_is_named() {
    let (near, far) = (engine(LOCALHOST), engine("127.0.0.2".parse().unwrap()));
    let address = data_address(&far, "127.0.0.2".parse().unwrap());
    // Unauthenticated datagrams get no answer.
    let stranger = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    stranger
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    for noise in [&[0_u8; HELLO_BYTES][..], b"", &[7; 2000]] {
        stranger.send_to(noise, address).unwrap();
    }
    assert!(stranger.recv_from(&mut [0; 100]).is_err());
    assert_eq!(check_ports(&near, &[address], true)[0].error(), None);
    // A round ends it: what comes to this port is data then.
    let spec = round(workload(WorkloadKind::TcpStream, 1, 1024));
    wait(&start(
        &far,
        with_flows(&spec, vec![order(1, Role::Receive, false, address)]),
    ));
    let answers = check_ports(&near, &[address], true);
    let error = answers[0].error().unwrap_or_default();
    assert!(error.contains("TCP connects, but no datagram"), "{error}");
    assert_eq!(check_ports(&near, &[address], false)[0].error(), None);
}

/// An agent's own program, for neighbours that are being launched.
#[test]
fn the_program_is_handed_on_to_who_knows_the_key_and_to_nobody_else() {
    let key = RelayKey([5; 16]);
    let engine = Engine::start(EngineConfig {
        address: LOCALHOST,
        ports: (0, 0),
        token: TOKEN,
        relay_key: Some(key),
    })
    .unwrap();
    let port = data_address(&engine, LOCALHOST);
    let program = std::fs::read("/proc/self/exe").unwrap();
    let mut by_bash = say(port, format!("GET /{key}\n").as_bytes());
    let mut got = Vec::new();
    by_bash.read_to_end(&mut got).unwrap();
    assert!(got == program, "{} of {} bytes", got.len(), program.len());
    let mut by_curl = say(port, format!("GET /{key} HT").as_bytes());
    by_curl.write_all(b"TP/1.1\r\nHost: a\r\n\r\n").unwrap();
    got.clear();
    by_curl.read_to_end(&mut got).unwrap();
    assert!(got.starts_with(b"HTTP/1.0 200 OK\r\n") && got.ends_with(&program));
    let other = RelayKey([6; 16]);
    let mut stranger = say(port, format!("GET /{other} HTTP/1.1\r\n\r\n").as_bytes());
    assert_closed(&mut stranger);
    wait_for_rejected(&engine, 1);
}

#[test]
fn the_port_is_free_again_when_the_engine_is_gone() {
    let engine = engine(LOCALHOST);
    let port = data_address(&engine, LOCALHOST);
    let _silent = say(port, b"");
    drop(engine);
    TcpListener::bind(port).unwrap();
}

/// What takes a dead agent's port learns nothing with which it could open a connection, and is no
/// peer.
#[test]
fn a_thief_of_the_port_gets_no_token_and_no_flow() {
    let near = engine(LOCALHOST);
    let thief = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let port = thief.local_addr().unwrap();
    let (steal, stolen) = std::sync::mpsc::channel();
    // Any answer of the right length, for as long as the opener tries.
    std::thread::spawn(move || {
        while let Ok((mut connection, _)) = thief.accept() {
            let mut hello = [0; HELLO_BYTES];
            connection.read_exact(&mut hello).unwrap();
            let _ = connection.write_all(&[0xa5; 16]);
            let _ = steal.send(hello);
        }
    });
    let answers = check_ports(&near, &[port], false);
    let error = answers[0].error().unwrap_or_default();
    assert!(error.contains("another program answers"), "{error}");
    let hello = stolen.recv().unwrap();
    assert!(!hello.windows(16).any(|bytes| bytes == TOKEN.0));
    // Sent to another host, it is an unauthenticated peer's.
    let elsewhere = engine("127.0.0.2".parse().unwrap());
    let elsewhere_port = data_address(&elsewhere, "127.0.0.2".parse().unwrap());
    assert_closed(&mut say(elsewhere_port, &hello));
    wait_for_rejected(&elsewhere, 1);
}

#[test]
fn an_endless_flood_of_connections_does_not_outlive_the_engine() {
    let engine = engine(LOCALHOST);
    let port = data_address(&engine, LOCALHOST);
    let ended = Arc::new(AtomicBool::new(false));
    let floods: Vec<_> = (0..3)
        .map(|_| {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    drop(TcpStream::connect(port));
                }
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    drop(engine);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    ended.store(true, Ordering::Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
}

fn say(port: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(port).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn assert_closed(stream: &mut TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut answer = Vec::new();
    // A reset is a close too; a timeout is not.
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(answer.is_empty());
}

fn wait_for_rejected(engine: &Engine, count: u64) {
    let begun = Instant::now();
    while engine.totals().rejected_connections < count && begun.elapsed() < Duration::from_secs(20)
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(engine.totals().rejected_connections, count);
}
