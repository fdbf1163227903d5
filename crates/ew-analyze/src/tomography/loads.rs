//! What each traced path carried in the stages that load all paths in part.
//!
//! Hashing is uneven: at three quarters load, and with few connections at half, a healthy path may
//! be asked for more than it carries. But it is full then, and carries as much as any path of its
//! rack ever did; a bad one carries less.
//!
//! Of large racks not all connections are traced. The others are on any path: each may have carried
//! its share of them and, since few hash unevenly, two standard deviations more.

use super::connections::{Key, connections_of};
use super::traces::Traces;
use crate::criteria::MIN_EFFECT;
use crate::observations::{Observations, RoundView, StageView};
use ew_model::HostId;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One direction of a path: out of a rack over a router, or from there into another rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    from: usize,
    via: IpAddr,
    into: Option<usize>,
}

impl Link {
    /// Links of one end are built alike but for their weights.
    fn end(self) -> (usize, bool) {
        self.into.map_or((self.from, false), |into| (into, true))
    }
}

/// Standard deviations above the mean that the connections of unknown path may be on one.
const DEVIATIONS: f64 = 2.0;

/// What goes over a link, or may.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    /// Of connections whose path is known.
    known: f64,
    /// The max that the others may add.
    possible: f64,
}

/// Connections from one rack to another whose path is not known.
#[derive(Clone, Copy, Debug, Default)]
struct Untraced {
    connections: f64,
    rate: f64,
}

impl Untraced {
    /// The max of it that may be on a path that is such a part of all.
    fn on_part(self, part: f64) -> f64 {
        let each = self.rate / self.connections.max(1.0);
        let mean = self.connections * part;
        each * (mean + DEVIATIONS * mean.sqrt()).min(self.connections)
    }
}

/// The sums of all rounds, in the unit of the connections' rates.
#[derive(Debug, Default)]
pub(super) struct Loads<'a> {
    /// By stage and index of the round.
    rounds: BTreeMap<(usize, usize), BTreeMap<Link, Carried>>,
    /// The most that one of a rack's links carried, over the weight of its path.
    most: BTreeMap<(usize, bool), f64>,
    racks: BTreeMap<HostId, usize>,
    traces: Option<&'a Traces>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(
        observations: &Observations<'_>,
        traces: &'a Traces,
        stages: &[&StageView<'_>],
    ) -> Self {
        let inventory = observations.inventory();
        let rack = |host| Some((host, inventory.rack_of(host)?.index()));
        let mut loads = Self {
            racks: inventory.host_ids().filter_map(rack).collect(),
            traces: Some(traces),
            ..Self::default()
        };
        for (at, stage) in stages.iter().enumerate() {
            for (index, round) in stage.rounds.iter().enumerate() {
                loads.add((at, index), round);
            }
        }
        loads
    }

    fn add(&mut self, round_at: (usize, usize), round: &RoundView<'_>) {
        let mut sums: BTreeMap<Link, Carried> = BTreeMap::new();
        let mut untraced: BTreeMap<(usize, Option<usize>), Untraced> = BTreeMap::new();
        for seen in round.records.iter().flat_map(|row| connections_of(row)) {
            let links = self.links(&seen.key);
            for link in &links {
                sums.entry(*link).or_default().known += seen.rate;
            }
            let ways = self.racks_of(&seen.key).filter(|_| links.is_empty());
            for way in ways
                .into_iter()
                .flat_map(|(from, into)| [(from, None), (from, Some(into))])
            {
                let unknown = untraced.entry(way).or_default();
                unknown.connections += 1.0;
                unknown.rate += seen.rate;
            }
        }
        for (link, carried) in &mut sums {
            let weight = self.weight(link);
            let all = self.traces.map_or(1.0, |it| it.weights_of(link.from));
            let unknown = untraced.get(&(link.from, link.into));
            carried.possible = unknown.map_or(0.0, |unknown| unknown.on_part(weight / all));
            let most = self.most.entry(link.end()).or_default();
            *most = most.max(carried.known / weight);
        }
        self.rounds.insert(round_at, sums);
    }

    /// Whether a connection's path is full in a round, as a healthy one may be.
    pub(super) fn is_full(&self, round_at: (usize, usize), key: &Key) -> bool {
        let sums = self.rounds.get(&round_at);
        self.links(key).into_iter().any(|link| {
            let carried = sums.and_then(|sums| sums.get(&link)).copied();
            let most = self.most.get(&link.end()).copied();
            carried.zip(most).is_some_and(|(carried, most)| {
                let carries = carried.known + carried.possible;
                carries > (1.0 - MIN_EFFECT) * self.weight(&link) * most
            })
        })
    }

    fn weight(&self, link: &Link) -> f64 {
        self.traces.map_or(1.0, |traces| traces.weight(link.via))
    }

    /// Out of its rack, and into the other. None where its path is not known or inside a rack.
    fn links(&self, key: &Key) -> Vec<Link> {
        let via = self.traces.and_then(|traces| traces.via(key));
        let Some(((from, into), via)) = self.racks_of(key).zip(via) else {
            return Vec::new();
        };
        let link = |into| Link { from, via, into };
        vec![link(None), link(Some(into))]
    }

    /// From which rack to which other.
    fn racks_of(&self, key: &Key) -> Option<(usize, usize)> {
        let rack = |host| self.racks.get(&host).copied();
        rack(key.src)
            .zip(rack(key.dst))
            .filter(|(from, into)| from != into)
    }
}
