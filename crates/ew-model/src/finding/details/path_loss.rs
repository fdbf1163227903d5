//! Packets are lost on a host's link, or on the way between racks.

use super::Directions;
use crate::inventory::{HostId, RackId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Racks' uplinks lose packets at random.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LossyUplinks {
    /// Those that lose in the same directions, at least one.
    pub racks: Vec<LossyRack>,
    /// The only other rack: the same flows cross its uplinks, so that these may be meant.
    #[serde(default)]
    pub or_rack: Option<RackId>,
    /// Which way, seen from each of `racks`.
    pub directions: Directions,
    /// Share of segments retransmitted by isolated flows, intra-rack or cross-rack, whichever lose
    /// less.
    pub typical_share: f64,
}

/// What the uplinks of one rack lose.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LossyRack {
    /// Whose.
    pub rack: RackId,
    /// Share of segments retransmitted, median over flows.
    pub retransmitted_share: f64,
    /// Flows that show it: isolated, or all at half load.
    pub flows: usize,
}

/// A host's link loses packets at random. At least one side does.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LossOnLink {
    /// Whose.
    pub host: HostId,
    /// Share of the segments retransmitted that it sends, where it is too high.
    pub tx_share: Option<f64>,
    /// Share of the segments retransmitted that it receives, where it is too high.
    pub rx_share: Option<f64>,
    /// The same of isolated flows, intra-rack or cross-rack, whichever lose less.
    pub typical_share: f64,
    /// What the host's own counters saw of it. `None` where they saw nothing.
    pub counted: Option<CountedLoss>,
}

/// Errors and drops of a data interface during the run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CountedLoss {
    /// Its name.
    pub interface: String,
    /// What arrived or left damaged.
    pub errors: u64,
    /// What its queueing disciplines dropped.
    pub drops: u64,
}
