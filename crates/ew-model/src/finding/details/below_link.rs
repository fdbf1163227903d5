//! Hosts that are all slow alike, and what limits them.

use crate::finding::Cause;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All hosts of a class stay below their links' own speed.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BelowLinkSpeed {
    /// Number of them.
    pub hosts: usize,
    /// What they do.
    pub bits_per_sec: f64,
    /// Payload that their links can carry.
    pub goodput_bits_per_sec: f64,
    /// What limits them. `None` where no counter of the hosts is an outlier.
    pub limit: Option<SharedLimit>,
}

/// Hosts, or one of them, fill their links with several connections, and no single connection comes
/// near.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SingleConnections {
    /// The one host whose connections are meant, where others' are not so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// What one connection does.
    pub bits_per_sec: f64,
    /// What hosts do with several.
    pub several_bits_per_sec: f64,
    /// What limits one.
    pub limit: SharedLimit,
}

/// What limits most of the hosts alike.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "limit")]
pub enum SharedLimit {
    /// Each connection has a limit of its own.
    Connection {
        /// What one connection does.
        bits_per_sec: f64,
        /// What hosts do with several.
        several_bits_per_sec: f64,
    },
    /// The CPU quota of the agents' control groups.
    CpuQuota {
        /// Share of the time that agents were throttled.
        throttled_share: f64,
    },
    /// A connection's thread uses one CPU whole.
    FullThreads {
        /// What I/O threads use of a CPU, per connection.
        cpu_share: f64,
    },
    /// The receivers' windows.
    ReceiveWindow {
        /// Share of the time with data in flight that they limited.
        limited_share: f64,
        /// The path's. `None` where no flow has one.
        round_trip_ns: Option<u64>,
    },
    /// The hosts' own queueing disciplines.
    Shaper {
        /// Its kind, as in "tbf".
        discipline: String,
        /// What it lets pass: of the median host.
        bits_per_sec: f64,
        /// What the link was configured or negotiated to.
        link_bits_per_sec: f64,
    },
    /// The senders' buffers.
    SendBuffer {
        /// Share of the time with data in flight that they limited.
        limited_share: f64,
    },
}

impl SharedLimit {
    /// As the cause of a finding.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Connection { .. } => Cause::ConnectionLimit,
            Self::CpuQuota { .. } => Cause::CpuQuota,
            Self::FullThreads { .. } => Cause::ToolLimit,
            Self::ReceiveWindow { .. } => Cause::ReceiveWindow,
            Self::SendBuffer { .. } => Cause::SendBuffer,
            Self::Shaper { .. } => Cause::LinkSpeed,
        }
    }
}
