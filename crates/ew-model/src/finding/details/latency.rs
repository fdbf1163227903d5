//! Idle round trips longer than configured, or far longer than the peers'.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts whose idle round trips are long.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LongRoundTrips {
    /// Which.
    pub hosts: Vec<HostId>,
    /// The longest of their medians.
    pub worst_rtt_ns: u64,
    /// What was configured, or the peers' median.
    pub expected_rtt_ns: u64,
    /// That was configured.
    pub is_configured: bool,
    /// What it rests on; of many hosts the first.
    pub round_trips: Vec<IdleRoundTrip>,
}

/// A host's idle round trip.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct IdleRoundTrip {
    /// Whose.
    pub host: HostId,
    /// Median.
    pub rtt_ns: u64,
}
