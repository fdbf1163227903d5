//! What isolated flows of a host's sides show, next to what its peers do.

use super::Directions;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Isolated flows of a host's slow sides, and what its peers do.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SideRates {
    /// Which.
    pub host: HostId,
    /// Its slow sides.
    pub sides: Vec<SideRate>,
    /// `None` where no other host has a rate.
    pub peers: Option<PeersRate>,
}

/// What isolated flows of one side of a host did.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SideRate {
    /// Which way, never both.
    pub direction: Directions,
    /// By stage.
    pub stages: Vec<StageRate>,
    /// Different hosts at the other end.
    pub peers: u32,
    /// What the run's explanation loses where the side is not slow, nats.
    pub gain_nats: f64,
}

/// What isolated flows did in a stage.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StageRate {
    /// Its name.
    pub stage: String,
    /// Median over flows.
    pub median_bits_per_sec: f64,
    /// Number of flows.
    pub flows: usize,
}

/// What the other hosts of a host's class do.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PeersRate {
    /// Median over hosts.
    pub median_bits_per_sec: f64,
    /// Number of hosts.
    pub hosts: u32,
    /// Stages with isolated flows.
    pub stages: Vec<String>,
}
