//! One of a rack's hashed paths is slow or loses packets.

use super::{PathLocation, PathRouter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bad path whose routers are known.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BadPathByRouter {
    /// Whose it is, the likeliest first; several are not distinguished.
    #[serde(rename = "places")]
    pub locations: Vec<PathLocation>,
    /// The routers on it.
    pub routers: Vec<PathRouter>,
    /// Connections over them that are slow or retransmit.
    pub bad_connections: usize,
    /// All connections over them.
    pub connections: usize,
    /// Share of bad ones among all other connections of the same tests, 0 to 1.
    pub others_bad_share: f64,
    /// Log-likelihood gained, less the price of one more assumption.
    pub gain_nats: f64,
}

/// A bad path by its share of the connections at half load.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BadPathByShare {
    /// Whose it is, the likeliest first; several are not distinguished.
    #[serde(rename = "places")]
    pub locations: Vec<PathLocation>,
    /// The stage that loads all paths to half.
    pub stage: String,
    /// As many equal paths as the share of bad connections leaves open (95%), the fewest ...
    pub fewest_paths: usize,
    /// ... and the max.
    #[serde(rename = "most_paths")]
    pub max_paths: usize,
    /// It is narrow; otherwise it loses packets.
    pub is_narrow: bool,
    /// Rate over pace, median of the bad connections, 0 to 1.
    pub pace_share: f64,
    /// Segments that the bad connections retransmit, median of the shares, 0 to 1.
    pub retransmitted_share: f64,
    /// Connections that are slow or retransmit in every round of theirs.
    pub bad_connections: usize,
    /// All of the location's connections.
    pub connections: usize,
    /// The former over the latter, 0 to 1.
    pub bad_share: f64,
    /// Log-likelihood gained, less the price of one more assumption.
    pub gain_nats: f64,
}
