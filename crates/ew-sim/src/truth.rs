//! What is wrong with a network that was drawn, for a machine to compare an analysis with.

use crate::families::Family;
use ew_model::topology::{HostSpec, Topology};
use ew_model::{HostId, RackId};
use serde::{Deserialize, Serialize};

/// The truth about one drawn network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// What it was drawn as.
    pub family: Family,
    /// Its axes in a few words: `4/6/9 hosts, 8 paths, fifo, nic classes`.
    pub axes: Vec<String>,
    /// Everything that deviates from a healthy network. Empty: nothing.
    pub faults: Vec<Fault>,
    /// Per rack and direction: what its hosts' NICs carry over what its usable members carry. 1 or below: not oversubscribed.
    pub ratios: Vec<RackRatio>,
    /// Members of each rack's uplink, those that are down too.
    pub paths: u32,
    /// Whether hosts lacked CPU time for a part of the rounds, so that an incomplete answer is a right one.
    pub is_starved: bool,
}

/// A rack's own oversubscription.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RackRatio {
    /// Out of the rack.
    pub up: f64,
    /// Into the rack.
    pub down: f64,
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
        direction: Direction,
        /// What is wrong with it.
        kind: MemberFault,
    },
    /// A host's link carries less than its class'.
    Host {
        /// Which.
        host: HostId,
        /// In which direction.
        direction: Direction,
        /// What it carries of what its class does.
        share: f64,
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
pub enum Direction {
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

impl Direction {
    /// Whether it is, or contains, the other.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self == Self::Both || other == Self::Both
    }
}

/// Every rack's own ratio.
pub(crate) fn ratios(topology: &Topology) -> Vec<RackRatio> {
    let racks = topology.racks.iter().map(|rack| {
        let all = |rate: fn(&HostSpec) -> u64| rack.hosts.iter().map(rate).sum::<u64>() as f64;
        RackRatio {
            up: all(|host| host.nic.tx_bits_per_sec) / rack.up_bits_per_sec() as f64,
            down: all(|host| host.nic.rx_bits_per_sec) / rack.down_bits_per_sec() as f64,
        }
    });
    racks.collect()
}
