//! Hosts come in classes of NIC speed.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The classes of a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NicClasses {
    /// Each of them.
    pub classes: Vec<NicClass>,
}

/// Hosts that are alike.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NicClass {
    /// Which.
    pub hosts: Vec<HostId>,
    /// Median rate of their isolated flows.
    pub bits_per_sec: f64,
    /// What their links report, each speed once.
    pub link_speeds_bits_per_sec: Vec<f64>,
}
