//! What is wrong with a random network, for a machine to compare an analysis with.

use crate::family::Family;
use ew_model::finding::Cause;
use ew_model::topology::{HostSpec, RackSpec, Topology};
use ew_model::{HostId, RackId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The truth about one random network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// What it was generated as.
    pub family: Family,
    /// Its axes in a few words: `4/6/9 hosts, 8 paths, fifo, nic classes`.
    pub axes: Vec<String>,
    /// Everything that deviates from a healthy network. Empty: nothing.
    pub faults: Vec<Fault>,
    /// Per rack and direction: what its hosts' NICs carry over what its usable members carry. 1 or
    /// below: not oversubscribed.
    pub ratios: Vec<RackRatio>,
    /// What a pod's hosts send over what leads from it to the others, where pods are; 1 or below:
    /// not oversubscribed.
    #[serde(default)]
    pub pod_ratio: f64,
    /// Members of each rack's uplink, those that are down too.
    pub paths: u32,
    /// Addresses of the routers over which a bad member's connections go, by the rack that sends.
    #[serde(default)]
    pub via: Vec<IpAddr>,
    /// Whether hosts lacked CPU time for a part of the rounds, so that an incomplete answer is a
    /// right one.
    pub is_starved: bool,
}

/// A rack's own oversubscription.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RackRatio {
    /// Out of the rack.
    pub up: f64,
    /// Into the rack.
    pub down: f64,
    /// Whether the other racks can fill its uplinks; else nothing between hosts can show what they
    /// carry.
    #[serde(default = "yes")]
    pub is_testable: bool,
}

/// Truths of before this was recorded.
fn yes() -> bool {
    true
}

/// One deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
pub enum Fault {
    /// One member of an uplink.
    Member {
        /// Whose. `None`: of all racks, which is the whole spine.
        rack: Option<RackId>,
        /// Which, from 0.
        member: u32,
        /// In which direction.
        direction: LinkDirection,
        /// What is wrong with it.
        kind: MemberFault,
    },
    /// A host's link carries less than its class'.
    Host {
        /// Which.
        host: HostId,
        /// In which direction.
        direction: LinkDirection,
        /// What it carries of what its class does.
        share: f64,
    },
    /// What a host's own counters show. Only labs have these.
    OnHost {
        /// Which.
        host: HostId,
        /// What they show.
        cause: Cause,
    },
    /// All hosts stay below their links' speed.
    Uniform {
        /// Why.
        cause: UniformCause,
    },
}

/// Of an uplink or a host: up is TX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkDirection {
    /// Out of the rack or host.
    Up,
    /// Into the rack or host.
    Down,
    /// Both directions.
    Both,
}

/// What is wrong with a member.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberFault {
    /// It carries this share of what the others do.
    Narrow(f64),
    /// It loses this share of its packets.
    Loss(f64),
    /// It swallows everything, and nobody knows.
    BlackHole,
    /// It is down, and routing knows: only capacity is missing.
    Down,
    /// One end has no route over it: only that direction's capacity is missing.
    OneSided,
}

/// Why all hosts are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UniformCause {
    /// The platform caps each connection.
    FlowCap,
    /// The receive buffers' limit over the round-trip time.
    ReceiveWindow,
    /// A CPU quota.
    CpuQuota,
    /// A connection uses one member of the hosts' LAG.
    LagMember,
}

impl LinkDirection {
    /// Whether it is, or contains, the other.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self == Self::Both || other == Self::Both
    }
}

/// Every rack's own ratio.
pub(crate) fn ratios(topology: &Topology) -> Vec<RackRatio> {
    let hosts =
        |rack: &RackSpec, rate: fn(&HostSpec) -> u64| -> u64 { rack.hosts.iter().map(rate).sum() };
    let carries = |rack: &RackSpec| {
        let up = hosts(rack, |host| host.nic.tx_bits_per_sec).min(rack.up_bits_per_sec());
        let down = hosts(rack, |host| host.nic.rx_bits_per_sec).min(rack.down_bits_per_sec());
        up.min(down)
    };
    let all: u64 = topology.racks.iter().map(carries).sum();
    let racks = topology.racks.iter().map(|rack| RackRatio {
        up: hosts(rack, |host| host.nic.tx_bits_per_sec) as f64 / rack.up_bits_per_sec() as f64,
        down: hosts(rack, |host| host.nic.rx_bits_per_sec) as f64 / rack.down_bits_per_sec() as f64,
        is_testable: all - carries(rack) >= carries(rack),
    });
    racks.collect()
}
