use super::*;
use crate::frame::encode;
use crate::fuzzing::seeds::{report, stage_order, storage_order, storage_report, welcome};

const S: u64 = 1_000_000_000;

fn feed(session: &mut AgentSession, message: &ToAgent, now_ns: u64) {
    session.handle_bytes(&encode(message).unwrap(), now_ns);
}

fn ready_session() -> AgentSession {
    let mut session = AgentSession::new("b", 0);
    feed(&mut session, &ToAgent::Welcome(welcome()), 1);
    session.ready(HostFacts::default(), 4000).unwrap();
    while session.poll_transmit().is_some() {}
    while session.poll_event().is_some() {}
    session
}

fn sent(session: &mut AgentSession) -> Vec<ToController> {
    let mut decoder = FrameDecoder::new();
    let mut messages = vec![];
    while let Some(bytes) = session.poll_transmit() {
        decoder.push(&bytes);
        messages.extend(decoder.next().unwrap());
    }
    messages
}

fn lost_reason(session: &mut AgentSession) -> String {
    let mut last = None;
    while let Some(event) = session.poll_event() {
        last = Some(event);
    }
    assert!(session.is_closed());
    match last {
        Some(AgentEvent::ControllerLost { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_preamble_goes_first() {
    let mut session = AgentSession::new("b", 0);
    assert_eq!(session.poll_transmit(), Some(preamble("b")));
    assert_eq!(session.poll_timeout(), Some(30 * S));
    session.handle_timeout(30 * S);
    assert!(lost_reason(&mut session).contains("within 30 s"));
}

#[test]
fn a_stage_runs_from_order_to_done() {
    let mut session = ready_session();
    let order = stage_order(0, 2, 1);
    feed(&mut session, &ToAgent::Stage(order.clone()), 2);
    assert_eq!(session.poll_event(), Some(AgentEvent::Stage(order.clone())));
    session.accept(order.stage).unwrap();
    feed(
        &mut session,
        &ToAgent::Go {
            stage: order.stage,
            timeline: Timeline::from_start(99),
        },
        3,
    );
    assert_eq!(
        session.poll_event(),
        Some(AgentEvent::Go {
            stage: order.stage,
            timeline: Timeline::from_start(99)
        })
    );
    session.report(report(&order, 0)).unwrap();
    assert!(
        session.stage_done(order.stage, 0).is_err(),
        "a round is unreported"
    );
    session.report(report(&order, 1)).unwrap();
    session.stage_done(order.stage, 7).unwrap();
    let sent = sent(&mut session);
    assert_eq!(sent.len(), 4);
    assert_eq!(
        sent[3],
        ToController::StageDone {
            stage: order.stage,
            rejected_connections: 7
        }
    );
    assert_eq!(session.stage(), None);
}

#[test]
fn a_timeline_reaches_the_stage_that_runs_and_no_other() {
    let mut session = ready_session();
    let order = stage_order(0, 1, 1);
    let stage = order.stage;
    let timeline = Timeline {
        start_ns: 98,
        rate_ppb: 5,
    };
    let retime = ToAgent::Retime { stage, timeline };
    feed(&mut session, &ToAgent::Stage(order.clone()), 2);
    feed(&mut session, &retime, 2);
    assert_eq!(session.poll_event(), Some(AgentEvent::Stage(order.clone())));
    assert_eq!(session.poll_event(), None, "not started");
    session.accept(stage).unwrap();
    let go = ToAgent::Go {
        stage,
        timeline: Timeline::from_start(99),
    };
    feed(&mut session, &go, 3);
    feed(&mut session, &retime, 4);
    session.poll_event();
    assert_eq!(session.poll_event(), Some(AgentEvent::Retime(timeline)));
    session.report(report(&order, 0)).unwrap();
    session.stage_done(stage, 0).unwrap();
    feed(&mut session, &retime, 5);
    assert_eq!(session.poll_event(), None, "over");
    assert!(!session.is_closed());
}

#[test]
fn probes_and_heartbeats_are_answered_at_once() {
    let mut session = ready_session();
    session.set_totals(5, 6);
    feed(&mut session, &ToAgent::ClockProbe { sequence: 8 }, 1234);
    feed(&mut session, &ToAgent::Heartbeat, 1235);
    assert_eq!(
        sent(&mut session),
        [
            ToController::ClockReply {
                sequence: 8,
                agent_ns: 1234
            },
            ToController::Alive {
                agent_ns: 1235,
                tx_bytes: 5,
                rx_bytes: 6,
                others: None,
            }
        ]
    );
}

#[test]
fn silence_ends_it_within_its_limit() {
    let mut session = ready_session();
    feed(&mut session, &ToAgent::Heartbeat, 10 * S);
    assert_eq!(session.poll_timeout(), Some(14 * S));
    session.handle_timeout(14 * S - 1);
    assert!(!session.is_closed());
    session.handle_timeout(14 * S);
    assert!(lost_reason(&mut session).contains("silent"));
    assert_eq!(session.poll_timeout(), None);
}

#[test]
fn out_of_order_messages_end_it_and_are_told() {
    let go = ToAgent::Go {
        stage: StageIndex(0),
        timeline: Timeline::from_start(1),
    };
    let stage = ToAgent::Stage(stage_order(0, 1, 1));
    let check = ToAgent::CheckPorts(PortCheck {
        peers: vec![],
        with_udp: false,
    });
    for first in [&go, &ToAgent::Heartbeat, &stage, &ToAgent::Abort, &check] {
        let mut session = AgentSession::new("b", 0);
        feed(&mut session, first, 1);
        assert!(
            lost_reason(&mut session).contains("controller"),
            "{first:?}"
        );
    }
    for messages in [
        vec![ToAgent::Welcome(welcome())],
        vec![go],
        vec![stage.clone(), stage.clone()],
        vec![check.clone(), check.clone()],
        vec![check, stage],
        vec![ToAgent::Goodbye, ToAgent::Goodbye],
    ] {
        let mut session = ready_session();
        for message in &messages {
            feed(&mut session, message, 2);
        }
        lost_reason(&mut session);
        assert!(matches!(
            sent(&mut session).last(),
            Some(ToController::Fault { .. })
        ));
    }
}

#[test]
fn an_aborted_stage_takes_no_more_answers() {
    let mut session = ready_session();
    let order = stage_order(0, 1, 1);
    feed(&mut session, &ToAgent::Stage(order.clone()), 2);
    assert!(session.poll_event().is_some());
    feed(&mut session, &ToAgent::Abort, 3);
    let over = CommandError::StageOver { stage: order.stage };
    assert_eq!(session.accept(order.stage), Err(over));
    feed(&mut session, &ToAgent::Abort, 4);
    assert_eq!(session.poll_event(), Some(AgentEvent::Abort));
    assert_eq!(session.poll_event(), None);
}

#[test]
fn what_was_overtaken_before_it_was_seen_is_not_handed_out() {
    let stage = |index| ToAgent::Stage(stage_order(index, 1, 1));
    let mut session = ready_session();
    for message in [stage(0), ToAgent::Abort, stage(1), ToAgent::Abort, stage(2)] {
        feed(&mut session, &message, 2);
    }
    let order = stage_order(2, 1, 1);
    assert_eq!(session.poll_event(), Some(AgentEvent::Stage(order.clone())));
    assert_eq!(session.poll_event(), None);
    session.accept(order.stage).unwrap();
    let go = ToAgent::Go {
        stage: order.stage,
        timeline: Timeline::from_start(9),
    };
    for message in [go, ToAgent::Abort, stage(3), ToAgent::Goodbye] {
        feed(&mut session, &message, 3);
    }
    assert_eq!(session.poll_event(), Some(AgentEvent::Abort));
    assert_eq!(session.poll_event(), Some(AgentEvent::Goodbye));
    assert_eq!(session.poll_event(), None);
    let mut session = AgentSession::new("b", 0);
    feed(&mut session, &ToAgent::Welcome(welcome()), 1);
    feed(&mut session, &ToAgent::Goodbye, 1);
    assert_eq!(session.poll_event(), Some(AgentEvent::Goodbye));
}

#[test]
fn goodbye_is_answered_by_farewell_also_before_the_welcome() {
    for mut session in [AgentSession::new("b", 0), ready_session()] {
        while session.poll_transmit().is_some() {}
        feed(&mut session, &ToAgent::Goodbye, 2);
        assert_eq!(session.poll_event(), Some(AgentEvent::Goodbye));
        session.farewell().unwrap();
        assert_eq!(sent(&mut session), [ToController::Farewell]);
        assert!(session.is_closed());
        session.handle_eof(3);
        assert_eq!(session.poll_event(), None);
    }
}

#[test]
fn port_checks_are_answered_in_kind() {
    let mut session = ready_session();
    assert!(session.ports_checked(vec![]).is_err());
    let peers = vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()];
    let check = PortCheck {
        peers,
        with_udp: true,
    };
    feed(&mut session, &ToAgent::CheckPorts(check), 2);
    let reached = PortAnswer::Reached {
        round_trip_ns: None,
    };
    assert!(session.ports_checked(vec![reached.clone()]).is_err());
    let error = "refused".into();
    session
        .ports_checked(vec![reached, PortAnswer::Unreached { error }])
        .unwrap();
}

#[test]
fn garbage_and_eof_end_it() {
    let mut session = ready_session();
    session.handle_bytes(b"\xff\xff\xff\xffgarbage", 2);
    assert!(lost_reason(&mut session).contains("over the limit"));
    let mut session = ready_session();
    session.handle_eof(2);
    assert!(lost_reason(&mut session).contains("closed"));
}

#[test]
fn a_storage_step_is_reported_also_after_an_abort() {
    let mut session = ready_session();
    let order = storage_order(3, 2);
    feed(&mut session, &ToAgent::Storage(order.clone()), 2);
    assert_eq!(
        session.poll_event(),
        Some(AgentEvent::Storage(order.clone()))
    );
    feed(&mut session, &ToAgent::Abort, 3);
    assert_eq!(session.poll_event(), Some(AgentEvent::Abort));
    let other = Box::new(storage_report(&storage_order(4, 2)));
    assert!(session.storage_done(other).is_err(), "another step");
    let report = Box::new(storage_report(&order));
    session.storage_done(report.clone()).unwrap();
    assert_eq!(sent(&mut session), [ToController::StorageReport(report)]);
    feed(&mut session, &ToAgent::Abort, 4);
    assert_eq!(session.poll_event(), None, "it crossed the report");
    feed(&mut session, &ToAgent::Storage(order), 5);
    feed(&mut session, &ToAgent::Storage(storage_order(4, 2)), 6);
    assert!(lost_reason(&mut session).contains("storage step at hand"));
}

#[test]
fn a_report_of_as_many_files_as_there_may_be_fits() {
    use ew_model::storage::{FileOutcome, MAX_FILES_PER_HOST};
    let mut session = ready_session();
    let order = storage_order(0, MAX_FILES_PER_HOST as u32);
    feed(&mut session, &ToAgent::Storage(order.clone()), 2);
    let mut report = storage_report(&order);
    for record in &mut report.files {
        record.outcome = FileOutcome::Failed {
            error: "x".repeat(400),
        };
    }
    report.interval_bytes = vec![u64::MAX; 2048];
    session.storage_done(Box::new(report)).unwrap();
    assert_eq!(sent(&mut session).len(), 1);
}
