//! Rounds between two engines over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod common;

use common::{LOCALHOST, data_address, engine, order, round, start, wait, with_flows, workload};
use ew_engine::{Engine, EngineConfig, EngineError, RoundSpec};
use ew_model::plan::FlowId;
use ew_model::record::EndRecord;
use ew_model::workload::{Workload, WorkloadKind};
use ew_proto::message::{FlowReport, Role};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

#[test]
fn the_sender_opens() {
    let (sender, receiver) = measure(LOCALHOST, stream(1), true);
    check_stream_flow(&sender, &receiver, 1);
}

#[test]
fn the_receiver_opens() {
    let (sender, receiver) = measure(LOCALHOST, stream(1), false);
    check_stream_flow(&sender, &receiver, 1);
}

#[test]
fn several_streams() {
    let (sender, receiver) = measure(LOCALHOST, stream(4), true);
    check_stream_flow(&sender, &receiver, 4);
}

#[test]
fn over_ipv6() {
    let address = IpAddr::V6(Ipv6Addr::LOCALHOST);
    if TcpListener::bind((address, 0)).is_err() {
        println!("skipped: this host has no IPv6 loopback address");
        return;
    }
    let (sender, receiver) = measure(address, stream(2), false);
    check_stream_flow(&sender, &receiver, 2);
}

/// As through a Kubernetes Service: the opener sees another address than the peer listens at.
#[test]
fn through_a_translated_address() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let peer = data_address(&far, LOCALHOST);
    let service = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 9), 0)).unwrap();
    let translated = service.local_addr().unwrap();
    std::thread::spawn(move || relay(&service.accept().unwrap().0, peer));
    let spec = round(stream(1));
    let accepting = order(5, Role::Receive, false, data_address(&near, LOCALHOST));
    let received = start(&far, with_flows(&spec, vec![accepting]));
    let sending = order(5, Role::Send, true, peer).through(translated);
    let sent = wait(&start(&near, with_flows(&spec, vec![sending]))).remove(0);
    let received = wait(&received).remove(0);
    assert_eq!((&sent.error, &received.error), (&None, &None));
    assert!(received.receiver.unwrap().bytes > 1 << 16);
}

/// Both directions, until either end closes.
fn relay(client: &TcpStream, peer: SocketAddr) {
    let server = TcpStream::connect(peer).unwrap();
    let (mut from_server, mut to_client) =
        (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
    let (mut from_client, mut to_server) = (client, &server);
    // What is broken off shows in the ends' reports.
    let _ = std::io::copy(&mut from_client, &mut to_server);
    let _ = server.shutdown(Shutdown::Both);
}

/// A connection that opens and then carries nothing has no figure, and counts that say so.
#[test]
fn silence_after_the_hello_is_an_error_with_counts() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let peer = data_address(&far, LOCALHOST);
    let way = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let stalling = way.local_addr().unwrap();
    std::thread::spawn(move || relay_hello(&way.accept().unwrap().0, peer));
    let spec = round(workload(WorkloadKind::TcpRr, 1, 64));
    let accepting = order(5, Role::Receive, false, data_address(&near, LOCALHOST));
    let received = start(&far, with_flows(&spec, vec![accepting]));
    let sending = order(5, Role::Send, true, peer).through(stalling);
    let sent = wait(&start(&near, with_flows(&spec, vec![sending]))).remove(0);
    let received = wait(&received).remove(0);
    let expected = "send to 127.0.0.1: no data moved in the window";
    assert_eq!(sent.error.as_deref(), Some(expected));
    let expected = "receive from 127.0.0.1: no data came in the window";
    assert_eq!(received.error.as_deref(), Some(expected));
    assert_eq!((sent.standing, received.standing), (None, None));
    let (sender, receiver) = (sent.sender.unwrap(), received.receiver.unwrap());
    assert_eq!((sender.bytes, receiver.bytes), (0, 0));
    assert_eq!((sender.streams.len(), receiver.streams.len()), (1, 1));
}

/// What opens the connection, and its answer; of the rest nothing.
fn relay_hello(mut client: &TcpStream, peer: SocketAddr) {
    let server = TcpStream::connect(peer).unwrap();
    let mut answers = server.try_clone().unwrap();
    let mut to_client = client.try_clone().unwrap();
    std::thread::spawn(move || std::io::copy(&mut answers, &mut to_client));
    // The opener waits for the answer before it says more.
    let mut hello = [0; 1024];
    let length = client.read(&mut hello).unwrap();
    (&server).write_all(&hello[..length]).unwrap();
    // Until the engine closes: then the other is to know.
    let _ = std::io::copy(&mut client, &mut std::io::sink());
    let _ = server.shutdown(Shutdown::Both);
}

/// What the sender's connections report while the round goes on, and nothing once it is over or of
/// another flow.
#[test]
fn a_running_round_tells_what_the_receiver_acknowledged() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let peer = data_address(&far, LOCALHOST);
    let spec = round(stream(2));
    let accepting = order(9, Role::Receive, false, data_address(&near, LOCALHOST));
    let received = start(&far, with_flows(&spec, vec![accepting]));
    let (done, sent) = channel();
    let sending = with_flows(&spec, vec![order(9, Role::Send, true, peer)]);
    let reported = Box::new(move |reports| done.send(reports).unwrap_or(()));
    let running = near.run_round(sending, reported).unwrap();
    assert_eq!(running.sent_over_tcp(FlowId(8)), None, "no such flow");
    let mut acked_bytes = 0;
    while let Err(TryRecvError::Empty) = sent.try_recv() {
        let now = running.sent_over_tcp(FlowId(9));
        acked_bytes = acked_bytes.max(now.map_or(0, |now| now.acked_bytes));
        std::thread::sleep(Duration::from_millis(5));
    }
    wait(&received);
    // Far more than what opens a connection.
    assert!(acked_bytes > 1 << 16, "{acked_bytes}");
    assert_eq!(running.sent_over_tcp(FlowId(9)), None, "closed");
}

#[test]
fn both_directions_and_two_flows_at_once_report_in_order() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let (near_port, far_port) = (
        data_address(&near, LOCALHOST),
        data_address(&far, LOCALHOST),
    );
    let spec = round(stream(1));
    let near_end = vec![
        order(9, Role::Send, true, far_port),
        order(3, Role::Receive, false, far_port),
    ];
    let far_end = vec![
        order(3, Role::Send, true, near_port),
        order(9, Role::Receive, false, near_port),
    ];
    let far_reports = start(&far, with_flows(&spec, far_end));
    let near_reports = wait(&start(&near, with_flows(&spec, near_end)));
    let ids: Vec<_> = near_reports.iter().map(|r| r.flow.0).collect();
    assert_eq!(ids, [9, 3]);
    for report in near_reports.iter().chain(&wait(&far_reports)) {
        assert_eq!(report.error, None);
    }
    assert!(near.totals().tx_bytes > 0 && near.totals().rx_bytes > 0);
}

#[test]
fn requests_are_answered_and_timed() {
    let (sender, receiver) = measure(LOCALHOST, workload(WorkloadKind::TcpRr, 2, 64), true);
    let (sender, receiver) = (sender_end(&sender), receiver_end(&receiver));
    let latency = sender.latency.as_ref().unwrap().times.summary().unwrap();
    assert!(latency.count > 0);
    assert!(latency.min_ns <= latency.p50_ns && latency.p50_ns <= latency.p99_ns);
    assert!(latency.min_ns <= latency.mean_ns && latency.mean_ns <= latency.max_ns);
    assert!(sender.bytes > 0 && receiver.bytes > 0);
    assert_eq!(receiver.latency, None);
}

#[test]
fn nobody_listens() {
    let lonely = engine(LOCALHOST);
    let port = TcpListener::bind((LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let spec = round(stream(1));
    let flows = vec![order(0, Role::Send, true, port)];
    let reports = wait(&start(&lonely, with_flows(&spec, flows)));
    let expected = format!("connect {port}: Connection refused (os error 111)");
    assert_eq!(error_of(&reports), expected);
}

#[test]
fn the_peer_does_not_know_the_round() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let flows = vec![order(0, Role::Send, true, data_address(&far, LOCALHOST))];
    let reports = wait(&start(&near, with_flows(&round(stream(1)), flows)));
    assert!(error_of(&reports).starts_with("connect 127.0.0.1:"));
    assert!(reports[0].sender.is_none() && reports[0].receiver.is_none());
}

#[test]
fn the_peer_never_comes() {
    let lonely = engine(LOCALHOST);
    let flows = vec![order(
        0,
        Role::Receive,
        false,
        data_address(&lonely, LOCALHOST),
    )];
    let reports = wait(&start(&lonely, with_flows(&round(stream(1)), flows)));
    assert_eq!(
        error_of(&reports),
        "accept from 127.0.0.1: no connection came before the round's start"
    );
}

#[test]
fn a_peer_that_vanishes_in_the_window_leaves_an_error_and_no_figure() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let spec = RoundSpec {
        window_ns: 2_000_000_000,
        ..round(stream(2))
    };
    let (near_reports, far_reports) = start_pair(&near, &far, LOCALHOST, &spec, true);
    // The window begins 850 ms from the round's making.
    std::thread::sleep(Duration::from_millis(1300));
    drop(far);
    assert!(error_of(&wait(&far_reports)).contains("aborted"));
    let reports = wait(&near_reports);
    assert!(error_of(&reports).contains(" of 2: send to 127.0.0.1:"));
    assert!(reports[0].sender.is_none());
}

/// A peer whose clock is ahead stops while this end still counts.
#[test]
fn a_window_is_cut_at_the_peers_stop() {
    const APART_NS: u64 = 150_000_000;
    let ahead = RoundSpec {
        window_ns: 1_200_000_000,
        ..round(stream(2))
    };
    let behind = RoundSpec {
        start_ns: ahead.start_ns + APART_NS,
        window_start_ns: ahead.window_start_ns + APART_NS,
        ..ahead.clone()
    };
    for (sending, receiving) in [(&ahead, &behind), (&behind, &ahead)] {
        let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
        let (to_near, to_far) = (
            data_address(&near, LOCALHOST),
            data_address(&far, LOCALHOST),
        );
        let accepting = vec![order(5, Role::Receive, false, to_near)];
        let received = start(&far, with_flows(&restarted(receiving), accepting));
        let opening = vec![order(5, Role::Send, true, to_far)];
        let sent = start(&near, with_flows(&restarted(sending), opening));
        let (sent, received) = (wait(&sent), wait(&received));
        assert_eq!((&sent[0].error, &received[0].error), (&None, &None));
        let (sender, receiver) = (sender_end(&sent), receiver_end(&received));
        let (cut, whole) = match sending.start_ns < receiving.start_ns {
            true => (receiver, sender),
            false => (sender, receiver),
        };
        let lost_ns = whole.window_ns.saturating_sub(cut.window_ns);
        assert!((50_000_000..300_000_000).contains(&lost_ns), "{lost_ns}");
        let counted: u64 = cut.intervals.iter().map(|i| i.length_ns).sum();
        assert_eq!(counted, cut.window_ns);
        assert_eq!(sum_of_intervals(cut), cut.bytes);
    }
}

fn sum_of_intervals(end: &EndRecord) -> u64 {
    end.intervals.iter().map(|interval| interval.bytes).sum()
}

/// The same round with its connections from now on.
fn restarted(spec: &RoundSpec) -> RoundSpec {
    let later_ns = ew_sys::clock::monotonic_ns() - spec.connect_at_ns;
    RoundSpec {
        connect_at_ns: spec.connect_at_ns + later_ns,
        start_ns: spec.start_ns + later_ns,
        window_start_ns: spec.window_start_ns + later_ns,
        ..spec.clone()
    }
}

#[test]
fn an_abort_ends_a_long_round() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let spec = RoundSpec {
        window_ns: 3_600_000_000_000,
        ..round(stream(1))
    };
    let (near_reports, far_reports) = start_pair(&near, &far, LOCALHOST, &spec, true);
    std::thread::sleep(Duration::from_millis(500));
    near.abort();
    assert!(error_of(&wait(&near_reports)).contains("aborted"));
    far.abort();
    // Its peer's end may be seen before the abort.
    assert!(!error_of(&wait(&far_reports)).is_empty());
}

#[test]
fn an_abort_before_the_round_begins() {
    let lonely = engine(LOCALHOST);
    let hour_ns = 3_600_000_000_000;
    let mut spec = round(stream(1));
    spec.connect_at_ns += hour_ns;
    spec.start_ns += hour_ns;
    spec.window_start_ns += hour_ns;
    let flows = vec![order(0, Role::Send, true, data_address(&lonely, LOCALHOST))];
    let reports = start(&lonely, with_flows(&spec, flows));
    lonely.abort();
    assert!(error_of(&wait(&reports)).contains("aborted"));
}

#[test]
fn rounds_follow_each_other_on_the_same_engines() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    for number in 0..3 {
        let mut spec = round(stream(1));
        spec.round.0 = number;
        let (near_reports, far_reports) =
            start_pair(&near, &far, LOCALHOST, &spec, number % 2 == 0);
        check_stream_flow(&wait(&near_reports), &wait(&far_reports), 1);
    }
    assert_eq!(
        near.totals().rejected_connections + far.totals().rejected_connections,
        0
    );
}

#[test]
fn impossible_rounds_are_refused() {
    let engine = engine(LOCALHOST);
    let refused = |change: fn(&mut RoundSpec)| {
        let mut spec = round(stream(1));
        change(&mut spec);
        let done = Box::new(|_| panic!("a refused round must not report"));
        engine.run_round(spec, done).unwrap_err().to_string()
    };
    assert!(refused(|s| s.workload.streams = 0).contains("0 streams"));
    assert!(refused(|s| s.workload.message_bytes = 0).contains("message size 0"));
    assert!(refused(|s| s.window_ns = 0).contains("not in order"));
    assert!(refused(|s| s.start_ns = s.window_start_ns + 1).contains("not in order"));
    assert!(refused(|s| s.interval_ns = 1).contains("interval"));
}

#[test]
fn a_taken_range_and_a_foreign_address_are_told_apart() {
    let first = engine(LOCALHOST);
    let start_on = |address, port| {
        Engine::start(EngineConfig {
            address,
            ports: (port, port),
            token: common::TOKEN,
            relay_key: None,
        })
    };
    let taken = start_on(LOCALHOST, first.port()).unwrap_err();
    assert!(matches!(taken, EngineError::NoFreePort { .. }), "{taken}");
    let foreign = start_on(IpAddr::V4(Ipv4Addr::new(198, 19, 255, 254)), 0).unwrap_err();
    assert!(matches!(foreign, EngineError::Address { .. }), "{foreign}");
}

fn stream(streams: u32) -> Workload {
    workload(WorkloadKind::TcpStream, streams, 128 * 1024)
}

/// Runs one flow and gives the sender's and the receiver's reports.
fn measure(
    address: IpAddr,
    workload: Workload,
    sender_opens: bool,
) -> (Vec<FlowReport>, Vec<FlowReport>) {
    let (near, far) = (engine(address), engine(address));
    let spec = round(workload);
    let (near_reports, far_reports) = start_pair(&near, &far, address, &spec, sender_opens);
    let reports = (wait(&near_reports), wait(&far_reports));
    assert_eq!(
        near.totals().rejected_connections + far.totals().rejected_connections,
        0
    );
    reports
}

type Reports = std::sync::mpsc::Receiver<Vec<FlowReport>>;

/// Flow 5, from near to far.
fn start_pair(
    near: &Engine,
    far: &Engine,
    address: IpAddr,
    spec: &RoundSpec,
    sender_opens: bool,
) -> (Reports, Reports) {
    let (near_port, far_port) = (data_address(near, address), data_address(far, address));
    let send = vec![order(5, Role::Send, sender_opens, far_port)];
    let receive = vec![order(5, Role::Receive, !sender_opens, near_port)];
    (
        start(near, with_flows(spec, send)),
        start(far, with_flows(spec, receive)),
    )
}

fn check_stream_flow(sender: &[FlowReport], receiver: &[FlowReport], streams: usize) {
    let (sender, receiver) = (sender_end(sender), receiver_end(receiver));
    for end in [sender, receiver] {
        assert!(end.bytes > 0);
        assert!(end.window_ns > 0);
        assert_eq!(end.streams.len(), streams);
        assert_eq!(end.bytes, end.streams.iter().map(|s| s.bytes).sum::<u64>());
        assert_eq!(
            end.bytes,
            end.intervals.iter().map(|i| i.bytes).sum::<u64>()
        );
        assert_eq!(end.intervals.len(), 3);
        assert!(end.start_skew_ns >= 0);
        assert!(end.streams.iter().all(|s| s.tcp_info.is_some()));
        assert!(end.streams.iter().all(|s| s.retransmits.is_some()));
    }
    let ports = |end: &EndRecord, swap: bool| {
        let mut ports: Vec<_> = end
            .streams
            .iter()
            .map(|s| (s.local_port, s.peer_port))
            .collect();
        if swap {
            ports.iter_mut().for_each(|p| *p = (p.1, p.0));
        }
        ports
    };
    assert_eq!(ports(sender, false), ports(receiver, true));
}

fn sender_end(reports: &[FlowReport]) -> &EndRecord {
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].error, None);
    assert!(reports[0].receiver.is_none());
    reports[0].sender.as_ref().unwrap()
}

fn receiver_end(reports: &[FlowReport]) -> &EndRecord {
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].error, None);
    assert!(reports[0].sender.is_none());
    reports[0].receiver.as_ref().unwrap()
}

fn error_of(reports: &[FlowReport]) -> &str {
    assert_eq!(reports.len(), 1);
    reports[0].error.as_deref().unwrap()
}

#[test]
fn a_late_peer_does_not_hold_up_the_others_of_its_thread() {
    let (near, prompt, late) = (engine(LOCALHOST), engine(LOCALHOST), engine(LOCALHOST));
    let mut spec = round(Workload {
        threads: Some(1),
        ..stream(1)
    });
    // Half of the warm-up is left for connections that come late.
    spec.window_start_ns += 2_000_000_000;
    let near_port = data_address(&near, LOCALHOST);
    let flow = |flow, engine| order(flow, Role::Send, true, data_address(engine, LOCALHOST));
    let receive = |flow| vec![order(flow, Role::Receive, false, near_port)];
    let prompt_reports = start(&prompt, with_flows(&spec, receive(1)));
    let near_reports = start(
        &near,
        with_flows(&spec, vec![flow(1, &prompt), flow(2, &late)]),
    );
    std::thread::sleep(Duration::from_millis(1200));
    let late_reports = start(&late, with_flows(&spec, receive(2)));
    let sent = wait(&near_reports);
    for report in sent
        .iter()
        .chain(&wait(&prompt_reports))
        .chain(&wait(&late_reports))
    {
        assert_eq!(report.error, None);
    }
    let skew_ns = |report: &FlowReport| report.sender.as_ref().unwrap().start_skew_ns;
    assert!(skew_ns(&sent[0]) < 300_000_000, "{}", skew_ns(&sent[0]));
    assert!(skew_ns(&sent[1]) > 300_000_000, "{}", skew_ns(&sent[1]));
}
