//! A link came up slower than its peers' or than configured, at half duplex, or is shaped to less.

use super::SideRates;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link reports a lower speed than it should have.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LowLinkSpeed {
    /// Whose.
    pub host: HostId,
    /// Its data interface.
    pub interface: String,
    /// What it reports.
    pub bits_per_sec: f64,
    /// `full` or `half`, as it reports.
    pub duplex: Option<String>,
    /// What it should be.
    pub expected_bits_per_sec: f64,
    /// That was configured. Else it is what its peers' links report.
    pub is_configured: bool,
    /// What the host sends, where that is slow.
    pub tx_bits_per_sec: Option<f64>,
    /// What the host receives, where that is slow.
    pub rx_bits_per_sec: Option<f64>,
    /// The flows that show it.
    pub flows: SideRates,
}

/// A link runs at half duplex.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HalfDuplex {
    /// Whose.
    pub host: HostId,
    /// Its data interface.
    pub interface: String,
}

/// A queueing discipline of the host's own lets less pass than its peers'.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Shaper {
    /// Whose.
    pub host: HostId,
    /// Its data interface.
    pub interface: String,
    /// The queueing discipline's kind, for example `tbf`.
    pub discipline: String,
    /// What it lets pass.
    pub bits_per_sec: f64,
    /// What its peers' let pass; else their links' speed.
    pub peers_bits_per_sec: f64,
}
