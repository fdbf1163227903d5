//! What each traced path was asked to carry in the stages that load all paths in part.
//!
//! Hashing is uneven: at three quarters load, and with few connections at half, a healthy path may
//! be asked for more than it carries, as far as any path of its rack ever carried. It is full then,
//! and what its connections lose shows nothing. What is asked is what flows' better connections
//! do: what starved or missing ones carry is less, and may still be sent in bursts.
//!
//! Of large racks not all connections are traced. The others are on any path: each may have carried
//! its share of them and, since few hash unevenly, more.

use super::connections::{Key, PACE, connections_of};
use super::traces::Traces;
use ew_evidence::criteria::{MIN_EFFECT, SIGNIFICANT};
use ew_evidence::observations::{Observations, RoundView, StageView};
use ew_model::HostId;
use ew_stats::{median, quantile};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// Out of a rack over a router, or from there into another rack.
    OfRack { way: Way, via: IpAddr },
    /// To a router above the racks' own tier, so many hops from the host that sends.
    Above { hop: usize, router: IpAddr },
}

impl Link {
    fn end(self) -> End {
        match self {
            Self::OfRack {
                way: (from, None), ..
            } => End::OutOf(from),
            Self::OfRack {
                way: (_, Some(into)),
                ..
            } => End::Into(into),
            Self::Above { hop, .. } => End::Above(hop),
        }
    }
}

/// Links of one end are built alike but for their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    OutOf(usize),
    Into(usize),
    Above(usize),
}

/// What is asked of a link, or may be.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// By connections whose path is known.
    known: f64,
    /// The max that the others may add.
    possible: f64,
}

/// From a rack to all others or to one.
type Way = (usize, Option<usize>);

/// Connections whose path is not known.
#[derive(Clone, Copy, Debug, Default)]
struct Unknown {
    connections: f64,
    rate: f64,
}

impl Unknown {
    fn add(&mut self, connections: f64, pace: f64) {
        self.connections += connections;
        self.rate += connections * pace;
    }

    fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            rate: self.rate + other.rate,
        }
    }

    /// The max of it that may be on a path that is such a part of all, of so many links: counts
    /// exceed their mean by z standard deviations with a chance below exp(-z^2 / 2) (Chernoff).
    fn on_part(self, part: f64, links: usize) -> f64 {
        let each = self.rate / self.connections.max(1.0);
        let mean = self.connections * part;
        let deviations = (2.0 * (links as f64 / SIGNIFICANT).ln()).sqrt();
        each * (mean + deviations * mean.sqrt()).min(self.connections)
    }
}

/// What the connections of a stage ask for.
struct Paces {
    /// Of each, by the pair of hosts: what most connections of its flow reach, in the round in
    /// which they reach most.
    of_pairs: BTreeMap<(HostId, HostId), BTreeMap<Key, f64>>,
    /// The median flow's.
    typical: f64,
}

impl Paces {
    fn of(stage: &StageView<'_>) -> Self {
        let mut of_pairs: BTreeMap<_, BTreeMap<Key, f64>> = BTreeMap::new();
        let mut all = Vec::new();
        for row in stage.rounds.iter().flat_map(|round| &round.records) {
            let seen = connections_of(row);
            let rates: Vec<f64> = seen.iter().map(|seen| seen.rate).collect();
            let Some(pace) = quantile(&rates, PACE) else {
                continue;
            };
            all.push(pace);
            let of_pair = of_pairs.entry((row.src, row.dst)).or_default();
            for seen in seen {
                let known = of_pair.entry(seen.key).or_default();
                *known = known.max(pace);
            }
        }
        let typical = median(&all).unwrap_or_default();
        Self { of_pairs, typical }
    }
}

/// The sums of all rounds, in the unit of the connections' rates.
#[derive(Debug, Default)]
pub(super) struct Loads<'a> {
    /// By stage and index of the round.
    rounds: BTreeMap<(usize, usize), BTreeMap<Link, Asked>>,
    /// The most that one of a rack's links carried, over the weight of its path.
    most: BTreeMap<End, f64>,
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
            let paces = Paces::of(stage);
            for (index, round) in stage.rounds.iter().enumerate() {
                loads.note_carried(round);
                let asked = loads.asked(stage, round, &paces);
                loads.rounds.insert((at, index), asked);
            }
        }
        loads
    }

    fn note_carried(&mut self, round: &RoundView<'_>) {
        let mut sums: BTreeMap<Link, f64> = BTreeMap::new();
        for seen in round.records.iter().flat_map(|row| connections_of(row)) {
            for link in self.links(&seen.key) {
                *sums.entry(link).or_default() += seen.rate;
            }
        }
        for (link, carried) in sums {
            let carried = carried / self.weight(&link);
            let most = self.most.entry(link.end()).or_default();
            *most = most.max(carried);
        }
    }

    fn asked(
        &self,
        stage: &StageView<'_>,
        round: &RoundView<'_>,
        paces: &Paces,
    ) -> BTreeMap<Link, Asked> {
        let mut sums: BTreeMap<Link, Asked> = BTreeMap::new();
        let mut unknown: BTreeMap<Way, Unknown> = BTreeMap::new();
        let planned = stage.stage.rounds.get(round.index.0 as usize);
        for flow in planned.map_or(&round.flows, |planned| &planned.flows) {
            let Some(connections) = paces.of_pairs.get(&(flow.src, flow.dst)) else {
                // One that has no figure may have sent over those of its connections that opened.
                let streams = f64::from(stage.stage.workload.streams);
                for way in self.ways(flow.src, flow.dst) {
                    unknown.entry(way).or_default().add(streams, paces.typical);
                }
                continue;
            };
            for (key, pace) in connections {
                let links = self.links(key);
                for link in &links {
                    sums.entry(*link).or_default().known += pace;
                }
                let is_traced = !links.is_empty();
                for way in self.ways(key.src, key.dst).filter(|_| !is_traced) {
                    unknown.entry(way).or_default().add(1.0, *pace);
                }
            }
        }
        let links = sums.len();
        let mut at_hop: BTreeMap<End, f64> = BTreeMap::new();
        for link in sums.keys() {
            *at_hop.entry(link.end()).or_default() += 1.0;
        }
        let of_all = unknown.iter().filter(|((_, into), _)| into.is_none());
        let of_all = of_all.fold(Unknown::default(), |all, (_, one)| all.and(*one));
        for (link, asked) in &mut sums {
            asked.possible = match link {
                Link::OfRack { way, .. } => {
                    let all = self.traces.map_or(1.0, |it| it.weights_of(way.0));
                    let part = self.weight(link) / all;
                    let unknown = unknown.get(way);
                    unknown.map_or(0.0, |unknown| unknown.on_part(part, links))
                }
                Link::Above { .. } => of_all.on_part(1.0 / at_hop[&link.end()], links),
            };
        }
        sums
    }

    /// Whether a connection's path is full in a round, as a healthy one may be.
    pub(super) fn is_full(&self, round_at: (usize, usize), key: &Key) -> bool {
        let sums = self.rounds.get(&round_at);
        self.links(key).into_iter().any(|link| {
            let asked = sums.and_then(|sums| sums.get(&link)).copied();
            let most = self.most.get(&link.end()).copied();
            asked.zip(most).is_some_and(|(asked, most)| {
                asked.known + asked.possible > (1.0 - MIN_EFFECT) * self.weight(&link) * most
            })
        })
    }

    /// What a connection's path is asked for in a round by those whose path is known: out of its
    /// rack, and of that into the other.
    pub(super) fn asked_of_path(&self, round_at: (usize, usize), key: &Key) -> Option<[f64; 2]> {
        let via = self.traces?.via(key)?;
        let sums = self.rounds.get(&round_at)?;
        let known = |way| Some(sums.get(&Link::OfRack { way, via })?.known);
        let (from, into) = self.racks_of(key.src, key.dst)?;
        Some([known((from, None))?, known((from, Some(into)))?])
    }

    fn weight(&self, link: &Link) -> f64 {
        match link {
            Link::OfRack { via, .. } => self.traces.map_or(1.0, |traces| traces.weight(*via)),
            Link::Above { .. } => 1.0,
        }
    }

    /// Out of its rack, into the other, and between. None where its path is not known or inside a
    /// rack.
    fn links(&self, key: &Key) -> Vec<Link> {
        let Some((traces, via)) = self.traces.and_then(|it| Some((it, it.via(key)?))) else {
            return Vec::new();
        };
        let of_rack = |way| Link::OfRack { way, via };
        let of_racks = self.ways(key.src, key.dst).map(of_rack);
        let above = traces.above(key).iter();
        let above = above.map(|(hop, router)| Link::Above {
            hop: *hop,
            router: *router,
        });
        of_racks.chain(above).collect()
    }

    /// From a host's rack, and into another's.
    fn ways(&self, src: HostId, dst: HostId) -> impl Iterator<Item = Way> {
        let racks = self.racks_of(src, dst).into_iter();
        racks.flat_map(|(from, into)| [(from, None), (from, Some(into))])
    }

    /// From which rack to which other.
    fn racks_of(&self, src: HostId, dst: HostId) -> Option<(usize, usize)> {
        let rack = |host| self.racks.get(&host).copied();
        rack(src).zip(rack(dst)).filter(|(from, into)| from != into)
    }
}
