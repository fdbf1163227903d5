//! The hosts' links are full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts whose links are the limit of the run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LineRate {
    /// How many.
    pub hosts: usize,
    /// Their links' rate.
    pub link_bits_per_sec: f64,
    /// What the fuller direction carries of it on the wire, median over these hosts, 0 to 1.
    pub wire_share: f64,
}
