//! ICMP echo over loopback, answered by the kernel.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped prints it"
)]

mod common;
mod exchange;

use common::{LOCALHOST, engine, order, round, start, wait, with_flows, workload};
use ew_engine::RoundSpec;
use ew_model::record::EndRecord;
use ew_model::workload::{Limit, Pace, Workload, WorkloadKind};
use ew_proto::message::Role;
use exchange::{assert_in_order, exchange, has_ipv6_loopback};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

#[test]
fn a_flood_that_is_alone() {
    if may_ping() {
        let (sender, receiver) = exchange(LOCALHOST, &round(echoes(1, 56)));
        check(&sender, &receiver);
    }
}

#[test]
fn floods_that_share_a_thread() {
    if may_ping() {
        let shared = Workload {
            threads: Some(1),
            outstanding: 3,
            ..echoes(5, 56)
        };
        let (sender, receiver) = exchange(LOCALHOST, &round(shared));
        check(&sender, &receiver);
        assert!(sender.streams.iter().all(|s| s.bytes > 0));
    }
}

#[test]
fn over_ipv6() {
    if may_ping() && has_ipv6_loopback() {
        let address = IpAddr::V6(Ipv6Addr::LOCALHOST);
        for streams in [1, 3] {
            let shared = Workload {
                threads: Some(1),
                ..echoes(streams, 16)
            };
            let (sender, receiver) = exchange(address, &round(shared));
            check(&sender, &receiver);
        }
    }
}

#[test]
fn echoes_that_are_cut_into_fragments() {
    if may_ping() {
        let (sender, receiver) = exchange(LOCALHOST, &round(echoes(1, 65_507)));
        check(&sender, &receiver);
    }
}

#[test]
fn a_rate_is_kept() {
    if !may_ping() {
        return;
    }
    let paced = Workload {
        pace: Pace {
            requests_per_sec: Some(500.0),
            ..Pace::default()
        },
        ..echoes(2, 56)
    };
    let (sender, receiver) = exchange(LOCALHOST, &round(paced));
    check(&sender, &receiver);
    let latency = sender.latency.unwrap();
    // 300 ms, and what may have been late at the window's start.
    assert!(latency.times.count() <= 180, "{}", latency.times.count());
    assert_eq!(latency.uncorrected.unwrap().count(), latency.times.count());
}

#[test]
fn a_limit_ends_the_flow() {
    if !may_ping() {
        return;
    }
    let limited = Workload {
        limit: Some(Limit::Messages(30)),
        ..echoes(1, 56)
    };
    let (sender, _) = exchange(LOCALHOST, &round(limited));
    // One may have been out at the window's start.
    assert!((30..=31).contains(&sender.transactions.unwrap()));
    assert_eq!(sender.datagrams.unwrap().lost, 0);
    assert!(sender.window_ns < 300_000_000);
}

#[test]
fn silence_is_an_error() {
    if !may_ping() {
        return;
    }
    // Nobody answers a broadcast, and on the loopback interface it does not leave the host.
    let lonely = engine(LOCALHOST);
    let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 255, 255, 255)), 9);
    let spec = RoundSpec {
        window_ns: 1_500_000_000,
        ..round(echoes(1, 56))
    };
    let reports = start(
        &lonely,
        with_flows(&spec, vec![order(1, Role::Send, true, peer)]),
    );
    let reports = wait(&reports);
    assert!(reports[0].error.is_some() && reports[0].sender.is_none());
}

#[test]
fn impossible_sizes_are_refused() {
    let engine = engine(LOCALHOST);
    for bytes in [15, 65_508] {
        let done = Box::new(|_| panic!("a refused round must not report"));
        let refused = engine.run_round(round(echoes(1, bytes)), done).unwrap_err();
        assert!(refused.to_string().contains("16 to 65507 are possible"));
    }
}

fn echoes(streams: u32, message_bytes: u64) -> Workload {
    workload(WorkloadKind::Ping, streams, message_bytes)
}

fn check(sender: &EndRecord, receiver: &EndRecord) {
    let times = &sender.latency.as_ref().unwrap().times;
    assert_in_order(times);
    let counts = sender.datagrams.unwrap();
    assert!(counts.received > 0);
    assert_eq!((counts.lost, counts.duplicates), (0, 0));
    // Times belong to the window by their answers, counts by their echoes: they differ by what was
    // out at its edges.
    assert!(times.count().abs_diff(counts.received) <= 64);
    assert!(sender.transactions.unwrap() > 0 && sender.bytes > 0);
    assert_eq!((receiver.transactions, receiver.bytes), (None, 0));
    assert!(receiver.latency.is_none() && receiver.datagrams.is_none());
}

fn may_ping() -> bool {
    let open = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::ICMPV4));
    let socket = open(Type::DGRAM).or_else(|_| open(Type::RAW));
    if let Err(error) = &socket {
        println!("skipped: this host gives no ICMP socket: {error}");
    }
    socket.is_ok()
}
