//! The sender's buffer is too small to keep the path full.

use super::OwnAndPeers;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel has counted the time that a send buffer limited.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LimitingSendBuffer {
    /// Whose.
    pub host: HostId,
    /// Share of the time with data in flight that it limited, median over flows.
    pub limited_share: OwnAndPeers,
}

/// A send buffer is smaller than its peers', and than what the congestion window lets out.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SmallSendBuffer {
    /// Whose.
    pub host: HostId,
    /// Its size, median over flows.
    pub buffer_bytes: OwnAndPeers,
    /// What the congestion window lets out, median over flows.
    pub congestion_window_bytes: u64,
}
