//! What was found and what it rests on, one type per kind of finding. The report's catalogue has an
//! entry for each.

mod background_traffic;
mod below_link;
mod core_saturated;
mod cpu_quota;
mod disk;
mod link_speed;
mod mtu;
mod parts;
mod path_loss;
mod receive_drops;
mod receive_window;
mod send_buffer;
mod slow_at_times;
mod slow_host;
mod starved_host;
mod stated_nic;
mod tool_limit;
mod uplink;
mod why;

pub use background_traffic::{BackgroundTraffic, TrafficOwner};
pub use below_link::{BelowLinkSpeed, SharedLimit, SingleConnections};
pub use core_saturated::{CpuTaker, Extent, FullCpu, LateSampler, StarvedThreads};
pub use cpu_quota::CpuQuota;
pub use disk::{BusyDisk, BusyDisks};
pub use link_speed::{HalfDuplex, LowLinkSpeed, Shaper};
pub use mtu::OddMtu;
pub use parts::Directions;
pub use parts::OwnAndPeers;
pub use path_loss::{CountedLoss, LossOnLink, LossyUplinks};
pub use receive_drops::{DropPlace, ReceiveDrops};
pub use receive_window::SmallReceiveWindow;
pub use send_buffer::{LimitingSendBuffer, SmallSendBuffer};
pub use slow_at_times::{LowQuartile, SlowAtTimes};
pub use slow_host::{PeersRate, SideRate, SideRates, SlowDirection, SlowHost, StageRate};
pub use starved_host::{StarvedHost, StarvedRate};
pub use stated_nic::BelowConfiguredNic;
pub use tool_limit::{BusyThread, SingleThread};
pub use uplink::{Oversubscribed, UplinkLimit, UplinkRivals};
pub use why::Why;

use super::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found, by kind.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Details {
    /// Of a verdict of before details were kept.
    #[default]
    Unknown,
    /// Others' traffic on a host that is not slow for it.
    BackgroundTraffic(BackgroundTraffic),
    /// Hosts below the configured NIC rate.
    BelowConfiguredNic(BelowConfiguredNic),
    /// Hosts that all stay below their links' own speed.
    BelowLinkSpeed(BelowLinkSpeed),
    /// A full disk of a host that is not slow for it.
    BusyDisk(BusyDisk),
    /// Full disks of most hosts.
    BusyDisks(BusyDisks),
    /// Racks whose uplinks lose packets.
    LossyUplinks(LossyUplinks),
    /// A link that reports a lower speed than it should have.
    LowLinkSpeed(LowLinkSpeed),
    /// Hosts whose MTU is not the typical one.
    OddMtu(OddMtu),
    /// Racks whose uplinks limit their hosts.
    Oversubscribed(Oversubscribed),
    /// Single connections far below what hosts do with several.
    SingleConnections(SingleConnections),
    /// A host that is slow at times, or throttled.
    SlowAtTimes(SlowAtTimes),
    /// A host that is slower than its peers.
    SlowHost(SlowHost),
    /// A host without CPU in most rounds.
    StarvedHost(StarvedHost),
    /// In words already.
    Worded(Worded),
}

/// In words.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Worded {
    /// What was found.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What a person can do next.
    pub hint: String,
}

impl Worded {
    /// As details.
    #[must_use]
    pub fn details(sentence: String, evidence: Vec<Evidence>, hint: String) -> Details {
        Details::Worded(Self {
            sentence,
            evidence,
            hint,
        })
    }
}
