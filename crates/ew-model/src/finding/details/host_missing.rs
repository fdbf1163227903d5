//! Hosts that never came up, or were lost: for good, or until they came back.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts that are missing in the same way.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HostsMissing {
    /// Which.
    pub hosts: Vec<HostId>,
    /// How.
    pub absence: Absence,
    /// Flows with them that have no figure.
    pub missing_flows: usize,
    /// Why each is missing; of many the first.
    pub reasons: Vec<AbsenceReason>,
    /// Why their pods ended, where they are pods, in the launcher's words.
    pub pod_ends: Vec<String>,
}

/// How hosts are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// They never came up.
    NeverCameUp,
    /// They were lost during the run.
    Lost,
    /// They were lost during the run and came back.
    CameBack,
}

/// Why a host is missing.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct AbsenceReason {
    /// Which.
    pub host: HostId,
    /// In the words of whoever noticed.
    pub message: String,
}
