//! What was found and what it rests on, one type per kind of finding. The report's catalogue has an
//! entry for each.

mod bad_path;
mod black_hole;
mod bond_member;
mod faster_network;
mod incast;
mod latency;
mod line_rate;
mod loss;
mod lost_path;
mod measurement;
mod nic_classes;
mod parts;
mod paths;
mod slow_pair;
mod stated_nic;
mod uplink;

pub use bad_path::{BadPathByRouter, BadPathByShare};
pub use black_hole::BlackHole;
pub use bond_member::{BondMember, BusiestMember};
pub use faster_network::{FasterNetwork, InterfaceRate};
pub use incast::Incast;
pub use latency::{IdleRoundTrip, LongRoundTrips};
pub use line_rate::LineRate;
pub use loss::{DatagramLoss, DatagramLossOfPair, Fragments};
pub use lost_path::{LostPath, LostPathPlace, PathExpectation};
pub use measurement::InvalidMeasurement;
pub use nic_classes::{NicClass, NicClasses};
pub use parts::Directions;
pub use parts::{PathPlace, PathRouter};
pub use paths::{
    HashingCost, NarrowPath, NumberOfPaths, PathsByRates, PathsByRouters, RateInterval,
};
pub use slow_pair::{PairRate, SlowPair, SlowPairs};
pub use stated_nic::BelowConfiguredNic;
pub use uplink::{Oversubscribed, UplinkLimit, UplinkRivals};

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
    /// A bad path whose routers are known.
    BadPathByRouter(BadPathByRouter),
    /// A bad path by its share of the connections.
    BadPathByShare(BadPathByShare),
    /// Hosts below the configured NIC rate.
    BelowConfiguredNic(BelowConfiguredNic),
    /// A path whose connections never open.
    BlackHole(BlackHole),
    /// A member of a bond that carries nearly all.
    BondMember(BondMember),
    /// A stage whose datagrams are lost.
    DatagramLoss(DatagramLoss),
    /// Hosts with a faster idle interface.
    FasterNetwork(FasterNetwork),
    /// Many senders to one receiver.
    Incast(Incast),
    /// Too many rounds are void.
    InvalidMeasurement(InvalidMeasurement),
    /// Links that are full.
    LineRate(LineRate),
    /// Hosts whose idle round trips are long.
    LongRoundTrips(LongRoundTrips),
    /// Paths that are not in use.
    LostPath(LostPath),
    /// One path narrower than the others.
    NarrowPath(NarrowPath),
    /// Classes of NIC speed.
    NicClasses(NicClasses),
    /// Racks whose uplinks limit their hosts.
    Oversubscribed(Oversubscribed),
    /// Parallel paths by what flows get.
    PathsByRates(PathsByRates),
    /// Parallel paths by their routers.
    PathsByRouters(PathsByRouters),
    /// One slow pair.
    SlowPair(SlowPair),
    /// Many slow pairs.
    SlowPairs(SlowPairs),
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
