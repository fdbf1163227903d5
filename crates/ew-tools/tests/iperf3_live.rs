//! The real iperf3 over loopback. Skipped where it is not installed, except in CI.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped shall print it"
)]

mod common;

use common::{LOCALHOST, SECOND_NS, free_ports, is_there, order, start, start_until, wait};
use ew_model::plan::{RoundIndex, StageIndex};
use ew_model::workload::{Limit, SendMode, Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_sys::clock::monotonic_ns;
use ew_tools::{RoundSpec, run_round};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn a_flow_each_way() {
    if !is_there(Tool::Iperf3) {
        return;
    }
    let ports = [free_ports(1), free_ports(1)];
    let servers = ports.map(|port| order(port, Role::Receive, false)).to_vec();
    let clients = vec![
        order(ports[0], Role::Send, true),
        order(ports[1], Role::Receive, true),
    ];
    let served = start(spec(servers));
    let reports = wait(&start(spec(clients)));
    for report in &reports {
        assert_eq!(report.error, None);
        let receiver = report.receiver.as_ref().unwrap();
        assert!(receiver.bytes > 0);
        assert!(receiver.window_ns > SECOND_NS / 2);
        assert_eq!(receiver.streams.len(), 2);
        assert!(report.sender.as_ref().unwrap().bytes > 0);
    }
    for report in wait(&served) {
        assert_eq!(
            (report.error, report.sender, report.receiver),
            (None, None, None)
        );
    }
}

#[test]
fn knobs_and_datagrams() {
    if !is_there(Tool::Iperf3) {
        return;
    }
    let ports = [free_ports(1), free_ports(1)];
    let servers = ports.map(|port| order(port, Role::Receive, false)).to_vec();
    let clients = vec![
        order(ports[0], Role::Send, true),
        order(ports[1], Role::Receive, true),
    ];
    let udp = |flows| {
        let mut spec = spec(flows);
        spec.workload.kind = WorkloadKind::UdpStream;
        spec.workload.message_bytes = 1000;
        spec.workload.segmentation = false;
        spec.workload.pace.flow_bits_per_sec = Some(16e6);
        spec.workload.socket.dscp = Some(46);
        spec
    };
    let _served = start(udp(servers));
    for report in wait(&start(udp(clients))) {
        assert_eq!(report.error, None);
        let receiver = report.receiver.unwrap();
        let counts = receiver.datagrams.unwrap();
        assert!(counts.received > 0);
        // Two streams of 1000 datagrams a second: no more was sent.
        assert!(counts.received + counts.lost < 3000, "{counts:?}");
        assert_eq!(report.sender.unwrap().datagrams, None);
    }
}

#[test]
fn a_limit_ends_a_test_before_its_time() {
    if !is_there(Tool::Iperf3) {
        return;
    }
    let port = free_ports(1);
    let limited = |flows| {
        let mut spec = spec(flows);
        spec.window_ns = 20 * SECOND_NS;
        // More than sockets' buffers hold: a server that gets no CPU until the end has read nothing
        // of less.
        spec.workload.limit = Some(Limit::Bytes(1 << 24));
        spec.workload.send_mode = SendMode::Sendfile;
        spec
    };
    let servers = vec![order(port, Role::Receive, false)];
    let _served = start(limited(servers));
    let clients = vec![order(port, Role::Send, true)];
    let report = wait(&start(limited(clients))).remove(0);
    assert_eq!(report.error, None);
    let sender = report.sender.unwrap();
    assert!(
        (2 << 24..4 << 24).contains(&sender.bytes),
        "{}",
        sender.bytes
    );
    assert!(sender.window_ns < 20 * SECOND_NS);
}

#[test]
fn a_server_that_is_not_there_is_told_in_iperf3s_words() {
    if !is_there(Tool::Iperf3) {
        return;
    }
    let clients = vec![order(free_ports(1), Role::Send, true)];
    let reports = wait(&start(spec(clients)));
    let error = reports[0].error.as_deref().unwrap();
    assert!(
        error.starts_with("iperf3: unable to connect to server"),
        "{error}"
    );
}

#[test]
fn a_taken_port_is_the_servers_error() {
    if !is_there(Tool::Iperf3) {
        return;
    }
    let taken = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let servers = vec![order(port, Role::Receive, false)];
    let reports = wait(&start(spec(servers)));
    let error = reports[0].error.as_deref().unwrap();
    assert!(error.contains("Address already in use"), "{error}");
}

#[test]
fn an_abort_ends_the_server() {
    if !is_there(Tool::Iperf3) {
        return;
    }
    let port = free_ports(1);
    let cancel = Arc::<AtomicBool>::default();
    let mut long = spec(vec![order(port, Role::Receive, false)]);
    long.window_ns = 3600 * SECOND_NS;
    let reports = start_until(long, &cancel);
    std::thread::sleep(Duration::from_millis(300));
    cancel.store(true, Ordering::Release);
    assert_eq!(wait(&reports)[0].error.as_deref(), Some("iperf3: aborted"));
    // Nobody holds the port any more.
    TcpListener::bind((LOCALHOST, port)).unwrap();
}

#[test]
fn the_engine_is_not_a_tool() {
    let mut other = spec(Vec::new());
    other.workload.tool = Tool::Engine;
    assert!(run_round(LOCALHOST, other, Arc::default(), Box::new(|_| ())).is_err());
}

fn spec(flows: Vec<FlowOrder>) -> RoundSpec {
    let now_ns = monotonic_ns();
    RoundSpec {
        stage: StageIndex(0),
        round: RoundIndex(0),
        workload: Workload {
            streams: 2,
            message_bytes: 64 * 1024,
            tool: Tool::Iperf3,
            ..Workload::of(WorkloadKind::TcpStream)
        },
        connect_at_ns: now_ns,
        start_ns: now_ns + SECOND_NS / 2,
        window_start_ns: now_ns + SECOND_NS / 2,
        window_ns: SECOND_NS,
        interval_ns: SECOND_NS / 10,
        flows,
    }
}
