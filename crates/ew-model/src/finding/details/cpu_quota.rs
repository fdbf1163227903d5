//! The agent's control group has a CPU quota, and it ran out.

use super::OwnAndPeers;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The quota throttled the agent.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuQuota {
    /// On which host.
    pub host: HostId,
    /// Share of the time that the group was throttled.
    pub throttled_share: OwnAndPeers,
    /// CPU time in each period, µs. `None` where the host does not report it.
    pub quota_us: Option<u64>,
    /// The period, µs. `None` where the host does not report it.
    pub period_us: Option<u64>,
}
