//! What others' load costs a few flows: victims alone and under aggressors.
//!
//! The method is GPCNeT's: S. Chunduri et al., "GPCNeT: Designing a Benchmark Suite for Inducing
//! and Measuring Contention in HPC Networks", SC 2019.

use crate::estimate::Estimate;
use crate::workload::WorkloadKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the hosts that are no victims do meanwhile, each over TCP as fast as it goes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Aggressor {
    /// Nothing: what the others are compared with.
    None,
    /// All send to one of them, another one in each repetition.
    Incast,
    /// Each sends to many at once.
    AllToAll,
    /// Each sends to one in another rack and receives from one.
    Permutation,
}

impl Aggressor {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [Self::None, Self::Incast, Self::AllToAll, Self::Permutation];

    /// The word of scenario files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Incast => "incast",
            Self::AllToAll => "all-to-all",
            Self::Permutation => "permutation",
        }
    }
}

/// One load of the victims under one aggressor, against the same load alone.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CongestionImpact {
    /// The stage.
    pub stage: String,
    /// The stage in which the victims were alone.
    pub baseline_stage: String,
    /// What was in the way.
    pub aggressor: Aggressor,
    /// What the victims carry: their figures are times where they ask, rates where they send.
    pub kind: WorkloadKind,
    /// Of the victims' mean.
    pub mean: Impact,
    /// Of the figure that 99% of the victims' transactions (bulk: of their flows) do better than.
    pub p99: Option<Impact>,
    /// What all aggressors together carried, bits per second of payload: median over repetitions.
    pub aggressors_bits_per_sec: Option<Estimate>,
}

/// A figure alone and under an aggressor: ns of a transaction, or bits per second of a flow.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Impact {
    /// Alone: median over repetitions.
    pub alone: f64,
    /// Under the aggressor: median over repetitions.
    pub loaded: f64,
    /// How many times worse, by repetition: 1 is no impact, 3 is three times the time or a third of
    /// the rate.
    pub factor: Estimate,
}
