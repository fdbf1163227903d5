//! A host sends or receives slower than its peers.

use super::{Directions, SideRates, Why};
use crate::inventory::{HostId, RackId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host is slow on a side, or on both.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowHost {
    /// Which.
    pub host: HostId,
    /// Its slow sides. One entry for both where they are slow alike.
    pub sides: Vec<SlowDirection>,
    /// What its peers do.
    pub peers_bits_per_sec: f64,
    /// The flows that show it.
    pub flows: SideRates,
    /// Why. `None` where the host's counters do not show it.
    pub why: Option<Why>,
    /// The rack that has no other host, where nothing shows why: its uplinks may be as slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_in: Option<RackId>,
}

/// A slow side, or both.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowDirection {
    /// Which.
    pub directions: Directions,
    /// What it does.
    pub bits_per_sec: f64,
}
