//! Traffic that is not the run's takes a part of a host's link.

use super::Directions;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Others' traffic on a host.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BackgroundTraffic {
    /// On which.
    pub host: HostId,
    /// Which way, never both.
    pub direction: Directions,
    /// Payload; what is on the link where nobody is seen to own it.
    pub bits_per_sec: f64,
    /// It over what the link carries.
    pub link_share: f64,
    /// The process with the most of it. `None` where nobody is seen to own it.
    pub process: Option<TrafficOwner>,
}

/// A process with sockets of its own.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct TrafficOwner {
    /// `None` where the owner of its sockets cannot be seen.
    pub pid: Option<u32>,
    /// Its name. Empty when unknown.
    pub command: String,
    /// The remote host that it moves most with.
    pub peer: Option<IpAddr>,
}
