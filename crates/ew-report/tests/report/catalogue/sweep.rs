//! Where curves break, what they amount to, and notes on them.

use crate::sweeps;
use ew_model::sweep::{
    Boundary, CurveNote, RoundTripOfSize, SizeBoundary, StepFacts, StepKind, SweepStep, TimeOfSize,
    TimerWait,
};
use std::fmt::Write;

#[test]
fn by_every_timer_and_boundary() {
    let mut text = String::new();
    for step in steps() {
        let found = ew_report::worded_step(&step);
        writeln!(text, "# {:?}\n{}", step.kind, found.sentence).unwrap();
        for evidence in &found.evidence {
            writeln!(text, "- {} [{}]", evidence.text, evidence.source).unwrap();
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}

#[test]
fn half_performance_rests_on_a_line_or_on_the_curve() {
    let mut sweep = sweeps::swept().sweeps.remove(0);
    let mut text = String::new();
    for case in ["a line", "no line"] {
        let half = ew_report::worded_sweep(&sweep).half_performance.unwrap();
        writeln!(text, "# {case}").unwrap();
        for evidence in &half.evidence {
            writeln!(text, "- {} [{}]", evidence.text, evidence.source).unwrap();
        }
        sweep.half_performance.as_mut().unwrap().line = None;
    }
    insta::assert_snapshot!(text);
}

#[test]
fn what_could_not_be_determined() {
    let mut sweep = sweeps::swept().sweeps.remove(0);
    sweep.notes = notes();
    insta::assert_snapshot!(ew_report::worded_sweep(&sweep).doubts.join("\n"));
}

/// One of each kind.
pub(crate) fn notes() -> Vec<CurveNote> {
    let message_bytes = 1 << 20;
    vec![
        CurveNote::NothingMeasured,
        CurveNote::HalfBelowSmallest,
        CurveNote::StillRises { message_bytes },
        CurveNote::FallsAgain {
            share: 0.456,
            message_bytes,
        },
    ]
}

/// One of each kind, certain or not.
pub(crate) fn steps() -> Vec<SweepStep> {
    let timer = |kind, certain| timer_step(kind, certain, 2045..4099, false);
    let mss_bytes = 1448;
    let buffer_bytes = 65_536;
    let boundary = |kind, certain, between| boundary_step(kind, certain, between);
    vec![
        timer(StepKind::DelayedAck, true),
        timer(StepKind::DelayedAck, false),
        timer(StepKind::RetransmissionTimeout, true),
        timer(StepKind::RetransmissionTimeout, false),
        timer_step(StepKind::DelayedAck, true, 64..64, true),
        boundary(
            StepKind::SocketBuffer,
            true,
            Boundary::FullBuffer {
                limited_share: 0.62,
            },
        ),
        boundary(
            StepKind::SocketBuffer,
            false,
            Boundary::SendBuffer { buffer_bytes },
        ),
        boundary(
            StepKind::SocketBuffer,
            false,
            Boundary::ReceiveBuffer { buffer_bytes },
        ),
        boundary(
            StepKind::Segment,
            true,
            Boundary::Segment {
                segments: 1,
                mss_bytes,
            },
        ),
        boundary(
            StepKind::InitialWindow,
            false,
            Boundary::FirstFlight {
                segments: 10,
                mss_bytes,
            },
        ),
        boundary(StepKind::Unknown, false, Boundary::NotDetermined),
        boundary(StepKind::Unknown, false, Boundary::None),
    ]
}

fn timer_step(
    kind: StepKind,
    certain: bool,
    sizes: std::ops::Range<u64>,
    is_rare: bool,
) -> SweepStep {
    let round_trip = |message_bytes: u64, p99_ns| RoundTripOfSize {
        message_bytes,
        stage: format!("ping-pong {message_bytes} B"),
        p50_ns: 41_100_000,
        p99_ns,
        retransmits: u64::from(kind == StepKind::RetransmissionTimeout && certain),
    };
    SweepStep {
        kind,
        from_bytes: sizes.start,
        to_bytes: sizes.end,
        factor: 800.0,
        certain,
        facts: StepFacts::Timer(TimerWait {
            excess_ns: 40_980_000,
            is_rare,
            sizes: vec![
                round_trip(sizes.start, None),
                round_trip(sizes.end, Some(82_000_000)),
            ],
        }),
    }
}

fn boundary_step(kind: StepKind, certain: bool, between: Boundary) -> SweepStep {
    let time = |message_bytes: u64, message_ns| TimeOfSize {
        message_bytes,
        stage: format!("ping-pong {message_bytes} B"),
        message_ns,
    };
    SweepStep {
        kind,
        from_bytes: 1448,
        to_bytes: 1451,
        factor: 1.284,
        certain,
        facts: StepFacts::Boundary(SizeBoundary {
            between,
            sizes: [time(1448, 21_160), time(1451, 27_160)],
        }),
    }
}
