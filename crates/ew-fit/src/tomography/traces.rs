//! The routers on the connections' paths, from the stages that traced them.
//!
//! Paths part at the first hop at which connections between two racks meet different routers. Each
//! router that answers there represents one of the rack's parallel paths.

use super::connections::{Judged, Key};
use super::links::{ABOVE_RACK, Ends};
use ew_evidence::criteria::FAULT_ODDS;
use ew_evidence::observations::Observations;
use ew_model::record::TracedPath;
use ew_model::workload::WorkloadKind;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What was traced between racks.
#[derive(Debug, Default)]
pub struct Traces {
    /// Where connections go, in the direction of the opening end's data.
    via: BTreeMap<Key, IpAddr>,
    /// The routers after that one, with their hops, of connections that have others there than the
    /// rack's own: paths may part again.
    above: BTreeMap<Key, Vec<(usize, IpAddr)>>,
    /// By the rack that sends.
    pub(super) forks: BTreeMap<usize, Fork>,
    /// Of routers that take several times as many connections as the others of their rack: unequal
    /// paths get weights, and are as much wider.
    weights: BTreeMap<IpAddr, u32>,
    /// Routers on the longest path from one rack to another.
    lengths: BTreeMap<(usize, usize), usize>,
    pub(super) ends: Ends,
    /// All connections traced, bad where their packets did not arrive.
    pub(super) ended: Vec<Judged>,
}

/// Where a rack's paths part.
#[derive(Debug, Default)]
pub(super) struct Fork {
    /// Routers at that hop.
    pub(super) members: BTreeSet<IpAddr>,
    /// By the rack that receives.
    pub(super) to: BTreeMap<usize, Ways>,
    /// Connections whose packets did not come as far as a router there, nor any further.
    pub(super) cut: usize,
}

/// Counts of connections by router, for tests of their own.
pub(super) type Members = BTreeMap<IpAddr, usize>;

/// Connections from one rack to another.
#[derive(Debug, Default)]
pub(super) struct Ways {
    pub(super) members: Members,
    /// That arrived, and whose router did not answer.
    pub(super) silent: usize,
}

/// A connection that was traced.
struct Traced<'a> {
    key: Key,
    racks: (usize, usize),
    path: &'a TracedPath,
}

impl Traces {
    /// Of all flows whose path was traced.
    pub fn of(observations: &Observations<'_>) -> Self {
        let traced = traced(observations);
        let hop = parting_hop(&traced);
        let mut traces = Self::default();
        for one in traced {
            let fork = traces.forks.entry(one.racks.0).or_default();
            let ways = fork.to.entry(one.racks.1).or_default();
            match one.router(hop) {
                Some(router) => {
                    fork.members.insert(router);
                    *ways.members.entry(router).or_default() += 1;
                    traces.via.insert(one.key, router);
                }
                None if one.path.is_complete => ways.silent += 1,
                None => fork.cut += usize::from(one.ends_before(hop)),
            }
            if one.path.is_complete {
                let length = traces.lengths.entry(one.racks).or_default();
                *length = one.path.hops.len().max(*length);
                traces.ends.add(one.racks, &one.path.hops);
                if one.path.hops.len() > hop + 2 {
                    traces.above.insert(one.key, one.routers_after(hop));
                }
            }
            traces.ended.push(one.judged(hop));
        }
        traces.weights = traces.forks.values().flat_map(Fork::heavier).collect();
        traces
    }

    /// Routers between two racks: where there are more, connections meet more that may be full.
    pub(super) fn length(&self, racks: (usize, usize)) -> usize {
        self.lengths.get(&racks).copied().unwrap_or_default()
    }

    /// The pod of each of the racks: racks are of one if fewer routers are between them than
    /// between those farthest apart. Empty where that divides them into no groups.
    pub fn pods(&self, racks: usize) -> Vec<usize> {
        let farthest = self.lengths.values().max().copied().unwrap_or_default();
        let between = |a, b| self.length((a, b)).max(self.length((b, a)));
        let is_near = |a, b| (1..farthest).contains(&between(a, b));
        let (mut pod_of, mut pods) = (Vec::new(), 0);
        for rack in 0..racks {
            let near = (0..rack).find(|other| is_near(*other, rack));
            pods += usize::from(near.is_none());
            pod_of.push(near.map_or(pods - 1, |other| pod_of[other]));
        }
        let mut pairs = (0..racks).flat_map(|a| (0..a).map(move |b| (a, b)));
        let are_groups = (2..racks).contains(&pods)
            && pairs.all(|(a, b)| is_near(a, b) == (pod_of[a] == pod_of[b]));
        if are_groups { pod_of } else { Vec::new() }
    }

    /// How wide a router's path is, in the narrowest of its rack.
    pub(super) fn weight(&self, via: IpAddr) -> f64 {
        f64::from(self.weights.get(&via).copied().unwrap_or(1))
    }

    /// How wide a rack's paths are together, in its narrowest; 1 where none were seen.
    pub(super) fn weights_of(&self, rack: usize) -> f64 {
        let members = self.forks.get(&rack).map(|fork| &fork.members);
        let weights = members.into_iter().flatten().map(|via| self.weight(*via));
        weights.sum::<f64>().max(1.0)
    }

    /// The router at which a connection parts from others. `None` where that is not known.
    pub(super) fn via(&self, key: &Key) -> Option<IpAddr> {
        self.via.get(key).copied()
    }

    /// Routers above the tier in which a connection's path parts from others.
    pub(super) fn above(&self, key: &Key) -> &[(usize, IpAddr)] {
        self.above.get(key).map_or(&[], Vec::as_slice)
    }

    /// Parallel paths of the rack that has most. `None` where no router answered.
    pub fn most_paths(&self) -> Option<u32> {
        let paths = self.forks.values().map(|fork| fork.members.len() as u32);
        paths.max().filter(|paths| *paths > 0)
    }

    /// The same, where there are several, and connections traced.
    pub fn paths(&self) -> Option<(usize, usize)> {
        let max = self.most_paths().filter(|paths| *paths > 1)?;
        let traced = self.forks.values().map(Fork::traced).sum();
        Some((max as usize, traced))
    }
}

impl Traces {
    /// Routers at which each rack's paths part, and connections traced over them.
    pub(super) fn of_racks(&self) -> BTreeMap<usize, BTreeMap<IpAddr, u32>> {
        let of_fork = |fork: &Fork| {
            let mut routers: BTreeMap<IpAddr, u32> = BTreeMap::new();
            for (router, connections) in fork.to.values().flat_map(|ways| &ways.members) {
                *routers.entry(*router).or_default() += *connections as u32;
            }
            routers
        };
        let forks = self.forks.iter();
        forks.map(|(rack, fork)| (*rack, of_fork(fork))).collect()
    }
}

impl Traced<'_> {
    fn router(&self, hop: usize) -> Option<IpAddr> {
        self.path.hops.get(hop).copied().flatten()
    }

    fn routers_after(&self, hop: usize) -> Vec<(usize, IpAddr)> {
        let hops = self.path.hops.iter().enumerate().skip(hop + 1);
        hops.filter_map(|(at, router)| Some((at, (*router)?)))
            .collect()
    }

    fn ends_before(&self, hop: usize) -> bool {
        let from_hop = self.path.hops.get(hop..).unwrap_or_default();
        from_hop.iter().all(Option::is_none)
    }

    fn judged(&self, parting_hop: usize) -> Judged {
        Judged {
            src: self.key.src,
            dst: self.key.dst,
            racks: self.racks,
            via: self.router(parting_hop),
            is_bad: !self.path.is_complete,
            of_pace: if self.path.is_complete { 1.0 } else { 0.0 },
            retransmitted: 0.0,
            segments: 0.0,
            lost: 0.0,
            asked: None,
        }
    }
}

/// Weights that are thought of: unequal paths are of a few speeds.
const WEIGHTS: std::ops::RangeInclusive<u32> = 2..=4;

impl Fork {
    /// Connections whose router is known.
    pub(super) fn traced(&self) -> usize {
        self.to.values().map(Ways::traced).sum()
    }

    /// The routers that take a whole number of times as many connections as each other one, by a
    /// likelihood that outweighs the choice among routers and the odds against it.
    fn heavier(&self) -> Vec<(IpAddr, u32)> {
        let price = (self.members.len() as f64).ln() + (1.0 / FAULT_ODDS).ln();
        let weight = |via: &IpAddr| {
            let gains = WEIGHTS.map(|weight| (self.gain(*via, f64::from(weight)), weight));
            let best = gains.max_by(|a, b| a.0.total_cmp(&b.0));
            best.filter(|(gain, _)| *gain > price)
                .map(|(_, weight)| weight)
        };
        let members = self.members.iter();
        members
            .filter_map(|via| Some((*via, weight(via)?)))
            .collect()
    }

    /// Log-likelihood gained by a router's weight. Rack by rack: a path that is lost to one of them
    /// takes nothing there, and the others more.
    fn gain(&self, via: IpAddr, weight: f64) -> f64 {
        let of_ways = |ways: &Ways| {
            let own = ways.members.get(&via).copied()? as f64;
            let (all, count) = (ways.traced() as f64, ways.members.len() as f64);
            let sum = count - 1.0 + weight;
            Some(own * (weight * count / sum).ln() + (all - own) * (count / sum).ln())
        };
        self.to.values().filter_map(of_ways).sum()
    }
}

impl Ways {
    pub(super) fn traced(&self) -> usize {
        self.members.values().sum()
    }
}

/// Each connection once, as the last round has it that traced most of its path: a round that was
/// incomplete was repeated.
fn traced<'a>(observations: &Observations<'a>) -> Vec<Traced<'a>> {
    let mut best: BTreeMap<Key, Traced<'a>> = BTreeMap::new();
    let known = |one: &Traced<'_>| one.path.hops.iter().flatten().count();
    for one in traces(observations) {
        let before = best.get(&one.key);
        if before.is_none_or(|before| known(before) <= known(&one)) {
            best.insert(one.key, one);
        }
    }
    best.into_values().collect()
}

fn traces<'a>(observations: &Observations<'a>) -> Vec<Traced<'a>> {
    let inventory = observations.inventory();
    let stages = observations.stages.iter();
    let rows = stages
        .filter(|stage| stage.stage.workload.kind == WorkloadKind::Trace)
        .flat_map(|stage| stage.measured());
    rows.filter_map(|row| {
        let racks = inventory.racks_between(row.src, row.dst)?;
        Some((row, racks, row.sender.as_ref()?))
    })
    .flat_map(|(row, racks, sender)| {
        sender.streams.iter().filter_map(move |stream| {
            Some(Traced {
                key: Key {
                    src: row.src,
                    dst: row.dst,
                    ports: (stream.local_port, stream.peer_port),
                },
                racks,
                path: stream.path.as_ref()?,
            })
        })
    })
    .collect()
}

/// The hop, from 0, at which paths part: the first one with several routers between the same two
/// racks, the same for all racks, since a rack may have one path left. Where none part, the first
/// hop above a rack's own switch.
fn parting_hop(traced: &[Traced<'_>]) -> usize {
    let mut routers: BTreeMap<(usize, usize, usize), BTreeSet<IpAddr>> = BTreeMap::new();
    for one in traced {
        for (hop, router) in one.path.hops.iter().enumerate() {
            if let Some(router) = router {
                let at = (one.racks.0, one.racks.1, hop);
                routers.entry(at).or_default().insert(*router);
            }
        }
    }
    let several = routers.iter().filter(|(_, routers)| routers.len() > 1);
    let parting = several.map(|((_, _, hop), _)| *hop).min();
    parting.unwrap_or(ABOVE_RACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(ways: &[&[usize]]) -> Fork {
        let router = |host: u8| IpAddr::from([198, 19, 1, host]);
        let ways = ways.iter().map(|counts| Ways {
            members: (1..)
                .zip(*counts)
                .filter(|(_, count)| **count > 0)
                .map(|(host, count)| (router(host), *count))
                .collect(),
            silent: 0,
        });
        let to: BTreeMap<usize, Ways> = (0..).zip(ways).collect();
        Fork {
            members: to
                .values()
                .flat_map(|it| it.members.keys().copied())
                .collect(),
            to,
            cut: 0,
        }
    }

    #[test]
    fn a_weight_is_a_multiple_that_chance_does_not_explain() {
        let wide = |host: u8, weight| vec![(IpAddr::from([198, 19, 1, host]), weight)];
        assert_eq!(fork(&[&[90, 110, 85, 115]]).heavier(), []);
        assert_eq!(fork(&[&[7, 3]]).heavier(), []);
        assert_eq!(fork(&[&[100, 50, 48, 53]]).heavier(), wide(1, 2));
        assert_eq!(fork(&[&[40, 118]]).heavier(), wide(2, 3));
    }

    #[test]
    fn a_path_that_is_lost_to_one_rack_makes_no_other_heavier() {
        let lost_to_one: [&[usize]; 2] = [&[25, 0, 23], &[17, 14, 17]];
        assert_eq!(fork(&lost_to_one).heavier(), []);
        assert_eq!(fork(&[&[48, 0], &[20, 28]]).heavier(), []);
    }
}
