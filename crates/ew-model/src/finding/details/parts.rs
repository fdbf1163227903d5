//! What several kinds of findings have in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// A figure of a host, and the median of its peers'.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnAndPeers {
    /// The host's.
    pub own: f64,
    /// `None` where no other host has the figure.
    pub peers: Option<f64>,
}
