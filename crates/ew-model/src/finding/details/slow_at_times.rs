//! A host that is slow at times, or throttled and not slow.

use super::Why;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From moment to moment the host's flows are as fast as its peers' or far slower.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowAtTimes {
    /// Which.
    pub host: HostId,
    /// Where its flows are low at times. `None` where they keep up.
    pub low: Option<LowQuartile>,
    /// What limits it.
    pub why: Why,
}

/// A quarter of a host's flows next to what its peers do.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LowQuartile {
    /// Lower quartile of its isolated flows.
    pub quartile_bits_per_sec: f64,
    /// What its peers do.
    pub peers_bits_per_sec: f64,
}
