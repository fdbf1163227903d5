//! Parallel paths between racks: how many, what hashing costs, and one that is narrow.

use super::Directions;
use crate::inventory::RackId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parallel paths by their routers.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PathsByRouters {
    /// Paths of a rack.
    pub paths: usize,
    /// Traced connections that met the routers.
    pub traced_connections: usize,
    /// What hashing costs single connections. `None` where it was not tested.
    pub hashing: Option<HashingCost>,
}

/// Parallel paths by what flows over them get.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PathsByRates {
    /// The likeliest number of a rack's paths.
    pub paths: usize,
    /// All numbers that are likely.
    pub numbers: Vec<NumberOfPaths>,
    /// What one path carries.
    pub each: RateInterval,
    /// What all of them carry together.
    pub total: RateInterval,
    /// What hashing costs single connections. `None` where it was not tested.
    pub hashing: Option<HashingCost>,
}

/// How likely a number of paths is.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NumberOfPaths {
    /// Paths of a rack.
    pub paths: usize,
    /// Posterior probability, 0 to 1.
    pub probability: f64,
}

/// A rate's 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RateInterval {
    /// Lower end.
    pub low_bits_per_sec: f64,
    /// Upper end.
    pub high_bits_per_sec: f64,
}

/// What single connections get of the capacity that paths have together, because each connection
/// stays on the path that it is hashed to.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HashingCost {
    /// Share of the capacity that they get, 0 to 1.
    pub measured_share: f64,
    /// Share that as many equal paths are expected to give, 0 to 1.
    pub expected_share: f64,
}

/// One path narrower than the others, by what flows get.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NarrowPath {
    /// Whose it is; several are not distinguished.
    pub racks: Vec<RackId>,
    /// Which way, seen from the rack; both where racks are not distinguished.
    pub directions: Directions,
    /// The likeliest number of a rack's paths.
    pub paths: usize,
    /// All numbers that are likely.
    pub likely_paths: Vec<usize>,
    /// What it carries.
    pub bits_per_sec: f64,
    /// What each of the others carries.
    pub others_bits_per_sec: f64,
    /// Flows that it explains.
    pub explained: usize,
    /// Flows that it may carry.
    pub touched: usize,
    /// Rounds with those flows.
    pub rounds: usize,
}
