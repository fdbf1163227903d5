//! Where the curve of a sweep breaks, what it amounts to, and notes on it, in words.

use super::proof;
use ew_model::finding::Evidence;
use ew_model::sweep::{
    Boundary, CurveNote, HalfPerformance, RoundTripOfSize, SizeBoundary, StepFacts, StepKind,
    SweepAnalysis, SweepStep, TimeOfSize, TimerWait,
};
use ew_model::units::{format_bits_per_sec, format_duration_ns, format_whole_bytes};
use schemars::JsonSchema;
use serde::Serialize;

/// A sweep with its sentences, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WordedSweep {
    /// As figures.
    #[serde(flatten)]
    pub sweep: SweepAnalysis,
    /// Where half of the full rate is reached. `None` when the curve does not show it.
    pub half_performance: Option<WordedHalfPerformance>,
    /// Where the curve breaks, ascending by size.
    pub steps: Vec<WordedStep>,
    /// The notes in words.
    pub doubts: Vec<String>,
}

/// Where half of the full rate is reached, with what a person reads of it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "HalfPerformance")]
pub struct WordedHalfPerformance {
    /// As figures.
    #[serde(flatten)]
    pub half: HalfPerformance,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

/// A break of a curve, with what a person reads of it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WordedStep {
    /// As figures.
    #[serde(flatten)]
    pub step: SweepStep,
    /// In one sentence.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

/// The sweep with its sentences.
#[must_use]
pub fn worded_sweep(sweep: &SweepAnalysis) -> WordedSweep {
    WordedSweep {
        sweep: sweep.clone(),
        half_performance: sweep.half_performance.as_ref().map(worded_half),
        steps: sweep.steps.iter().map(worded_step).collect(),
        doubts: sweep.notes.iter().map(note).collect(),
    }
}

fn worded_half(half: &HalfPerformance) -> WordedHalfPerformance {
    let [first, last] = &half.stages;
    let sizes = format!("flows.parquet: {} sizes, `{first}` to `{last}`", half.sizes);
    let max = format!(
        "the max rate is {}",
        format_bits_per_sec(half.max_bits_per_sec)
    );
    let fitted = match half.line {
        Some(line) => format!(
            "the times lie on {} + size / {} within {:.1}% for three in four, which has its half at {}",
            format_duration_ns(line.start_ns as u64),
            format_bits_per_sec(line.bits_per_sec),
            100.0 * line.off,
            format_whole_bytes((line.start_ns * line.bits_per_sec / 8e9) as u64),
        ),
        None => "no straight line describes the times; the max rate is taken as that of endless messages".into(),
    };
    WordedHalfPerformance {
        half: half.clone(),
        evidence: vec![proof(max, sizes.clone()), proof(fitted, sizes)],
    }
}

/// What could not be determined of a curve, or is odd of it.
pub(crate) fn note(note: &CurveNote) -> String {
    match *note {
        CurveNote::NothingMeasured => "nothing was measured".into(),
        CurveNote::HalfBelowSmallest => {
            "even the smallest size has more than half of the max rate, so n1/2 is less".into()
        }
        CurveNote::StillRises { message_bytes } => format!(
            "the rate still rises at {}: greater messages may go faster, and the asymptotic figures are then too low",
            format_whole_bytes(message_bytes)
        ),
        CurveNote::FallsAgain {
            share,
            message_bytes,
        } => format!(
            "the rate falls again to {:.0}% of its max at {}",
            100.0 * share,
            format_whole_bytes(message_bytes)
        ),
    }
}

/// The break with its sentence.
#[must_use]
pub fn worded_step(step: &SweepStep) -> WordedStep {
    let (sentence, evidence) = match &step.facts {
        StepFacts::Timer(wait) => (waits(step, wait), round_trips(wait)),
        StepFacts::Boundary(boundary) => (steps_up(step, boundary), times(boundary)),
    };
    WordedStep {
        step: step.clone(),
        sentence,
        evidence,
    }
}

fn waits(step: &SweepStep, wait: &TimerWait) -> String {
    let which = if wait.is_rare {
        "one in a hundred of "
    } else {
        ""
    };
    let why = match (step.kind, step.certain) {
        (StepKind::DelayedAck, true) => {
            "Nagle's algorithm is on and waits for an acknowledgement that the other side delays; `nodelay: on` ends that"
        }
        (StepKind::DelayedAck, false) => {
            "that is how long Linux delays an acknowledgement, but Nagle's algorithm is off, so what waits for it is not \
             determined"
        }
        (_, false) => {
            "that is the shortest time before Linux retransmits lost segments, but no counter shows a retransmission"
        }
        (_, true) => "segments were lost and retransmitted only when their timer expired",
    };
    format!(
        "{which}round trips of {} take {} longer than their size explains: {why}",
        span(step.from_bytes, step.to_bytes),
        format_duration_ns(wait.excess_ns)
    )
}

fn span(first: u64, last: u64) -> String {
    match first == last {
        true => format_whole_bytes(first),
        false => format!(
            "{} to {}",
            format_whole_bytes(first),
            format_whole_bytes(last)
        ),
    }
}

fn round_trips(wait: &TimerWait) -> Vec<Evidence> {
    let of = |size: &RoundTripOfSize| {
        let p99 = size.p99_ns.map_or(String::new(), |ns| {
            format!(", p99 {}", format_duration_ns(ns))
        });
        proof(
            format!(
                "{}: median round trip {}{p99}, {} segments retransmitted",
                format_whole_bytes(size.message_bytes),
                format_duration_ns(size.p50_ns),
                size.retransmits
            ),
            format!(
                "flows.parquet: stage `{}`, latency, retransmits",
                size.stage
            ),
        )
    };
    wait.sizes.iter().map(of).collect()
}

fn steps_up(step: &SweepStep, boundary: &SizeBoundary) -> String {
    let doubt = if step.certain {
        ""
    } else {
        " (it only fits the numbers)"
    };
    format!(
        "from {} to {} a message takes {:.0}% longer than size explains: {}{doubt}",
        format_whole_bytes(step.from_bytes),
        format_whole_bytes(step.to_bytes),
        100.0 * (step.factor - 1.0),
        between(&boundary.between)
    )
}

fn between(boundary: &Boundary) -> String {
    let lies_there = |name: &str, bytes: u64| {
        let size = format_whole_bytes(bytes);
        format!("the {name} of {size} lies there")
    };
    match boundary {
        Boundary::FullBuffer { limited_share } => format!(
            "a socket's buffer holds the sender back for {:.0}% of its busy time",
            100.0 * limited_share
        ),
        Boundary::SendBuffer { buffer_bytes } => lies_there("send buffer", *buffer_bytes),
        Boundary::ReceiveBuffer { buffer_bytes } => lies_there("receive buffer", *buffer_bytes),
        Boundary::Segment {
            segments,
            mss_bytes,
        } => format!("more than {segments} x {mss_bytes} bytes need one segment more"),
        Boundary::FirstFlight {
            segments,
            mss_bytes,
        } => format!("more than {segments} x {mss_bytes} bytes do not fit the first flight"),
        Boundary::NotDetermined => "not determined".to_owned(),
        Boundary::None => "no boundary that is known lies there".to_owned(),
    }
}

fn times(boundary: &SizeBoundary) -> Vec<Evidence> {
    let of = |size: &TimeOfSize| {
        proof(
            format!(
                "{}: {} a message",
                format_whole_bytes(size.message_bytes),
                format_duration_ns(size.message_ns)
            ),
            format!(
                "flows.parquet: stage `{}`, latency, bytes, tcp_info",
                size.stage
            ),
        )
    };
    boundary.sizes.iter().map(of).collect()
}
