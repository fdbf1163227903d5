//! A rack's uplinks, or a pod's, carry less than its hosts could send or receive.

use super::Directions;
use crate::estimate::Estimate;
use crate::inventory::RackId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Racks whose uplinks limit their hosts, alike.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Oversubscribed {
    /// Which. Of two with `tx`: what the first sends to the second, over the uplinks of either.
    pub racks: Vec<RackId>,
    /// Which way.
    pub directions: Directions,
    /// What the hosts could do, over what the uplinks carry.
    pub ratio: Estimate,
    /// What was configured.
    pub configured: Option<f64>,
    /// No other rack's uplinks limit its hosts.
    pub is_unlike_others: bool,
    /// It is worse than configured or than other racks, or nothing was configured.
    pub is_unexpected: bool,
    /// What it rests on, per rack and direction; of many the first.
    pub limits: Vec<UplinkLimit>,
}

impl Oversubscribed {
    /// What one rack sends to another, if that is meant: the uplinks of either are.
    #[must_use]
    pub fn one_way(&self) -> Option<(RackId, RackId)> {
        match (&self.racks[..], self.directions) {
            (&[from, to], Directions::Tx) => Some((from, to)),
            _ => None,
        }
    }
}

/// One direction of a rack.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct UplinkLimit {
    /// Whose uplinks.
    pub rack: RackId,
    /// Which way, never both.
    pub direction: Directions,
    /// Payload that the uplinks carry.
    pub capacity_bits_per_sec: f64,
    /// What the rack's hosts could send or receive.
    pub hosts_bits_per_sec: f64,
    /// Rounds that showed it.
    pub rounds: usize,
    /// The stage whose flows showed it.
    pub stage: Option<String>,
    /// Racks that would explain the same flows.
    pub rivals: Option<UplinkRivals>,
}

/// Racks whose uplinks would explain the same flows.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct UplinkRivals {
    /// Which.
    pub racks: Vec<RackId>,
    /// Flows that the uplinks explain.
    pub explained: usize,
    /// Flows that they carry.
    pub touched: usize,
}

/// Pods, racks that are nearer to one another than to the rest, whose links to the rest limit
/// their hosts, alike.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OversubscribedPods {
    /// The racks of each.
    pub pods: Vec<Vec<RackId>>,
    /// Which way.
    pub directions: Directions,
    /// Whether what the first sends to the second is meant: of two pods the links of either are.
    #[serde(default)]
    pub is_one_way: bool,
    /// What the hosts could do, over what the links carry.
    pub ratio: Estimate,
    /// What it rests on, per pod and direction; of many the first.
    pub limits: Vec<PodLimit>,
}

/// One direction of a pod.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodLimit {
    /// The pod's racks.
    pub racks: Vec<RackId>,
    /// Which way, never both.
    pub direction: Directions,
    /// Payload that the links carry.
    pub capacity_bits_per_sec: f64,
    /// What the pod's hosts could send or receive.
    pub hosts_bits_per_sec: f64,
    /// Rounds that showed it.
    pub rounds: usize,
    /// The stage whose flows showed it.
    pub stage: Option<String>,
}
