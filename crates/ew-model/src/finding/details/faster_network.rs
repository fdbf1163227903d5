//! Hosts have a faster network than the measured one, and it lay idle.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts with a faster idle interface.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FasterNetwork {
    /// Which.
    pub hosts: Vec<HostId>,
    /// The first one's interface that was measured.
    pub measured: InterfaceRate,
    /// Its faster interface.
    pub faster: InterfaceRate,
    /// It carried less than this share of its speed, 0 to 1.
    pub idle_share: f64,
}

/// An interface and its speed.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct InterfaceRate {
    /// Its name on the host.
    pub interface: String,
    /// What it lets pass.
    pub bits_per_sec: f64,
}
