//! The real tools over loopback, each with all it can carry. Skipped where one is not installed,
//! except in CI.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped shall print it"
)]

mod common;

use common::{LOCALHOST, SECOND_NS, free_ports, is_there, order, start, wait};
use ew_model::plan::{RoundIndex, StageIndex};
use ew_model::tools::ServerPorts;
use ew_model::workload::{SendMode, Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, FlowReport, Role};
use ew_sys::clock::monotonic_ns;
use ew_tools::RoundSpec;
use std::net::TcpListener;

use Role::{Receive, Send};
use WorkloadKind::{Ping, TcpCrr, TcpRr, TcpStream, UdpRr, UdpStream};

#[test]
fn iperf_streams_both_ways() {
    bulk(
        Tool::Iperf,
        &[(TcpStream, Send), (TcpStream, Receive)],
        |w| w.streams = 2,
    );
}

#[test]
fn iperf_counts_datagrams() {
    let gently = |w: &mut Workload| {
        w.message_bytes = 1000;
        w.pace.flow_bits_per_sec = Some(8e6);
    };
    let Some(reports) = run(Tool::Iperf, &[(UdpStream, Send)], gently) else {
        return;
    };
    // Its server counts.
    let counts = reports[1].receiver.as_ref().unwrap().datagrams.unwrap();
    assert!(
        counts.received > 0 && counts.received + counts.lost < 5000,
        "{counts:?}"
    );
}

#[test]
fn netperf_streams_both_ways() {
    bulk(
        Tool::Netperf,
        &[(TcpStream, Send), (TcpStream, Receive), (UdpStream, Send)],
        |w| {
            w.socket.send_buffer_bytes = Some(100_000);
        },
    );
    bulk(Tool::Netperf, &[(TcpStream, Send)], |w| {
        w.send_mode = SendMode::Sendfile;
    });
}

#[test]
fn netperf_asks_and_answers() {
    let all = [(TcpRr, Send), (UdpRr, Send), (TcpCrr, Send)];
    let Some(reports) = run(Tool::Netperf, &all, |w| {
        (w.message_bytes, w.response_bytes) = (100, Some(50));
    }) else {
        return;
    };
    for report in reports {
        let asked = report.sender.unwrap();
        assert!(asked.transactions.unwrap() > 0 && asked.window_ns > SECOND_NS / 2);
        let reported = asked.reported.unwrap();
        assert!(reported.mean_ns.unwrap() >= reported.min_ns.unwrap());
    }
}

#[test]
fn netperf_says_how_sure_it_is() {
    let sure = |w: &mut Workload| w.confidence_width = Some(0.5);
    let both = [(TcpRr, Send), (TcpStream, Receive)];
    let Some(reports) = run(Tool::Netperf, &both, sure) else {
        return;
    };
    for report in reports {
        let reported = report.sender.unwrap().reported.unwrap();
        // The minimum that it takes, in a window of a second.
        assert_eq!(reported.tests, Some(3));
        assert!(reported.width_ppm.is_some(), "{reported:?}");
    }
}

#[test]
fn lmbench_streams_and_asks() {
    bulk(Tool::Lmbench, &[(TcpStream, Receive)], |_| ());
    times(
        Tool::Lmbench,
        &[(TcpRr, Send), (UdpRr, Send), (TcpCrr, Send)],
    );
}

#[test]
fn netpipe_streams_and_asks() {
    bulk(Tool::Netpipe, &[(TcpStream, Send)], |_| ());
    times(Tool::Netpipe, &[(TcpRr, Send)]);
}

#[test]
fn nuttcp_streams_both_ways() {
    bulk(
        Tool::Nuttcp,
        &[(TcpStream, Send), (TcpStream, Receive)],
        |w| w.streams = 2,
    );
    let gently = |w: &mut Workload| w.pace.flow_bits_per_sec = Some(8e6);
    let Some(reports) = run(Tool::Nuttcp, &[(UdpStream, Send)], gently) else {
        return;
    };
    assert!(
        reports[0]
            .receiver
            .as_ref()
            .unwrap()
            .datagrams
            .unwrap()
            .received
            > 0
    );
}

#[test]
fn sockperf_streams_and_asks() {
    bulk(Tool::Sockperf, &[(TcpStream, Send)], |w| {
        w.message_bytes = 16_384;
    });
    times(Tool::Sockperf, &[(TcpRr, Send), (UdpRr, Send)]);
}

#[test]
fn qperf_streams_and_asks() {
    bulk(
        Tool::Qperf,
        &[(TcpStream, Send), (TcpStream, Receive), (UdpStream, Send)],
        |_| (),
    );
    times(Tool::Qperf, &[(TcpRr, Send), (UdpRr, Send)]);
}

#[test]
fn ping_keeps_every_echo() {
    let Some(reports) = run(Tool::Ping, &[(Ping, Send)], |w| {
        w.pace.requests_per_sec = Some(4.0);
    }) else {
        return;
    };
    let asked = reports[0].sender.as_ref().unwrap();
    let times = &asked.latency.as_ref().unwrap().times;
    assert_eq!(Some(times.count()), asked.transactions);
    assert!((1..=8).contains(&times.count()));
}

#[test]
fn a_server_that_is_not_there_is_told_in_the_tools_words() {
    for tool in [Tool::Netperf, Tool::Nuttcp, Tool::Netpipe] {
        if !is_there(tool) {
            continue;
        }
        let client = order(free_ports(2), Send, true);
        let reports = wait(&start(spec(tool, TcpStream, vec![client], |_| ())));
        let error = reports[0].error.as_deref().unwrap();
        assert!(error.starts_with(tool.name()), "{error}");
    }
}

#[test]
fn what_a_tool_cannot_carry_is_refused_on_the_host_too() {
    let mut other = spec(Tool::Ping, TcpStream, vec![order(1, Send, true)], |_| ());
    other.workload.kind = TcpStream;
    let error = wait(&start(other)).remove(0).error.unwrap();
    assert!(error.starts_with("tool: ping has no tcp-stream"), "{error}");
}

/// Bytes and a rate at both ends.
fn bulk(tool: Tool, flows: &[(WorkloadKind, Role)], change: fn(&mut Workload)) {
    for report in run(tool, flows, change).unwrap_or_default() {
        let receiver = report.receiver.unwrap();
        assert!(
            receiver.bytes > 0 && receiver.window_ns > SECOND_NS / 10,
            "{receiver:?}"
        );
        assert!(report.sender.unwrap().bytes > 0);
    }
}

/// At least one figure of a transaction's time.
fn times(tool: Tool, flows: &[(WorkloadKind, Role)]) {
    for report in run(tool, flows, |_| ()).unwrap_or_default() {
        let reported = report.sender.unwrap().reported.unwrap();
        let least_ns = reported.min_ns.or(reported.mean_ns).unwrap();
        assert!(least_ns > 100, "{reported:?}");
    }
}

/// The flows one after the other, each with a server of its own, of which nothing is left. `None`
/// where it was skipped.
fn run(
    tool: Tool,
    flows: &[(WorkloadKind, Role)],
    change: fn(&mut Workload),
) -> Option<Vec<FlowReport>> {
    if !is_there(tool) {
        return None;
    }
    let reports = flows.iter().flat_map(|(kind, role)| {
        let probe = spec(tool, *kind, Vec::new(), change);
        let port = match probe.workload.server_ports() {
            ServerPorts::None => 0,
            ServerPorts::Range(count) => free_ports(count),
            ServerPorts::Fixed(port) => port,
        };
        let answers = if *role == Send { Receive } else { Send };
        let served = start(spec(tool, *kind, vec![order(port, answers, false)], change));
        let asks = spec(tool, *kind, vec![order(port, *role, true)], change);
        let report = wait(&start(asks)).remove(0);
        assert_eq!(report.error, None, "{tool:?} {kind:?} {role:?}");
        let accepted = wait(&served).remove(0);
        assert_eq!(accepted.error, None, "{tool:?} {kind:?} {role:?}");
        if port != 0 {
            // Nobody holds the port any more.
            TcpListener::bind((LOCALHOST, port)).unwrap();
        }
        let counted = accepted.receiver.is_some().then_some(accepted);
        [Some(report), counted].into_iter().flatten()
    });
    Some(reports.collect())
}

fn spec(
    tool: Tool,
    kind: WorkloadKind,
    flows: Vec<FlowOrder>,
    change: fn(&mut Workload),
) -> RoundSpec {
    let now_ns = monotonic_ns();
    let mut workload = Workload {
        tool,
        segmentation: false,
        ..Workload::of(kind)
    };
    workload.socket.nodelay = false;
    change(&mut workload);
    // netperf alone knows two sizes of buffers.
    if tool != Tool::Netperf {
        workload.socket.receive_buffer_bytes = workload.socket.send_buffer_bytes;
    }
    RoundSpec {
        stage: StageIndex(0),
        round: RoundIndex(0),
        workload,
        connect_at_ns: now_ns,
        start_ns: now_ns + SECOND_NS / 2,
        window_start_ns: now_ns + 3 * SECOND_NS / 2,
        window_ns: SECOND_NS,
        interval_ns: SECOND_NS / 10,
        flows,
    }
}
