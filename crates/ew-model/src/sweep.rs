//! A sweep over message sizes after analysis: curves, what they amount to, and where they break.

use crate::estimate::{Estimate, LatencyFigures};
use crate::workload::WorkloadKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One test with `sizes`: all its stages as one curve.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SweepAnalysis {
    /// The test's name.
    pub name: String,
    /// Workload word and tool, for example "tcp-rr (engine)".
    pub workload: String,
    /// The traffic. Bulk: streaming, back to back. Otherwise ping-pong: a message goes, and one of
    /// the same size comes back.
    pub kind: WorkloadKind,
    /// Ascending by size, one per size.
    pub points: Vec<SweepPoint>,
    /// Where half of the full rate is reached. `None` when the curve does not show it. Whoever
    /// writes it adds its sentences, as to the discontinuities and notes.
    #[serde(skip_serializing)]
    pub half_performance: Option<HalfPerformance>,
    /// From where on greater messages bring little more. `None` while the curve still rises at its
    /// end.
    pub saturation: Option<Saturation>,
    /// Where the curve breaks, ascending by size.
    #[serde(skip_serializing)]
    pub steps: Vec<SweepStep>,
    /// What could not be determined of the curve, and why.
    #[serde(default)]
    pub notes: Vec<CurveNote>,
}

/// What could not be determined of a curve, or is odd of it.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum CurveNote {
    /// No size has a figure.
    NothingMeasured,
    /// n1/2 is below the smallest size: even that has more than half of the max rate.
    HalfBelowSmallest,
    /// The rate still rises at the largest size: there is no saturation.
    StillRises {
        /// The largest size.
        message_bytes: u64,
    },
    /// The rate falls again up to the largest size.
    FallsAgain {
        /// Rate there over the max rate.
        share: f64,
        /// The largest size.
        message_bytes: u64,
    },
}

/// One message size; medians over flows and rounds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Payload of a message.
    pub message_bytes: u64,
    /// Payload of one flow in one direction, bits per second. Ping-pong: the size over half the
    /// round trip, as NetPIPE gives it.
    pub bits_per_sec: Option<Estimate>,
    /// One message, ns. Ping-pong: half the median round trip; streaming: the size over the rate.
    pub message_ns: Option<f64>,
    /// Round trips (ping-pong).
    pub round_trip: Option<LatencyFigures>,
    /// Flows without a figure.
    pub missing: u32,
}

/// Hockney's r(n) = r_inf / (1 + n_half / n): the size at which half of the rate of endless
/// messages is reached (Hockney and Jesshope, Parallel Computers 2, 1988).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HalfPerformance {
    /// n1/2, bytes, read off the curve at half of `endless_bits_per_sec`.
    pub bytes: f64,
    /// r_inf: the rate of endless messages.
    pub endless_bits_per_sec: f64,
    /// The fitted line t(n) = t0 + n / r_inf. `None` when a line does not describe the times.
    pub line: Option<TimeLine>,
    /// The max rate of the curve.
    pub max_bits_per_sec: f64,
    /// Sizes of the curve.
    pub sizes: u32,
    /// The stages of the smallest and of the largest size.
    pub stages: [String; 2],
}

/// Time of a message as a straight line over its size.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TimeLine {
    /// t0: what a message costs however small it is, ns.
    pub start_ns: f64,
    /// Slope as a rate, bits per second.
    pub bits_per_sec: f64,
    /// Distance of the times from the line as a share of the time: three in four are nearer.
    pub off: f64,
}

/// The smallest size from which on the rate keeps at least [`Saturation::SHARE`] of the largest
/// one, up to where that is reached.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Saturation {
    /// The size.
    pub message_bytes: u64,
    /// The rate there.
    pub bits_per_sec: f64,
    /// The max rate of the curve.
    pub greatest_bits_per_sec: f64,
}

impl Saturation {
    /// Share of the max rate.
    pub const SHARE: f64 = 0.9;
}

/// A discontinuity of the curve, or sizes whose times are not their own.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SweepStep {
    /// What it looks like.
    pub kind: StepKind,
    /// The last size before it, or the first of the sizes concerned.
    pub from_bytes: u64,
    /// The first size after it, or the last of the sizes concerned.
    pub to_bytes: u64,
    /// Time of a message after it over that before it, the sizes' own ratio taken out: 1.3 is 30%
    /// more than size explains.
    pub factor: f64,
    /// Whether counters or settings show it; otherwise the name only fits the numbers.
    pub certain: bool,
    /// What was measured there.
    pub facts: StepFacts,
}

/// What was measured at a break.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum StepFacts {
    /// Round trips wait for a timer of TCP.
    Timer(TimerWait),
    /// A message takes longer than the size before it explains.
    Boundary(SizeBoundary),
}

/// Round trips of neighbouring sizes that wait for a timer of TCP.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TimerWait {
    /// What they take longer than their size explains: median over the sizes.
    pub excess_ns: u64,
    /// One in a hundred of them waits, not most.
    pub is_rare: bool,
    /// The sizes; of many the first.
    pub sizes: Vec<RoundTripOfSize>,
}

/// Round trips of one size.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RoundTripOfSize {
    /// The size.
    pub message_bytes: u64,
    /// The stage whose rows show it.
    pub stage: String,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Segments retransmitted.
    pub retransmits: u64,
}

/// A step between two sizes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SizeBoundary {
    /// What lies between them.
    pub between: Boundary,
    /// The last size before it, and the first after it.
    pub sizes: [TimeOfSize; 2],
}

/// What lies between two sizes.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Boundary {
    /// A socket's buffer limits the sender from there on.
    FullBuffer {
        /// Share of its busy time.
        limited_share: f64,
    },
    /// The size of the send buffer.
    SendBuffer {
        /// As configured, bytes.
        buffer_bytes: u64,
    },
    /// The size of the receive buffer.
    ReceiveBuffer {
        /// As configured, bytes.
        buffer_bytes: u64,
    },
    /// A size from which on one segment more is needed.
    Segment {
        /// Segments that are enough up to there.
        segments: u64,
        /// Payload of a segment.
        mss_bytes: u64,
    },
    /// The size of a connection's first flight.
    FirstFlight {
        /// Segments of a flight.
        segments: u64,
        /// Payload of a segment.
        mss_bytes: u64,
    },
    /// Not known, as the payload of a segment is not.
    NotDetermined,
    /// No boundary that is known.
    None,
}

/// Time of a message of one size.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TimeOfSize {
    /// The size.
    pub message_bytes: u64,
    /// The stage whose rows show it.
    pub stage: String,
    /// Time of a message.
    pub message_ns: u64,
}

/// What a break looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A message no longer fits one TCP segment, or one more is needed.
    Segment,
    /// A message no longer fits the first flight of a connection (RFC 6928: ten segments).
    InitialWindow,
    /// A message no longer fits a socket's buffer.
    SocketBuffer,
    /// The other side's acknowledgement waits for its timer, and the sender for the
    /// acknowledgement.
    DelayedAck,
    /// A segment was lost and retransmitted when its timer ran out.
    RetransmissionTimeout,
    /// No known boundary is there.
    Unknown,
}
