//! Below expectation, and nothing found explains it.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs that nothing explains, measured too seldom to conclude more.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FlowsUnexplained {
    /// How many flows.
    pub flows: usize,
    /// How many pairs they are of.
    pub pair_count: usize,
    /// The pairs; of many the first.
    pub pairs: Vec<UnexplainedPair>,
    /// The lowest rate over what was expected of it.
    pub worst_share: f64,
    /// Who these flows have in common, most first; of many the first.
    pub hosts: Vec<UnexplainedHost>,
}

/// A pair that nothing explains: medians over its flows.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct UnexplainedPair {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Its flows.
    pub flows: usize,
    /// Measured.
    pub bits_per_sec: f64,
    /// Expected.
    pub expected_bits_per_sec: f64,
}

/// A host with unexplained flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct UnexplainedHost {
    /// Which.
    pub host: HostId,
    /// How many, at either end.
    pub flows: usize,
}

/// A stage that stays below what hosts and paths allow.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StageBelow {
    /// Its name.
    pub stage: String,
    /// Measured over expected throughput, with nothing wrong.
    pub reached_share: f64,
    /// Measured over what hosts and paths as measured allow, median over rounds.
    pub explained_share: f64,
    /// Its rounds.
    pub rounds: usize,
    /// Hosts without CPU to spare may be the limit themselves. `None`: they have some.
    pub cpu: Option<NoCpuLeft>,
}

/// What shows that hosts have no CPU to spare.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum NoCpuLeft {
    /// The senders' CPUs are busy.
    BusySenders {
        /// Share of all their time.
        busy_share: f64,
    },
    /// The receivers' CPUs are busy.
    BusyReceivers {
        /// Share of all their time.
        busy_share: f64,
    },
    /// The I/O threads waited for a CPU, or the hypervisor stole it.
    Starvation {
        /// Flows that it concerns.
        starved_flows: usize,
        /// Of how many.
        flows: usize,
    },
}
