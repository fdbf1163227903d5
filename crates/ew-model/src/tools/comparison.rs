//! Tools side by side: made by `ew-analyze`, worded and shown by `ew-report`.

use super::{Connections, CountedBy, Measures, Statistic};
use crate::estimate::Estimate;
use crate::inventory::HostId;
use crate::workload::{Tool, WorkloadKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One question, answered by every tool that can; our own engine first.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolComparison {
    /// What the flows carried.
    pub kind: WorkloadKind,
    /// In the order of [`Tool::ALL`].
    pub figures: Vec<ToolFigure>,
}

/// One tool's answer.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolFigure {
    /// The stage it comes from.
    pub stage: String,
    /// Who measured.
    pub tool: Tool,
    /// Payload of a flow, bits per second, median over repetitions. `None` for transactions.
    pub bits_per_sec: Option<Estimate>,
    /// Transactions of a flow a second. `None` for bulk, and where a tool does not report.
    pub transactions_per_sec: Option<Estimate>,
    /// Time of a transaction as the tool reports it, in ns: median over repetitions.
    pub time_ns: Option<Estimate>,
    /// The same as a round trip.
    pub round_trip_ns: Option<Estimate>,
    /// Which figure of many the time is.
    pub statistic: Statistic,
    /// What exactly is measured.
    pub facts: FigureFacts,
    /// The engine's figure of the same kind, which it is compared with: a rate in bits per second,
    /// or a round trip in ns by the same statistic. `None` for the engine itself, and where it has
    /// none.
    #[serde(default)]
    pub engines: Option<Estimate>,
    /// How it compares with the engine's figure. Whoever writes it adds its sentences.
    #[serde(skip_serializing)]
    pub standing: Standing,
}

/// What a figure is a figure of, as its tool fixes and reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FigureFacts {
    /// What is timed or counted.
    pub measures: Measures,
    /// Payload of one message.
    pub message_bytes: u64,
    /// Who counts the bytes or the transactions.
    pub counted_by: CountedBy,
    /// How connections are used.
    pub connections: Connections,
    /// Whether small messages leave at once. `None` where there is no such choice.
    pub nodelay: Option<bool>,
    /// Socket buffers.
    pub buffers: FigureBuffers,
    /// The tool's own repetitions. `None` where it does not report any.
    pub repeated: Option<OwnRepetitions>,
}

/// Socket buffers behind a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum FigureBuffers {
    /// Of this size at both ends, as the tool asks for them.
    Tool {
        /// The size.
        bytes: u64,
    },
    /// Tuned by the kernel, and reported by the tool.
    Kernel {
        /// `SO_SNDBUF` of the sender.
        send_bytes: u64,
        /// `SO_RCVBUF` of the receiver.
        receive_bytes: u64,
    },
    /// Tuned by the kernel, and not reported.
    NotReported,
}

/// Tests that a tool repeats by itself, of which its figure is the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct OwnRepetitions {
    /// How many.
    pub tests: u32,
    /// Width of the mean's 95% interval as the tool calculates it, in millionths of the mean.
    pub width_ppm: u32,
}

/// How a tool's figure compares with the engine's.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
pub enum Standing {
    /// It is the engine's.
    Reference,
    /// Even the far ends of their intervals are within 5% of each other.
    Agrees {
        /// Tool over engine less 1.
        difference: f64,
    },
    /// The intervals overlap, but are too wide to conclude that the figures agree.
    NotToldApart {
        /// Tool over engine less 1.
        difference: f64,
    },
    /// The intervals do not overlap.
    Differs {
        /// Tool over engine less 1.
        difference: f64,
        /// What is known to be different; empty when nothing is.
        details: Vec<ToolDifference>,
    },
    /// There is nothing to compare it with, no figure, or no interval.
    Open {
        /// Why.
        details: OpenReason,
    },
}

/// Why a tool's figure is not compared with the engine's.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum OpenReason {
    /// The engine was not run with this workload.
    NoEngine,
    /// The tool has no figure.
    NoFigure {
        /// Why its first flow has none, as recorded. `None`: all flows have one, the tool reports
        /// none of this kind.
        message: Option<String>,
    },
    /// The engine has no figure.
    NoEngineFigure,
    /// There are too few repetitions for an interval.
    NoInterval {
        /// Tool over engine less 1.
        difference: f64,
    },
}

/// What is known to be different between a tool's figure and the engine's.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ToolDifference {
    /// Messages are of different sizes.
    MessageBytes {
        /// The tool's.
        tool_bytes: u64,
        /// The engine's.
        engine_bytes: u64,
    },
    /// The tool times something else.
    Measures {
        /// What.
        measures: Measures,
    },
    /// The sender's own shaper saves up while the other direction is used.
    SavedUp {
        /// Whose shaper.
        host: HostId,
        /// Its queueing discipline.
        qdisc: String,
        /// What it lets pass, bits per second.
        shaped_bits_per_sec: f64,
    },
    /// One sends small messages at once (`TCP_NODELAY`), the other does not.
    Nodelay {
        /// Whether it is the tool.
        tool_has_it: bool,
    },
    /// Socket buffers are fixed at different sizes.
    Buffers {
        /// The tool's. `None`: tuned by the kernel.
        tool_bytes: Option<u64>,
        /// The engine's. `None`: tuned by the kernel.
        engine_bytes: Option<u64>,
    },
    /// The tool found its receive buffer smaller than its send buffer.
    UnequalBuffers {
        /// Send buffer at the end.
        send_bytes: u64,
        /// Receive buffer at the end.
        receive_bytes: u64,
    },
    /// Another end counts.
    CountedBy {
        /// The tool's.
        tool: CountedBy,
        /// The engine's.
        engine: CountedBy,
    },
    /// The tool reports the best of trials, each a mean, and the engine the min of all.
    BestOfTrials,
    /// A few late answers raise the engine's mean far above its median.
    SkewedMean {
        /// The engine's mean.
        mean_ns: u64,
        /// The engine's median.
        median_ns: u64,
    },
}
