//! A host that lacks CPU all along while the others have it.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host whose I/O threads are without CPU in most rounds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StarvedHost {
    /// Which.
    pub host: HostId,
    /// Rounds in which it was starved.
    pub starved_rounds: usize,
    /// Its rounds.
    pub rounds: usize,
    /// Degree to which its threads lack CPU, 0 to 1, median over rounds.
    pub degree: f64,
    /// The same of the other hosts.
    pub others_degree: f64,
    /// What it does next to its peers, where that is slow. `None` where it keeps up.
    pub slow: Option<StarvedRate>,
}

/// Isolated flows of a host that lacks CPU, medians.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StarvedRate {
    /// What they do.
    pub bits_per_sec: f64,
    /// What their hosts allow.
    pub peers_bits_per_sec: f64,
}
