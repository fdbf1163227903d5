//! One of a rack's hashed paths swallows its connections.

use super::{PathLocation, PathRouter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path whose connections never open.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BlackHole {
    /// Whose it is, the likeliest first; several are not distinguished.
    #[serde(rename = "places")]
    pub locations: Vec<PathLocation>,
    /// Its routers, by the racks that send to others over them, where traces show them.
    pub routers: Vec<PathRouter>,
    /// Share of the location's connections that never open, 0 to 1.
    pub lost_share: f64,
    /// The location's flows that never began.
    pub failed_flows: usize,
    /// All of the location's flows.
    pub flows: usize,
    /// Log-likelihood gained, less the price of one more assumption.
    pub gain_nats: f64,
}
