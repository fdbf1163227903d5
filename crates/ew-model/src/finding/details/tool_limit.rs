//! What moves the bytes is the limit: a thread that uses one CPU whole, or a tool that has only
//! one.

use super::OwnAndPeers;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engine's thread of a stream uses one CPU whole.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BusyThread {
    /// On which host.
    pub host: HostId,
    /// What each of the engine's threads uses of a CPU, median over rounds.
    pub cpu_share: OwnAndPeers,
}

/// A tool has one thread for all streams, which saturates a CPU.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SingleThread {
    /// On which host.
    pub host: HostId,
    /// The tool's version, in its own words.
    pub version: String,
    /// Share of the time that the busiest CPU was busy.
    pub busy_share: OwnAndPeers,
}
