//! Tools side by side: made by `ew-analyze`, shown by `ew-report`.

use crate::analysis::Estimate;
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
    /// Which figure of many the time is: "median", "mean", "best of trials".
    pub statistic: String,
    /// What exactly is measured, in parts: what, by whom, connections, message, buffers.
    pub meaning: Vec<String>,
    /// The engine's figure of the same kind, which it is compared with: a rate in bits per second,
    /// or a round trip in ns by the same statistic. `None` for the engine itself, and where it has
    /// none.
    #[serde(default)]
    pub engines: Option<Estimate>,
    /// How it compares with the engine's figure.
    pub standing: Standing,
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
        reasons: Vec<String>,
    },
    /// There is nothing to compare it with, no figure, or no interval.
    Open {
        /// Why.
        reason: String,
    },
}
