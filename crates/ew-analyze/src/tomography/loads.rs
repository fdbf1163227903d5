//! What each traced path carried in the stages that load all paths in part.
//!
//! Hashing is uneven: at three quarters load, and with few connections at half, a healthy path may
//! be asked for more than it carries. But it is full then, and carries as much as any path of its
//! rack ever did; a bad one carries less.

use super::traces::Traces;
use super::{Key, connections_of};
use crate::fit::LEAST_EFFECT;
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
    /// Links of one end are built alike.
    fn end(self) -> (usize, bool) {
        self.into.map_or((self.from, false), |into| (into, true))
    }
}

/// The sums of all rounds, in the unit of the connections' rates.
#[derive(Debug, Default)]
pub(super) struct Loads<'a> {
    /// By stage and index of the round.
    rounds: BTreeMap<(usize, usize), BTreeMap<Link, f64>>,
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
            for (place, round) in stage.rounds.iter().enumerate() {
                loads.add((at, place), round);
            }
        }
        loads
    }

    fn add(&mut self, round_at: (usize, usize), round: &RoundView<'_>) {
        let mut sums: BTreeMap<Link, f64> = BTreeMap::new();
        for seen in round.records.iter().flat_map(|row| connections_of(row)) {
            for link in self.links(&seen.key) {
                *sums.entry(link).or_default() += seen.rate;
            }
        }
        for (link, carried) in &sums {
            let most = self.most.entry(link.end()).or_default();
            *most = most.max(*carried);
        }
        self.rounds.insert(round_at, sums);
    }

    /// Whether a connection's path is full in a round, as a healthy one may be.
    pub(super) fn is_full(&self, round_at: (usize, usize), key: &Key) -> bool {
        let sums = self.rounds.get(&round_at);
        self.links(key).into_iter().any(|link| {
            let carried = sums.and_then(|sums| sums.get(&link)).copied();
            let most = self.most.get(&link.end()).copied();
            carried
                .zip(most)
                .is_some_and(|(carried, most)| carried > (1.0 - LEAST_EFFECT) * most)
        })
    }

    /// Out of its rack, and into the other. None where its path is not known or inside a rack.
    fn links(&self, key: &Key) -> Vec<Link> {
        let rack = |host| self.racks.get(&host).copied();
        let via = self.traces.and_then(|traces| traces.via(key));
        let (Some(from), Some(into), Some(via)) = (rack(key.src), rack(key.dst), via) else {
            return Vec::new();
        };
        let link = |into| Link { from, via, into };
        vec![link(None), link(Some(into))]
    }
}
