//! The real iperf3 over loopback. Skipped where it is not installed, except in CI.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped shall say so"
)]

use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::workload::{Limit, SendMode, Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, FlowReport, Role};
use ew_sys::clock::monotonic_ns;
use ew_tools::{RoundSpec, discover, run_round};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_flow_each_way() {
    if !iperf3_is_there() {
        return;
    }
    let ports = [free_port(), free_port()];
    let servers = ports.map(|port| order(port, Role::Receive, false)).to_vec();
    let clients = vec![
        order(ports[0], Role::Send, true),
        order(ports[1], Role::Receive, true),
    ];
    let served = start(spec(servers), &Arc::default());
    let reports = wait(&start(spec(clients), &Arc::default()));
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
    if !iperf3_is_there() {
        return;
    }
    let ports = [free_port(), free_port()];
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
    let _served = start(udp(servers), &Arc::default());
    for report in wait(&start(udp(clients), &Arc::default())) {
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
    if !iperf3_is_there() {
        return;
    }
    let port = free_port();
    let limited = |flows| {
        let mut spec = spec(flows);
        spec.window_ns = 20 * SECOND_NS;
        // More than sockets' buffers hold: a server that gets no CPU until the end has read nothing of less.
        spec.workload.limit = Some(Limit::Bytes(1 << 24));
        spec.workload.send_mode = SendMode::Sendfile;
        spec
    };
    let servers = vec![order(port, Role::Receive, false)];
    let _served = start(limited(servers), &Arc::default());
    let clients = vec![order(port, Role::Send, true)];
    let report = wait(&start(limited(clients), &Arc::default())).remove(0);
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
    if !iperf3_is_there() {
        return;
    }
    let clients = vec![order(free_port(), Role::Send, true)];
    let reports = wait(&start(spec(clients), &Arc::default()));
    let error = reports[0].error.as_deref().unwrap();
    assert!(
        error.starts_with("iperf3: unable to connect to server"),
        "{error}"
    );
}

#[test]
fn a_taken_port_is_the_servers_error() {
    if !iperf3_is_there() {
        return;
    }
    let taken = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let servers = vec![order(port, Role::Receive, false)];
    let reports = wait(&start(spec(servers), &Arc::default()));
    let error = reports[0].error.as_deref().unwrap();
    assert!(error.contains("Address already in use"), "{error}");
}

#[test]
fn an_abort_ends_the_server() {
    if !iperf3_is_there() {
        return;
    }
    let port = free_port();
    let cancel = Arc::<AtomicBool>::default();
    let mut long = spec(vec![order(port, Role::Receive, false)]);
    long.window_ns = 3600 * SECOND_NS;
    let reports = start(long, &cancel);
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

fn iperf3_is_there() -> bool {
    let found = discover().iter().any(|(name, _)| name == "iperf3");
    assert!(
        found || std::env::var_os("CI").is_none(),
        "CI must have iperf3: apt install iperf3"
    );
    if !found {
        println!("skipped: iperf3 is not installed");
    }
    found
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

fn order(port: u16, role: Role, opens: bool) -> FlowOrder {
    FlowOrder {
        flow: FlowId(u32::from(port)),
        role,
        opens,
        peer: SocketAddr::new(LOCALHOST, port),
        server_port: if opens { 0 } else { port },
    }
}

fn start(spec: RoundSpec, cancel: &Arc<AtomicBool>) -> Receiver<Vec<FlowReport>> {
    let (sender, receiver) = channel();
    let done = Box::new(move |reports| sender.send(reports).unwrap_or(()));
    run_round(LOCALHOST, spec, Arc::clone(cancel), done).unwrap();
    receiver
}

/// Generous: only a hang reaches it.
fn wait(reports: &Receiver<Vec<FlowReport>>) -> Vec<FlowReport> {
    reports.recv_timeout(Duration::from_secs(60)).unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
