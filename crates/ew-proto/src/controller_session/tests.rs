use super::*;
use crate::frame::encode;
use crate::fuzzing::seeds::{
    progress, report, stage_order, storage_order, storage_report, welcome,
};
use crate::preamble::preamble;
use ew_model::facts::{InterfaceCounters, InterfaceFacts, OsRelease};
use ew_model::telemetry::CauseCounters;

const S: u64 = 1_000_000_000;

fn say(session: &mut ControllerSession, message: &ToController, now_ns: u64) {
    session.handle_bytes(&encode(message).unwrap(), now_ns);
}

fn events(session: &mut ControllerSession) -> Vec<ControllerEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn sent(session: &mut ControllerSession) -> Vec<ToAgent> {
    let mut decoder = FrameDecoder::new();
    let mut messages = vec![];
    while let Some(bytes) = session.poll_transmit() {
        decoder.push(&bytes);
        messages.extend(decoder.next().unwrap());
    }
    messages
}

fn lost_reason(session: &mut ControllerSession) -> String {
    assert!(session.is_closed());
    match events(session).pop() {
        Some(ControllerEvent::Lost { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

fn greeted() -> ControllerSession {
    let mut session = ControllerSession::new("b", HostId(3), 0);
    session.handle_bytes(&preamble("b"), 1);
    assert_eq!(events(&mut session), [ControllerEvent::Hello]);
    session
}

fn ready() -> ControllerSession {
    let mut session = greeted();
    session.welcome(welcome()).unwrap();
    session.handle_timeout(2);
    let facts = HostFacts::default();
    say(
        &mut session,
        &ToController::Ready {
            facts,
            data_port: 9,
        },
        3,
    );
    say(
        &mut session,
        &ToController::Alive {
            agent_ns: 0,
            tx_bytes: 0,
            rx_bytes: 0,
            others: None,
        },
        3,
    );
    assert_eq!(events(&mut session).len(), 2);
    sent(&mut session);
    session
}

fn running() -> (ControllerSession, StageOrder) {
    let mut session = ready();
    let order = stage_order(0, 2, 1);
    session.send_stage(order.clone()).unwrap();
    say(
        &mut session,
        &ToController::StageAccepted { stage: order.stage },
        4,
    );
    session.go(order.stage, 99).unwrap();
    sent(&mut session);
    events(&mut session);
    (session, order)
}

#[test]
fn no_agent_is_lost_with_what_the_host_said() {
    let mut session = ControllerSession::new("b", HostId(3), 0);
    session.handle_bytes(b"bash: permission denied\n", 1);
    assert_eq!(session.poll_timeout(), Some(30 * S));
    session.handle_timeout(30 * S);
    assert!(lost_reason(&mut session).contains("bash: permission denied"));
    let mut session = ControllerSession::new("b", HostId(3), 0);
    session.handle_bytes(b"exec format error\n", 1);
    session.handle_eof(2);
    assert!(lost_reason(&mut session).contains("exec format error"));
}

#[test]
fn progress_is_passed_on_while_its_round_runs() {
    let (mut session, order) = running();
    let reported = progress(&order);
    say(&mut session, &ToController::FlowProgress(reported), 5);
    assert_eq!(
        events(&mut session),
        [ControllerEvent::FlowProgress(reported)]
    );
    say(
        &mut session,
        &ToController::RoundReport(report(&order, 0)),
        6,
    );
    events(&mut session);
    say(&mut session, &ToController::FlowProgress(reported), 7);
    let reason = lost_reason(&mut session);
    assert!(reason.contains("which does not run"), "{reason}");
}

#[test]
fn another_build_is_refused() {
    let mut session = ControllerSession::new("0.2.0", HostId(3), 0);
    session.handle_bytes(&preamble("0.1.0"), 1);
    let reason = lost_reason(&mut session);
    assert!(
        reason.contains("0.1.0") && reason.contains("0.2.0"),
        "{reason}"
    );
    assert!(session.poll_transmit().is_none());
}

#[test]
fn a_greeting_overtaken_by_the_end_is_not_handed_out() {
    let mut session = ControllerSession::new("b", HostId(3), 0);
    session.handle_bytes(&preamble("b"), 1);
    session.handle_eof(2);
    assert!(matches!(
        events(&mut session)[..],
        [ControllerEvent::Lost { .. }]
    ));
}

#[test]
fn heartbeats_go_out_by_themselves_also_after_a_late_welcome() {
    let mut session = greeted();
    assert_eq!(session.poll_timeout(), None, "the caller may take its time");
    session.welcome(welcome()).unwrap();
    assert!(session.poll_timeout().unwrap() <= 100 * S);
    session.handle_timeout(100 * S);
    assert_eq!(sent(&mut session).pop(), Some(ToAgent::Heartbeat));
    assert_eq!(
        session.poll_timeout(),
        Some(100 * S + HEARTBEAT_INTERVAL_NS)
    );
    session.handle_timeout(100 * S + HEARTBEAT_INTERVAL_NS);
    assert_eq!(sent(&mut session), [ToAgent::Heartbeat]);
    assert!(!session.is_closed());
}

#[test]
fn every_heartbeat_has_a_round_trip_of_its_own() {
    let mut session = ready();
    for at_ns in [S, 2 * S] {
        session.handle_timeout(at_ns);
    }
    let alive = ToController::Alive {
        agent_ns: 0,
        tx_bytes: 0,
        rx_bytes: 0,
        others: None,
    };
    say(&mut session, &alive, 2 * S + 5);
    say(&mut session, &alive, 2 * S + 7);
    let round_trips = events(&mut session).into_iter().map(|event| match event {
        ControllerEvent::Alive { rtt_ns, .. } => rtt_ns,
        other => panic!("{other:?}"),
    });
    assert_eq!(round_trips.collect::<Vec<_>>(), [Some(S + 5), Some(7)]);
}

/// An agent whose clock is fast by 100 ppm, from heartbeats alone.
#[test]
fn a_running_stage_learns_how_the_agents_clock_runs() {
    let (mut session, order) = running();
    let stage = order.stage;
    let shown_ns = |now_ns: u64| now_ns + now_ns / 10_000;
    let (mut given, mut moved) = (None, 0);
    for beat in 2..400 {
        let at_ns = beat * HEARTBEAT_INTERVAL_NS;
        session.handle_timeout(at_ns);
        say(
            &mut session,
            &ToController::Alive {
                agent_ns: shown_ns(at_ns + 50_000),
                tx_bytes: 0,
                rx_bytes: 0,
                others: None,
            },
            at_ns + 100_000,
        );
        for message in sent(&mut session) {
            match message {
                ToAgent::Heartbeat => {}
                ToAgent::Retime {
                    stage: of,
                    timeline,
                } => {
                    assert_eq!(of, stage);
                    given = Some(timeline);
                }
                other => panic!("{other:?}"),
            }
        }
        let is_move = |e: &ControllerEvent| matches!(e, ControllerEvent::ClockMoved(_));
        moved += events(&mut session).iter().filter(|e| is_move(e)).count();
    }
    let given = given.unwrap();
    // The stage began at 99 ns.
    for later_ns in [200 * S, 210 * S] {
        let off_ns = given.at(later_ns - 99).abs_diff(shown_ns(later_ns));
        assert!(off_ns < 2 * RETIME_NS, "{off_ns} {given:?}");
    }
    assert!((1..60).contains(&moved), "no more than is needed: {moved}");
}

#[test]
fn a_silent_agent_is_lost_after_the_limit() {
    let mut session = ready();
    let mut now_ns = 0;
    while let Some(at_ns) = session.poll_timeout() {
        now_ns = at_ns;
        session.handle_timeout(now_ns);
    }
    assert_eq!(now_ns, 3 + CONTROLLER_SILENCE_LIMIT_NS);
    assert!(lost_reason(&mut session).contains("silent for 4 s"));
}

#[test]
fn an_estimate_takes_sixteen_exchanges_one_after_the_other() {
    let mut session = ready();
    session.sync(1000).unwrap();
    assert!(session.sync(1000).is_err(), "one at a time");
    for exchange in 0..16u64 {
        let probes = sent(&mut session);
        let [ToAgent::ClockProbe { sequence }] = probes[..] else {
            panic!("{probes:?}");
        };
        let (sent_ns, rtt_ns) = (1000 + exchange * 100, 100);
        let agent_ns = sent_ns + rtt_ns / 2 + 5000;
        say(
            &mut session,
            &ToController::ClockReply { sequence, agent_ns },
            sent_ns + rtt_ns,
        );
    }
    let estimate = ClockEstimate {
        offset_ns: 5000,
        // And a nanosecond for rounding.
        error_ns: 51,
        rtt_ns: 100,
        rate_ppb: None,
    };
    assert_eq!(events(&mut session), [ControllerEvent::Synced(estimate)]);
    assert!(sent(&mut session).is_empty());
}

#[test]
fn a_stage_runs_from_order_to_done() {
    let (mut session, order) = running();
    assert!(session.sync(5).is_err(), "no probes inside a window");
    for index in 0..2 {
        let report = report(&order, index);
        say(&mut session, &ToController::RoundReport(report.clone()), 5);
        assert_eq!(events(&mut session), [ControllerEvent::RoundReport(report)]);
    }
    say(
        &mut session,
        &ToController::StageDone {
            stage: order.stage,
            rejected_connections: 2,
        },
        6,
    );
    let done = ControllerEvent::StageDone {
        stage: order.stage,
        rejected_connections: 2,
    };
    assert_eq!(events(&mut session), [done]);
    session.send_stage(order).unwrap();
}

#[test]
fn what_was_not_asked_for_is_a_violation() {
    let order = stage_order(0, 1, 1);
    let stage = order.stage;
    for message in [
        ToController::RoundReport(report(&order, 0)),
        ToController::StageAccepted { stage },
        ToController::StageRefused {
            stage,
            reason: String::new(),
        },
        ToController::StageDone {
            stage,
            rejected_connections: 0,
        },
        ToController::ClockReply {
            sequence: 0,
            agent_ns: 0,
        },
        ToController::Alive {
            agent_ns: 0,
            tx_bytes: 0,
            rx_bytes: 0,
            others: None,
        },
        ToController::PortsChecked { answers: vec![] },
        ToController::Ready {
            facts: HostFacts::default(),
            data_port: 1,
        },
    ] {
        let mut session = ready();
        say(&mut session, &message, 5);
        assert!(
            lost_reason(&mut session).contains("protocol broken"),
            "{message:?}"
        );
        assert_eq!(sent(&mut session), [ToAgent::Goodbye]);
    }
    let mut session = greeted();
    say(
        &mut session,
        &ToController::Sample(HostSample::default()),
        5,
    );
    lost_reason(&mut session);
}

#[test]
fn reports_against_the_order_are_violations() {
    let (mut session, order) = running();
    say(
        &mut session,
        &ToController::StageDone {
            stage: order.stage,
            rejected_connections: 0,
        },
        5,
    );
    assert!(lost_reason(&mut session).contains("2 rounds unreported"));
    let (mut session, order) = running();
    for _ in 0..2 {
        say(
            &mut session,
            &ToController::RoundReport(report(&order, 0)),
            5,
        );
    }
    assert!(lost_reason(&mut session).contains("before"));
}

#[test]
fn what_crosses_an_abort_does_not_touch_the_next_stage() {
    let (mut session, order) = running();
    session.abort().unwrap();
    session.send_stage(order.clone()).unwrap();
    assert_eq!(session.stage(), Some((order.stage, StagePhase::Offered)));
    let messages = sent(&mut session);
    let [
        ToAgent::Abort,
        ToAgent::ClockProbe { sequence },
        ToAgent::Stage(_),
    ] = messages[..]
    else {
        panic!("{messages:?}");
    };
    say(
        &mut session,
        &ToController::RoundReport(report(&order, 0)),
        5,
    );
    say(
        &mut session,
        &ToController::RoundReport(report(&order, 1)),
        5,
    );
    say(
        &mut session,
        &ToController::StageDone {
            stage: order.stage,
            rejected_connections: 0,
        },
        5,
    );
    assert_eq!(events(&mut session).len(), 2, "what was measured is kept");
    say(
        &mut session,
        &ToController::ClockReply {
            sequence,
            agent_ns: 1,
        },
        6,
    );
    say(
        &mut session,
        &ToController::StageAccepted { stage: order.stage },
        6,
    );
    session.go(order.stage, 100).unwrap();
    assert!(!session.is_closed());
}

#[test]
fn goodbye_ends_with_farewell_or_a_deadline() {
    for mut session in [greeted(), ready(), running().0] {
        sent(&mut session);
        session.goodbye().unwrap();
        session.goodbye().unwrap();
        assert_eq!(sent(&mut session), [ToAgent::Goodbye]);
        session.handle_timeout(10);
        say(&mut session, &ToController::Farewell, 11);
        assert_eq!(events(&mut session), [ControllerEvent::Farewell]);
        assert!(session.is_closed());
    }
    let mut session = greeted();
    session.goodbye().unwrap();
    session.handle_timeout(S);
    assert_eq!(session.poll_timeout(), Some(S + FAREWELL_DEADLINE_NS));
    session.handle_timeout(S + FAREWELL_DEADLINE_NS);
    assert!(lost_reason(&mut session).contains("did not stop"));
    let mut session = ready();
    say(&mut session, &ToController::Farewell, 11);
    let said = events(&mut session);
    assert!(
        matches!(said.as_slice(), [ControllerEvent::Stopped, ControllerEvent::Lost { reason }] if reason.contains("stopped on its host")),
        "{said:?}"
    );
}

#[test]
fn words_from_the_host_cannot_drive_a_terminal() {
    let mut session = ready();
    let message = "\u{1b}[2Jcleared".to_owned();
    say(&mut session, &ToController::Fault { message }, 5);
    let message = " [2Jcleared".to_owned();
    assert_eq!(events(&mut session), [ControllerEvent::Fault { message }]);
}

#[test]
fn no_text_of_a_host_reaches_a_terminal_as_it_came() {
    let evil = || "\u{1b}]0;owned\u{7}".to_owned();
    let facts = HostFacts {
        kernel: evil(),
        hostname: evil(),
        tools: vec![(evil(), evil())],
        interfaces: vec![InterfaceFacts {
            name: evil(),
            driver: Some(evil()),
            ..InterfaceFacts::default()
        }],
        os: Some(Box::new(OsRelease {
            id: evil(),
            id_like: vec![evil()],
            name: evil(),
        })),
        ..HostFacts::default()
    };
    let mut session = greeted();
    session.welcome(welcome()).unwrap();
    let data_port = 4000;
    say(&mut session, &ToController::Ready { facts, data_port }, 5);
    let sample = HostSample {
        interfaces: vec![InterfaceCounters {
            name: evil(),
            ..InterfaceCounters::default()
        }],
        causes: Some(Box::new(CauseCounters {
            driver_counters: vec![(evil(), evil(), 1)],
            unseen: vec![evil()],
            ..CauseCounters::default()
        })),
        ..HostSample::default()
    };
    say(&mut session, &ToController::Sample(sample), 6);
    let events = events(&mut session);
    assert_eq!(events.len(), 2, "{events:?}");
    let shown = format!("{events:?}");
    assert!(
        shown.contains("owned") && !shown.contains("\\u{1b}"),
        "{shown}"
    );
}

#[test]
fn a_flood_of_samples_is_passed_over_and_then_the_end() {
    let sample = encode(&ToController::Sample(HostSample::default())).unwrap();
    let mut session = ready();
    session.handle_bytes(&sample.repeat(500), 5);
    let few = events(&mut session).len();
    assert!((1..500).contains(&few) && !session.is_closed(), "{few}");
    for second in 0..10 {
        session.handle_bytes(&sample.repeat(5000), 5 + second * S);
    }
    assert!(lost_reason(&mut session).contains("more than it was asked for"));
}

#[test]
fn what_waits_for_the_caller_is_bounded() {
    let mut session = ready();
    let alive = ToController::Alive {
        agent_ns: 0,
        tx_bytes: 1,
        rx_bytes: 2,
        others: None,
    };
    session.unanswered_heartbeats = u32::MAX;
    let flood = encode(&alive).unwrap().repeat(MAX_WAITING_EVENTS + 1);
    session.handle_bytes(&flood, 5);
    assert!(session.is_closed());
    assert_eq!(events(&mut session).len(), MAX_WAITING_EVENTS + 1);
}

#[test]
fn a_storage_step_is_reported_once_as_ordered() {
    let order = storage_order(3, 2);
    let report = |order| ToController::StorageReport(Box::new(storage_report(order)));
    let mut session = ready();
    session.send_storage(order.clone()).unwrap();
    assert_eq!(sent(&mut session), [ToAgent::Storage(order.clone())]);
    assert!(session.send_storage(order.clone()).is_err(), "two at once");
    session.end_storage().unwrap();
    assert_eq!(sent(&mut session), [ToAgent::Abort]);
    say(&mut session, &report(&order), 5);
    match events(&mut session).as_slice() {
        [ControllerEvent::StorageReport(got)] => {
            assert_eq!(got.files.len(), 2);
            let words = format!("{:?}", got.files[0].outcome);
            assert!(!words.contains("u{1b}"), "{words}");
        }
        other => panic!("{other:?}"),
    }
    session.end_storage().unwrap();
    assert_eq!(sent(&mut session), [], "nothing to end");
    say(&mut session, &report(&order), 6);
    assert!(session.is_closed(), "reported twice");
}

#[test]
fn a_storage_report_against_the_order_is_a_violation() {
    for stray in [storage_order(4, 2), storage_order(3, 3)] {
        let mut session = ready();
        session.send_storage(storage_order(3, 2)).unwrap();
        let report = Box::new(storage_report(&stray));
        say(&mut session, &ToController::StorageReport(report), 5);
        assert!(session.is_closed(), "{stray:?}");
    }
}

#[test]
fn a_storage_report_may_cross_a_goodbye() {
    let mut session = ready();
    let order = storage_order(3, 2);
    session.send_storage(order.clone()).unwrap();
    session.goodbye().unwrap();
    let report = Box::new(storage_report(&order));
    say(&mut session, &ToController::StorageReport(report), 5);
    assert!(!session.is_closed());
}
