//! Flow completion times: how many times longer messages take at a load than alone, by their size.

use crate::estimate::Estimate;
use crate::sizes::SizeDistribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The messages of one stage against the same sizes alone on the idle network.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FlowCompletion {
    /// The stage.
    pub stage: String,
    /// The stage in which messages went one at a time.
    pub baseline_stage: String,
    /// How long the messages are.
    pub distribution: SizeDistribution,
    /// What was to be offered, as a share of the hosts' line rate. `None`: one message at a time,
    /// which shows how well the baseline repeats.
    pub load: Option<f64>,
    /// What was carried, in the same measure, of all senders together; by repetition. Less than
    /// `load` where hosts or links are saturated.
    pub achieved_load: Option<Estimate>,
    /// Ascending; those that were measured alone.
    pub sizes: Vec<SizeSlowdown>,
}

/// Messages of one size. A slowdown is a completion time over the median completion time of the
/// same size alone: of the same pass, or (where the stage is the baseline itself) of all other
/// passes.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SizeSlowdown {
    /// Of each message.
    pub bytes: u64,
    /// Of the distribution's messages, 0 to 1.
    pub share: f64,
    /// Messages that were completed.
    pub messages: u64,
    /// Alone, ns: the median over passes of the median time.
    pub alone_ns: f64,
    /// Of the median time, by pass. `None` where none was completed.
    pub p50: Option<Estimate>,
    /// Of the time that 99% of the messages do not exceed: by pass, or of all passes together where
    /// one has too few messages. `None` where all have.
    pub p99: Option<Estimate>,
}
