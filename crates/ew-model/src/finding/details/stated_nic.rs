//! Hosts do less than the NIC rate that was configured.

use super::SharedLimit;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts below the configured rate.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BelowConfiguredNic {
    /// Which.
    pub hosts: Vec<HostId>,
    /// Median of their slower directions.
    pub bits_per_sec: f64,
    /// What was configured.
    pub configured_bits_per_sec: f64,
    /// What a NIC of that rate carries of payload.
    pub goodput_bits_per_sec: f64,
    /// What limits them all alike. `None` where it is not known.
    pub limit: Option<SharedLimit>,
}
