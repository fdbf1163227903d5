//! Flows without a figure.

use crate::analysis::ConntrackRefusals;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows of all stages that have no figure, repairs counted.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FlowsMissing {
    /// How many.
    pub missing: usize,
    /// Of how many.
    pub planned: usize,
    /// The run was interrupted.
    pub is_interrupted: bool,
    /// Whose flows they are: pairs without a missing host, then missing hosts; of many the first.
    pub named: Vec<MissingWith>,
    /// How many pairs and hosts there are to name.
    pub to_name: usize,
    /// Stages by themselves.
    pub stages: Vec<StageMissing>,
    /// Stages without any figure that have the same reason.
    pub empty_stages: Vec<StagesMissing>,
    /// Hosts whose connection tracking refused connections, which then never came up.
    pub refusing: Vec<RefusingHost>,
    /// What keeps pods apart, in the launcher's words.
    pub barriers: Vec<String>,
}

/// Whose missing flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "of")]
pub enum MissingWith {
    /// Of a pair.
    Pair {
        /// Sender.
        src: HostId,
        /// Receiver.
        dst: HostId,
    },
    /// Of a missing host.
    Host {
        /// Which.
        host: HostId,
        /// How many.
        flows: usize,
    },
}

/// A stage with missing flows.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StageMissing {
    /// Its name.
    pub stage: String,
    /// How many.
    pub missing: usize,
    /// Of how many.
    pub planned: usize,
    /// Why the first has no figure.
    pub reason: String,
}

/// Stages without any figure.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StagesMissing {
    /// Their names.
    pub stages: Vec<String>,
    /// Why the first flow of each has no figure.
    pub reason: String,
}

/// A host whose connection tracking refused connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RefusingHost {
    /// Which.
    pub host: HostId,
    /// What it refused.
    pub refused: ConntrackRefusals,
}
