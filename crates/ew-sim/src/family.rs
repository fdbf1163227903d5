//! The kinds of networks that are drawn.

use serde::{Deserialize, Serialize};

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Nothing is wrong: hashed paths, FIFO, NIC classes, unequal racks, LAG, pods, drift,
    /// starvation.
    Healthy,
    /// 1:1 to 8:1 over hashed paths and unequal racks.
    Oversubscribed,
    /// One member of one rack's uplink, or of all.
    BadMember,
    /// One to three hosts.
    SlowHosts,
    /// All hosts below their links' speed.
    UniformlySlow,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Healthy,
        Self::Oversubscribed,
        Self::BadMember,
        Self::SlowHosts,
        Self::UniformlySlow,
    ];

    /// The word on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Oversubscribed => "oversubscribed",
            Self::BadMember => "bad-member",
            Self::SlowHosts => "slow-hosts",
            Self::UniformlySlow => "uniformly-slow",
        }
    }
}
