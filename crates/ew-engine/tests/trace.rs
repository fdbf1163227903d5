//! Traces over loopback, where the peer is the first hop: routers are met in labs only.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped prints it"
)]

mod common;
mod exchange;

use common::{LOCALHOST, data_address, engine, order, round, start, wait, with_flows, workload};
use ew_engine::RoundSpec;
use ew_model::record::{FigureNote, TracedPath};
use ew_model::workload::WorkloadKind;
use ew_proto::message::{FlowOrder, Role};
use exchange::{assert_in_order, ends, exchange, has_ipv6_loopback};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

#[test]
fn a_peer_without_routers_before_it() {
    let mut addresses = vec![LOCALHOST];
    addresses.extend(has_ipv6_loopback().then_some(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    for address in addresses {
        let (sender, receiver) = exchange(address, &traces(3));
        let direct = TracedPath {
            hops: Vec::new(),
            is_complete: true,
        };
        assert!(
            sender
                .streams
                .iter()
                .all(|s| s.path.as_ref() == Some(&direct)),
            "{sender:?}"
        );
        let times = sender.latency.unwrap().times;
        assert_eq!(times.count(), 3);
        assert_in_order(&times);
        assert!(receiver.streams.iter().all(|stream| stream.path.is_none()));
    }
}

#[test]
fn it_proves_itself_and_leaves_its_ports_free() {
    // Another process may hold a port just now: what a trace leaves behind is there every time.
    let why: Vec<String> = (0..5)
        .map_while(|attempt| traced_before_and_after(attempt).err())
        .collect();
    assert!(why.len() < 5, "{why:#?}");
}

/// A trace, a stream of the same ports, and a trace again.
fn traced_before_and_after(attempt: u64) -> Result<(), String> {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    // Of this process only: ports that another test just used rest for a minute.
    let ports = u64::from(std::process::id()) + (attempt << 32);
    let pinned = |flow: FlowOrder| FlowOrder {
        first_stream: 1,
        ..flow.with_ports(ports)
    };
    let run = |spec: &RoundSpec| {
        let send = pinned(order(5, Role::Send, true, data_address(&far, LOCALHOST)));
        let receive = pinned(order(
            5,
            Role::Receive,
            false,
            data_address(&near, LOCALHOST),
        ));
        let near_reports = start(&near, with_flows(spec, vec![send]));
        let far_reports = start(&far, with_flows(spec, vec![receive]));
        ends(&near_reports, &far_reports).0
    };
    let traced = run(&traces(1));
    let carried = run(&round(workload(WorkloadKind::TcpStream, 1, 1 << 17)));
    let again = run(&traces(1));
    let ports: Vec<u16> = [&traced, &carried, &again]
        .map(|end| end.streams[0].local_port)
        .into();
    if [&traced, &carried, &again]
        .iter()
        .any(|end| end.notes.contains(&FigureNote::SourcePortBusy))
    {
        return Err(format!("busy: {ports:?}"));
    }
    assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
    assert!(
        again.streams[0]
            .path
            .as_ref()
            .is_some_and(|path| path.is_complete)
    );
    assert_eq!(far.totals().rejected_connections, 0);
    Ok(())
}

#[test]
fn nobody_at_the_port_is_an_end_too() {
    let lonely = engine(LOCALHOST);
    let unused = std::net::TcpListener::bind((LOCALHOST, 0)).unwrap();
    let peer: SocketAddr = unused.local_addr().unwrap();
    drop(unused);
    let reports = start(
        &lonely,
        with_flows(&traces(1), vec![order(1, Role::Send, true, peer)]),
    );
    let reports = wait(&reports);
    let sender = reports[0].sender.as_ref().unwrap();
    assert!(
        sender.streams[0]
            .path
            .as_ref()
            .is_some_and(|path| path.is_complete)
    );
    assert!(sender.latency.is_none(), "nothing was opened");
}

fn traces(streams: u32) -> RoundSpec {
    round(workload(WorkloadKind::Trace, streams, 1))
}
