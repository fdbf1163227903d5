//! The receiving host drops packets that reached it.

use super::OwnAndPeers;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host drops more than its peers.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReceiveDrops {
    /// Which.
    pub host: HostId,
    /// Where the max is dropped.
    #[serde(rename = "place")]
    pub location: DropLocation,
    /// Packets dropped there during the capacity tests.
    pub packets: u64,
    /// What is dropped anywhere over what it received.
    pub dropped_share: OwnAndPeers,
}

/// Where a host drops what it received.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "DropPlace")]
pub enum DropLocation {
    /// At TCP sockets, whose program reads too slowly.
    TcpSockets,
    /// At UDP sockets, whose program reads too slowly.
    UdpSockets,
    /// At the interface, for a reason that it does not report.
    Interface,
    /// In the backlog of a CPU (softnet).
    Backlog,
    /// In the ring of the interface.
    Ring,
}
