//! What was found and what it rests on, one type per kind of finding. The report's catalogue has an
//! entry for each.

mod background_traffic;
mod bad_path;
mod below_link;
mod black_hole;
mod bond_member;
mod congestion;
mod core_saturated;
mod cpu_quota;
mod disk;
mod faster_network;
mod host_missing;
mod incast;
mod latency;
mod line_rate;
mod link_speed;
mod loss;
mod lost_path;
mod measurement;
mod mtu;
mod nic_classes;
mod not_determined;
mod pairs_missing;
mod parts;
mod path_loss;
mod paths;
mod pod_network;
mod receive_drops;
mod receive_window;
mod send_buffer;
mod side_rates;
mod slow_at_times;
mod slow_host;
mod slow_pair;
mod starved_host;
mod stated_nic;
mod tool_limit;
mod uplink;
mod why;

pub use background_traffic::{BackgroundTraffic, TrafficOwner};
pub use bad_path::{BadPathByRouter, BadPathByShare};
pub use below_link::{BelowLinkSpeed, SharedLimit, SingleConnections};
pub use black_hole::BlackHole;
pub use bond_member::{BondMember, BusiestMember};
pub use congestion::Congestion;
pub use core_saturated::{CpuTaker, Extent, FullCpu, LateSampler, StarvedThreads};
pub use cpu_quota::CpuQuota;
pub use disk::{BusyDisk, BusyDisks};
pub use faster_network::{FasterNetwork, InterfaceRate};
pub use host_missing::{Absence, AbsenceReason, HostsMissing};
pub use incast::Incast;
pub use latency::{IdleRoundTrip, LongRoundTrips};
pub use line_rate::LineRate;
pub use link_speed::{HalfDuplex, LowLinkSpeed, Shaper};
pub use loss::{DatagramLoss, DatagramLossOfPair, Fragments};
pub use lost_path::{LostPath, LostPathLocation, PathExpectation};
pub use measurement::InvalidMeasurement;
pub use mtu::OddMtu;
pub use nic_classes::{NicClass, NicClasses};
pub use not_determined::{
    FlowsUnexplained, NoCpuLeft, StageBelow, UnexplainedHost, UnexplainedPair,
};
pub use pairs_missing::{FlowsMissing, MissingWith, RefusingHost, StageMissing, StagesMissing};
pub use parts::{Directions, OwnAndPeers, PathLocation, PathRouter};
pub use path_loss::{CountedLoss, LossOnLink, LossyRack, LossyUplinks};
pub use paths::{
    HashingCost, NarrowPath, NumberOfPaths, PathsByRates, PathsByRouters, RateInterval,
};
pub use pod_network::PodNetwork;
pub use receive_drops::{DropLocation, ReceiveDrops};
pub use receive_window::SmallReceiveWindow;
pub use send_buffer::{LimitingSendBuffer, SmallSendBuffer};
pub use side_rates::{PeersRate, SideRate, SideRates, StageRate};
pub use slow_at_times::{LowQuartile, SlowAtTimes};
pub use slow_host::{SlowDirection, SlowHost};
pub use slow_pair::{PairRate, SlowPair, SlowPairs};
pub use starved_host::{StarvedHost, StarvedRate};
pub use stated_nic::BelowConfiguredNic;
pub use tool_limit::{BusyThread, SingleThread};
pub use uplink::{Oversubscribed, OversubscribedPods, PodLimit, UplinkLimit, UplinkRivals};
pub use why::Why;

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
    /// A bad path whose routers are known.
    BadPathByRouter(BadPathByRouter),
    /// A bad path by its share of the connections.
    BadPathByShare(BadPathByShare),
    /// Hosts below the configured NIC rate.
    BelowConfiguredNic(BelowConfiguredNic),
    /// Hosts that all stay below their links' own speed.
    BelowLinkSpeed(BelowLinkSpeed),
    /// A path whose connections never open.
    BlackHole(BlackHole),
    /// A member of a bond that carries nearly all.
    BondMember(BondMember),
    /// A full disk of a host that is not slow for it.
    BusyDisk(BusyDisk),
    /// Full disks of most hosts.
    BusyDisks(BusyDisks),
    /// Victims under others' load.
    Congestion(Congestion),
    /// A stage whose datagrams are lost.
    DatagramLoss(DatagramLoss),
    /// Hosts with a faster idle interface.
    FasterNetwork(FasterNetwork),
    /// Flows without a figure.
    FlowsMissing(FlowsMissing),
    /// Flows below expectation that nothing explains.
    FlowsUnexplained(FlowsUnexplained),
    /// Hosts that are missing.
    HostsMissing(HostsMissing),
    /// Many senders to one receiver.
    Incast(Incast),
    /// Too many rounds are void.
    InvalidMeasurement(InvalidMeasurement),
    /// Links that are full.
    LineRate(LineRate),
    /// Hosts whose idle round trips are long.
    LongRoundTrips(LongRoundTrips),
    /// Racks whose uplinks lose packets.
    LossyUplinks(LossyUplinks),
    /// Paths that are not in use.
    LostPath(LostPath),
    /// A link that reports a lower speed than it should have.
    LowLinkSpeed(LowLinkSpeed),
    /// One path narrower than the others.
    NarrowPath(NarrowPath),
    /// Classes of NIC speed.
    NicClasses(NicClasses),
    /// Hosts whose MTU is not the typical one.
    OddMtu(OddMtu),
    /// Racks whose uplinks limit their hosts.
    Oversubscribed(Oversubscribed),
    /// Pods whose links to the rest limit their hosts.
    OversubscribedPods(OversubscribedPods),
    /// Parallel paths by what flows get.
    PathsByRates(PathsByRates),
    /// Parallel paths by their routers.
    PathsByRouters(PathsByRouters),
    /// Pods that get less than their nodes.
    PodNetwork(PodNetwork),
    /// Single connections far below what hosts do with several.
    SingleConnections(SingleConnections),
    /// A host that is slow at times, or throttled.
    SlowAtTimes(SlowAtTimes),
    /// A host that is slower than its peers.
    SlowHost(SlowHost),
    /// One slow pair.
    SlowPair(SlowPair),
    /// Many slow pairs.
    SlowPairs(SlowPairs),
    /// A stage below expectation that nothing explains, or hosts without CPU to spare.
    StageBelow(StageBelow),
    /// A host without CPU in most rounds.
    StarvedHost(StarvedHost),
}
