//! What several kinds of findings have in them.

use crate::inventory::RackId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Which way data goes, seen from a host or rack.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// It sends.
    Tx,
    /// It receives.
    Rx,
    /// Both.
    Both,
}

impl Directions {
    /// Of something that is so when it sends, when it receives, or both. `None` for neither.
    #[must_use]
    pub fn of(tx: bool, rx: bool) -> Option<Self> {
        match (tx, rx) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Tx),
            (false, true) => Some(Self::Rx),
            (false, false) => None,
        }
    }
}

/// A figure of a host, and the median of its peers'.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnAndPeers {
    /// The host's.
    pub own: f64,
    /// `None` where no other host has the figure.
    pub peers: Option<f64>,
}

/// Whose a path between racks is, and which way.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
#[schemars(rename = "PathPlace")]
pub enum PathLocation {
    /// One of a rack's.
    Rack {
        /// Which.
        rack: RackId,
        /// Which way, seen from the rack.
        directions: Directions,
    },
    /// One of a pod's, to the other pods.
    Pod {
        /// The pod's racks.
        racks: Vec<RackId>,
        /// Which way, seen from the pod.
        directions: Directions,
    },
    /// One of every rack's: a spine.
    EveryRack,
}

/// A router that paths go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PathRouter {
    /// The rack that sends to it.
    pub from: RackId,
    /// Its address towards that rack.
    pub router: IpAddr,
}
