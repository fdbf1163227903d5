//! The run manifest `run.json`, and a run read back.

use crate::barrier::Barrier;
use crate::facts::{HostFacts, HostSample};
use crate::inventory::{HostId, Inventory};
use crate::plan::Plan;
use crate::record::FlowRecord;
use crate::scenario::Scenario;
use crate::storage::{HdfsFacts, StorageStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Still running, or cut short.
    Unfinished,
    /// Every planned host pair was measured.
    Complete,
    /// Hosts or host pairs are missing.
    Partial,
    /// The user stopped it.
    Interrupted,
    /// It could not be done.
    Failed,
}

/// `run.json`: who, what, when, how it ended.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RunManifest {
    /// Layout version of the run directory; readers read all older ones.
    pub format_version: u32,
    /// `<utc-time>-<scenario>-<id>`, also the directory's name.
    pub id: String,
    /// eastwest's version.
    pub version: String,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// Wall clock at end.
    pub finished_unix_ns: Option<u64>,
    /// ssh, local, lab, ...
    pub fleet: String,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The scenario as run.
    pub scenario: Scenario,
    /// The hosts as run.
    pub inventory: Inventory,
    /// Labels of the cluster's nodes by name, where the hosts are nodes of Kubernetes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, BTreeMap<String, String>>,
    /// What kept pods apart or ended them, where something is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barriers: Vec<Barrier>,
    /// The seed of all random choices.
    pub seed: u64,
    /// 64-bit FNV-1a of the plan's JSON, hexadecimal.
    pub plan_hash: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Controller's peak resident memory. `None` when unknown.
    pub controller_peak_bytes: Option<u64>,
    /// Controller's CPU time, user and system.
    pub controller_cpu_ns: Option<u64>,
}

impl RunManifest {
    /// Arguments that make the same plan again: the command's own, and the seed where it was
    /// random. Empty: there is no command on record.
    #[must_use]
    pub fn repeating_arguments(&self) -> Vec<String> {
        // `demo` has a seed of its own and takes none.
        const TAKE_SEEDS: [&str; 5] = ["run", "pair", "latency", "mesh", "congestion"];
        let mut arguments: Vec<String> = self.command.iter().skip(1).cloned().collect();
        let has_seed = |word: &String| word == "--seed" || word.starts_with("--seed=");
        let takes_seed = |word: &String| TAKE_SEEDS.contains(&word.as_str());
        if arguments.iter().any(takes_seed) && !arguments.iter().any(has_seed) {
            arguments.extend(["--seed".to_owned(), self.seed.to_string()]);
        }
        arguments
    }
}

/// A run read back: the manifest and everything its events report, folded. Raw; `ew-analyze`
/// derives from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `run.json`.
    pub manifest: RunManifest,
    /// The plan as started.
    pub plan: Plan,
    /// Facts of every host that came up.
    pub facts: BTreeMap<HostId, HostFacts>,
    /// Hosts that never came up, with the launcher's words.
    pub failed: BTreeMap<HostId, String>,
    /// Hosts that were lost and did not return, with how it was noticed.
    pub lost: BTreeMap<HostId, String>,
    /// Hosts that were lost and came back, with how the loss was noticed.
    pub returned: BTreeMap<HostId, String>,
    /// All rows, repair rounds included, in order of arrival. A pair that was measured later has
    /// its missing row and a measured one.
    pub flows: Vec<FlowRecord>,
    /// Last estimate per host of its agent's monotonic clock minus the controller's.
    pub clock_offset_ns: BTreeMap<HostId, i64>,
    /// Last clock error bound per host.
    pub clock_error_ns: BTreeMap<HostId, u64>,
    /// Raw host counters, in order of time; of large runs not every reading.
    pub samples: BTreeMap<HostId, Vec<HostSample>>,
    /// Connections refused at the data port.
    pub rejected_connections: BTreeMap<HostId, u64>,
    /// Warnings in order.
    pub warnings: Vec<String>,
    /// Hosts whose cleanup was not confirmed at the end, by name, with the reason.
    pub unclean: Vec<(String, String)>,
    /// Steps of a storage job, in order; empty in runs of flows.
    pub storage: Vec<StorageStep>,
    /// What the NameNode reported before them. `None` elsewhere, and where it was not reached.
    pub hdfs: Option<HdfsFacts>,
}
