//! The explained network: what hosts do, what differs, and what nothing explains.

use super::HostRates;
use super::explain::{Found, rivals};
use super::fitted::{Fitted, LEFT_BY_COLLISIONS, Sums};
use super::hypothesis::{Capacities, Direction, Effect, Fabric, Hypothesis, Location, Part};
use super::loss;
use super::members::Posterior;
use super::noise::{ISOLATED_SIGMA, LITTLE_STARVATION};
use super::obs::Obs;
use super::pairs::UnexplainedPairs;
use super::pods::{self, PodLimit};
use super::rounds::Rounds;
use super::score::Predicted;
use super::search::Search;
use super::side::Side;
use super::uplinks::{self, RackDirection, Reach};
use super::views;
use ew_evidence::criteria::{EQUAL, FULL};
use ew_evidence::observations::Observations;
use ew_evidence::quality::Quality;
use ew_model::analysis::{Estimate, RackAnalysis, RackPairAnalysis};
use ew_model::{HostId, RackId};
use ew_plan::expectation::Capacities as PlanCapacities;
use ew_stats::{median, median_estimate};
use std::collections::{BTreeMap, BTreeSet};

/// A side that does less than its class.
#[derive(Clone, Debug)]
pub struct SlowSide {
    /// What it did where it was the limit.
    pub rate: Estimate,
    /// Different hosts at the other end.
    pub partners: u32,
    /// What the run's explanation loses without it, nats.
    pub gain: f64,
    /// Random loss, and not a lower capacity.
    pub lossy: bool,
}

/// A part of the explanation, and what it is worth.
#[derive(Clone, Debug)]
pub struct PartFound {
    /// Where.
    pub location: Location,
    /// What, and how much.
    pub effect: Effect,
    /// What the explanation loses without it, nats.
    pub gain: f64,
    /// Flows that it predicts better, of those it touches, in so many rounds.
    pub explained: usize,
    /// Flows that it touches.
    pub touched: usize,
    /// Rounds of the flows that it predicts better.
    pub rounds: usize,
    /// Locations that would explain as much.
    pub rivals: Vec<Location>,
}

/// A flow that shared no end with another, and that only its hosts limit.
#[derive(Clone, Copy, Debug)]
pub struct Isolated {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// By index.
    pub stage: usize,
    /// Flows of the same number were measured at the same time.
    pub round: usize,
    /// As received, in its window.
    pub bits_per_sec: f64,
    /// What its hosts allow.
    pub expected_bits_per_sec: f64,
    /// Of all segments, 0 to 1. `None` where TCP did not report it.
    pub retransmitted_share: Option<f64>,
    /// Its better intervals are close to the middle ones, as those of what is full; random loss
    /// makes TCP swing.
    pub is_steady: bool,
    /// Whether it leaves its rack.
    pub crosses: bool,
}

/// Everything the fit found.
#[derive(Debug)]
pub struct Network {
    /// How well the rounds were measured.
    pub quality: Quality,
    /// `None` where nothing could be fitted.
    pub hypothesis: Option<Hypothesis>,
    /// Departures from "all alike".
    pub parts: Vec<PartFound>,
    /// What is known of parallel paths, where that was asked.
    paths: Option<Posterior>,
    /// What one link of a typical host carries, where it has several.
    link_bits_per_sec: Option<f64>,
    /// Links of a typical host, over which its connections are hashed.
    pub links: f64,
    /// Sides of hosts that do less than their class.
    pub slow: BTreeMap<Side, SlowSide>,
    /// Median over the hosts of the largest class of what each does when only hosts limit.
    pub typical: Option<Estimate>,
    /// The same of every class, ascending, with its hosts.
    pub classes: Vec<(Estimate, Vec<HostId>)>,
    /// Flows that shared nothing.
    pub isolated: Vec<Isolated>,
    /// Per rack: out, in.
    pub racks: Vec<[RackDirection; 2]>,
    /// From which rack to which connections lose alike at light load, and which share.
    pub(crate) lossy_ways: BTreeMap<(usize, usize), f64>,
    /// Sides of hosts all of whose cross-rack connections lose at light load.
    pub lossy_sides: BTreeSet<Side>,
    /// Every ordered pair.
    pub rack_pairs: Vec<RackPairAnalysis>,
    /// Pods that limit their racks.
    pub pods: Vec<PodLimit>,
    /// Pairs that nothing explains, and the number of all flows.
    pub unexplained: UnexplainedPairs,
    /// All flows, of rounds that count.
    pub flows: usize,
    /// Median share of segments that isolated flows retransmit.
    pub typical_loss: f64,
    /// Spread of the logarithm of what isolated intra-rack flows do of what their hosts can.
    pub scatter: f64,
    /// By stage and index of the round: predicted sum over the flows, and measured.
    sums: Sums,
}

impl Network {
    /// Nothing was measured, or nothing that counts.
    pub(super) fn nothing(
        observations: &Observations<'_>,
        rounds: &Rounds,
        quality: Quality,
    ) -> Self {
        Self {
            quality,
            hypothesis: None,
            parts: Vec::new(),
            paths: None,
            link_bits_per_sec: None,
            links: 1.0,
            slow: BTreeMap::new(),
            typical: None,
            classes: Vec::new(),
            isolated: Vec::new(),
            racks: Vec::new(),
            lossy_ways: BTreeMap::new(),
            lossy_sides: BTreeSet::new(),
            rack_pairs: views::unknown_pairs(observations),
            pods: Vec::new(),
            unexplained: UnexplainedPairs::default(),
            flows: rounds.obs.len(),
            typical_loss: 0.0,
            scatter: rounds.scatter,
            sums: BTreeMap::new(),
        }
    }

    pub(super) fn new(
        observations: &Observations<'_>,
        found: Found,
        (quality, host_rates): (Quality, HostRates),
        rounds: &Rounds,
    ) -> Self {
        let mut search = Search::new(rounds);
        let mut hypothesis = found.hypothesis;
        let is_unknown = host_rates == HostRates::Unknown;
        if is_unknown {
            hypothesis.parts.retain(Part::is_of_racks);
        }
        let parts = parts(&mut search, &hypothesis);
        let fitted = Fitted::new(search.scorer(), &hypothesis);
        let slow = slow_sides(&fitted, &parts);
        let isolated = isolated(&fitted);
        let classes = match is_unknown {
            true => Vec::new(),
            false => classes(&fitted, &isolated, &slow),
        };
        let mut racks = uplinks::racks(&fitted, found.paths.as_ref());
        if host_rates == HostRates::OfLinks {
            let directions = racks.iter_mut().flatten();
            directions.for_each(RackDirection::widen_by_links);
        }
        let mut pods = pods::limits(&fitted);
        let sums = match quality.is_throttled || is_unknown {
            true => {
                racks.iter_mut().flatten().for_each(RackDirection::forget);
                pods.clear();
                fitted.sums(1.0)
            }
            false => sums_as_reported(&fitted, &racks),
        };
        // Where rates are unknown, so is what flows should do.
        let known = (!is_unknown).then(|| without_open_racks(&hypothesis, &racks));
        let unexplained = known.map(|known| super::pairs::unexplained(&mut search, &known));
        let mut rack_pairs = views::rack_pairs(observations, &fitted, &racks);
        let limit = observations.run.plan.rate_limit.as_ref();
        if let Some(share) = limit.and_then(|limit| limit.of_line_rate) {
            let directions = racks.iter_mut().flatten();
            directions.for_each(|direction| direction.hold_against_line_rate(share));
            let pairs = rack_pairs.iter_mut();
            pairs.for_each(|pair| views::hold_against_line_rate(pair, share));
        }
        let largest = classes.iter().max_by_key(|(_, hosts)| hosts.len());
        Self {
            quality,
            typical: largest.map(|(rate, _)| *rate),
            classes,
            lossy_ways: rounds.paced.common_losses(),
            lossy_sides: lossy_sides(rounds),
            rack_pairs,
            pods,
            unexplained: unexplained.unwrap_or_default(),
            flows: rounds.obs.len(),
            typical_loss: rounds.loss.typical_share(),
            scatter: rounds.scatter,
            sums,
            parts,
            paths: found.paths,
            link_bits_per_sec: link(rounds, &hypothesis),
            links: links(rounds),
            slow,
            isolated,
            racks,
            hypothesis: Some(hypothesis),
        }
    }

    /// A side's rate when only hosts limit: its own where it is slow, else towards partners that
    /// are not slower.
    pub fn side_rate(&self, side: Side) -> Option<Estimate> {
        if let Some(slow) = self.slow.get(&side) {
            return Some(slow.rate);
        }
        let partner_is_slow = |flow: &&Isolated| {
            let (own, other, partner) = match side {
                Side::Tx(own) => (own, flow.dst, Side::Rx(flow.dst)),
                Side::Rx(own) => (own, flow.src, Side::Tx(flow.src)),
            };
            let of_class = self.class_rate(own).zip(self.class_rate(other));
            let is_of_slower_class = of_class.is_some_and(|(own, other)| other < FULL * own);
            is_of_slower_class || self.slow.contains_key(&partner)
        };
        let own = self.isolated.iter().filter(|flow| flow.is_of(side));
        let (slowed, free): (Vec<&Isolated>, Vec<&Isolated>) = own.partition(partner_is_slow);
        let rates = |flows: &[&Isolated]| {
            flows
                .iter()
                .map(|flow| flow.bits_per_sec)
                .collect::<Vec<_>>()
        };
        median_estimate(&rates(&free)).or_else(|| median_estimate(&rates(&slowed)))
    }

    /// A side's rate over its class'.
    pub fn effect(&self, side: Side) -> Option<f64> {
        Some(self.side_rate(side)?.value / self.class_rate(side.host())?)
    }

    /// What a host of that class does.
    pub fn class_rate(&self, host: HostId) -> Option<f64> {
        let hypothesis = self.hypothesis.as_ref()?;
        let class = *hypothesis.class_of.get(host.index())?;
        self.classes
            .get(class)
            .map(|(rate, _)| rate.value)
            .filter(|rate| *rate > 0.0)
    }

    /// In either direction.
    pub fn is_slow(&self, host: HostId) -> bool {
        self.slow.contains_key(&Side::Tx(host)) || self.slow.contains_key(&Side::Rx(host))
    }

    /// Whether segments are lost at random on the way from one host to another, between racks: what
    /// that takes from a flow is none of its hosts'.
    pub fn loses_between(&self, racks: Option<(usize, usize)>) -> bool {
        let loses = |rack: usize, end: usize| {
            let ends = self.racks.get(rack);
            ends.is_some_and(|ends| !ends[end].lost_shares.is_empty())
        };
        racks.is_some_and(|way| {
            loses(way.0, 0) || loses(way.1, 1) || self.lossy_ways.contains_key(&way)
        })
    }

    /// Capacities with every host as its class does, or by `of_host`, and racks as found.
    pub fn healthy(&self, hosts: usize, of_host: impl Fn(HostId) -> f64) -> PlanCapacities {
        let own: Vec<f64> = (0..hosts as u32)
            .map(|host| of_host(HostId(host)))
            .collect();
        let limit = |direction: usize| {
            let racks = self.racks.iter();
            racks
                .map(|rack| rack[direction].capacity.map(|capacity| capacity.value))
                .collect()
        };
        PlanCapacities {
            tx_bits_per_sec: own.clone(),
            rx_bits_per_sec: own,
            up_bits_per_sec: limit(0),
            down_bits_per_sec: limit(1),
        }
    }

    /// The racks as reports show them.
    pub fn rack_analyses(&self) -> Vec<RackAnalysis> {
        let racks = (0..).map(RackId).zip(&self.racks);
        racks
            .map(|(rack, [tx, rx])| RackAnalysis {
                rack,
                tx: tx.analysis(),
                rx: rx.analysis(),
                paths: Vec::new(),
            })
            .collect()
    }

    /// What is known of parallel paths, where the fit found such.
    pub fn parallel_paths(&self) -> Option<&Posterior> {
        let fabric = self.hypothesis.as_ref()?.fabric;
        self.paths
            .as_ref()
            .filter(|_| matches!(fabric, Fabric::Paths { .. }))
    }

    /// What one connection carries at most, where that is less than a host does with several.
    pub fn connection_limit(&self) -> Option<f64> {
        let mut parts = self.parts.iter();
        let limit = parts.find_map(|part| match (part.location, part.effect) {
            (Location::Connection, Effect::Capacity(value)) => Some(value),
            _ => None,
        });
        limit.or(self.link_bits_per_sec)
    }

    /// A stage's measured over explained sums, median over its rounds.
    pub fn explained(&self, stage: usize) -> Option<f64> {
        let rounds = self.sums.range((stage, 0)..(stage + 1, 0));
        let ratios = rounds.filter(|(_, (predicted, _))| *predicted > 0.0);
        median(
            &ratios
                .map(|(_, (predicted, measured))| measured / predicted)
                .collect::<Vec<_>>(),
        )
    }
}

impl Isolated {
    /// Whether the side is an end of it.
    pub fn is_of(&self, side: Side) -> bool {
        match side {
            Side::Tx(host) => self.src == host,
            Side::Rx(host) => self.dst == host,
        }
    }
}

/// The sums of stages by what is reported.
fn sums_as_reported(fitted: &Fitted<'_>, racks: &[[RackDirection; 2]]) -> Sums {
    let (reported, is_open) = as_reported(fitted, racks);
    let of_crossing = match is_open && fitted.rounds.may_collide() {
        true => LEFT_BY_COLLISIONS,
        false => 1.0,
    };
    let mut search = Search::new(fitted.rounds);
    Fitted::new(search.scorer(), &reported).sums(of_crossing)
}

/// The explanation with what is reported of each rack's uplinks. The search weighs all flows alike;
/// what a rack carries is known from those of many connections. What is left open explains nothing:
/// that a stage stays below its expectation is reported then. With whether anything is.
fn as_reported(fitted: &Fitted<'_>, racks: &[[RackDirection; 2]]) -> (Hypothesis, bool) {
    let mut reported = fitted.hypothesis.clone();
    let mut is_open = false;
    if matches!(reported.fabric, Fabric::Paths { .. }) {
        return (reported, is_open);
    }
    for (rack, directions) in racks.iter().enumerate() {
        for (index, direction) in [Direction::Tx, Direction::Rx].into_iter().enumerate() {
            let found = &directions[index];
            let is_limit = fitted.uplinks()[index * racks.len() + rack].is_finite();
            let value = match (found.capacity, found.reach) {
                (Some(capacity), _) => capacity.value,
                (None, Reach::NotTested) if is_limit => f64::INFINITY,
                (None, _) => continue,
            };
            is_open |= value.is_infinite();
            reported.parts.push(Part {
                location: Location::Rack(rack, direction),
                effect: Effect::Capacity(value),
            });
        }
    }
    (reported, is_open)
}

/// The explanation without racks of which it is left open that their uplinks differ from others':
/// their flows are unexplained.
fn without_open_racks(hypothesis: &Hypothesis, racks: &[[RackDirection; 2]]) -> Hypothesis {
    let mut known = hypothesis.clone();
    known.parts.retain(|part| match part.location {
        Location::Rack(rack, _) => racks[rack]
            .iter()
            .any(|found| found.reach == Reach::Limits || !found.lost_shares.is_empty()),
        _ => true,
    });
    known
}

fn lossy_sides(rounds: &Rounds) -> BTreeSet<Side> {
    let outlying = loss::outlying_share(rounds.loss.typical_share());
    rounds.paced.lossy_sides(outlying)
}

fn isolated(fitted: &Fitted<'_>) -> Vec<Isolated> {
    let flows = fitted.flows().filter(|(round, slot, obs, predicted)| {
        let hidden = fitted.capacities.paths > 1 && obs.racks.is_some();
        !hidden && fitted.is_isolated(*round, *slot, predicted)
    });
    let isolated = |(round, slot, obs, _): (usize, usize, &Obs, Predicted)| Isolated {
        round,
        src: obs.src,
        dst: obs.dst,
        stage: fitted.rounds.rounds[round].stage,
        bits_per_sec: obs.bits_per_sec,
        expected_bits_per_sec: fitted.asked[round][slot].bits_per_sec,
        retransmitted_share: obs.retransmitted_share,
        is_steady: obs.is_steady,
        crosses: obs.racks.is_some(),
    };
    flows.map(isolated).collect()
}

/// What each class does: one value for each of its hosts, so that hosts and not their flows are the
/// samples.
fn classes(
    fitted: &Fitted<'_>,
    isolated: &[Isolated],
    slow: &BTreeMap<Side, SlowSide>,
) -> Vec<(Estimate, Vec<HostId>)> {
    let mut of_hosts: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    for flow in isolated {
        if slow.contains_key(&Side::Tx(flow.src)) || slow.contains_key(&Side::Rx(flow.dst)) {
            continue;
        }
        let class =
            |host: HostId| fitted.hypothesis.classes[fitted.hypothesis.class_of[host.index()]];
        for (host, other) in [(flow.src, flow.dst), (flow.dst, flow.src)] {
            if class(host) <= class(other) {
                of_hosts.entry(host).or_default().push(flow.bits_per_sec);
            }
        }
    }
    let of_class = |(class, value): (usize, &f64)| {
        let hosts: Vec<HostId> = (0..fitted.rounds.hosts as u32)
            .map(HostId)
            .filter(|host| fitted.hypothesis.class_of[host.index()] == class)
            .collect();
        let rates = hosts.iter().filter_map(|host| median(of_hosts.get(host)?));
        let fallback = Estimate {
            value: *value,
            low: None,
            high: None,
            samples: 0,
        };
        (
            median_estimate(&rates.collect::<Vec<_>>()).unwrap_or(fallback),
            hosts,
        )
    };
    fitted
        .hypothesis
        .classes
        .iter()
        .enumerate()
        .map(of_class)
        .collect()
}

/// The median host's.
fn links(rounds: &Rounds) -> f64 {
    let members: Vec<f64> = rounds.members.iter().copied().map(f64::from).collect();
    median(&members).unwrap_or(1.0)
}

/// The median host's, which may have one.
fn link(rounds: &Rounds, hypothesis: &Hypothesis) -> Option<f64> {
    let of_hosts = hypothesis.capacities(rounds).link_bits_per_sec;
    (links(rounds) > 1.0).then(|| median(&of_hosts)).flatten()
}

fn slow_sides(fitted: &Fitted<'_>, parts: &[PartFound]) -> BTreeMap<Side, SlowSide> {
    let mut slow = BTreeMap::new();
    for part in parts {
        let Location::Host(host, direction) = part.location else {
            continue;
        };
        let sides = [
            (direction.has_tx(), Side::Tx(host)),
            (direction.has_rx(), Side::Rx(host)),
        ];
        for (_, side) in sides.into_iter().filter(|(is_meant, _)| *is_meant) {
            slow.insert(side, slow_side(fitted, part, side));
        }
    }
    slow
}

/// What the side did where it was the limit; the fitted value where it never was alone.
fn slow_side(fitted: &Fitted<'_>, part: &PartFound, side: Side) -> SlowSide {
    let resource = match side {
        Side::Tx(host) => Capacities::tx(host),
        Side::Rx(host) => fitted.capacities.rx(host),
    } as u32;
    let mut rates = Vec::new();
    let mut partners = BTreeSet::new();
    for (round, slot, obs, predicted) in fitted.flows() {
        let (own, other) = match side {
            Side::Tx(host) => (obs.src == host, obs.dst),
            Side::Rx(host) => (obs.dst == host, obs.src),
        };
        let is_limit = predicted.bottleneck == resource || predicted.lossy;
        let had_cpu = obs.starvation < LITTLE_STARVATION;
        if own && is_limit && had_cpu && fitted.rounds.rounds[round].alone[slot] {
            rates.push(obs.bits_per_sec);
            partners.insert(other);
        }
    }
    let fitted_value = match part.effect {
        Effect::Capacity(value) => value,
        Effect::Loss(left) => left * fitted.capacities.bits_per_sec[resource as usize],
    };
    let fallback = Estimate {
        value: fitted_value,
        low: None,
        high: None,
        samples: 0,
    };
    SlowSide {
        rate: median_estimate(&rates).unwrap_or(fallback),
        partners: partners.len() as u32,
        gain: part.gain,
        lossy: matches!(part.effect, Effect::Loss(_)),
    }
}

fn parts(search: &mut Search<'_>, hypothesis: &Hypothesis) -> Vec<PartFound> {
    let best = search.worth(hypothesis);
    let rounds = search.rounds;
    let with = predictions(search, hypothesis);
    (0..hypothesis.parts.len())
        .map(|index| {
            let without = hypothesis.without(index);
            let gain = best - search.worth(&without);
            let (touched, explained, in_rounds) =
                compare(rounds, &with, &predictions(search, &without));
            PartFound {
                location: hypothesis.parts[index].location,
                effect: hypothesis.parts[index].effect,
                gain,
                explained,
                touched,
                rounds: in_rounds,
                rivals: equals(search, hypothesis, index, best),
            }
        })
        .collect()
}

/// Locations that explain as much as a part's own, best first.
fn equals(
    search: &mut Search<'_>,
    hypothesis: &Hypothesis,
    index: usize,
    best: f64,
) -> Vec<Location> {
    let mut equals: Vec<(f64, Part)> = Vec::new();
    for rival in rivals(search.rounds, hypothesis, index) {
        let mut other = hypothesis.clone();
        other.parts[index] = rival;
        let worth = search.worth(&other);
        if worth > best - EQUAL {
            equals.push((worth, rival));
        }
    }
    equals.sort_by(|a, b| b.0.total_cmp(&a.0));
    equals.into_iter().map(|(_, part)| part.location).collect()
}

fn predictions(search: &mut Search<'_>, hypothesis: &Hypothesis) -> Vec<f64> {
    let rounds = search.rounds;
    let capacities = hypothesis.capacities(rounds);
    let mut all = Vec::with_capacity(rounds.obs.len());
    for round in &rounds.rounds {
        let predicted = search.scorer().mean_prediction(&capacities, round);
        all.extend(predicted.iter().map(|flow| flow.bits_per_sec.max(1.0).ln()));
    }
    all
}

/// Flows whose prediction differs, those that are nearer with the part, and the rounds they are in.
fn compare(rounds: &Rounds, with: &[f64], without: &[f64]) -> (usize, usize, usize) {
    let (mut touched, mut explained, mut in_rounds) = (0, 0, 0);
    for round in &rounds.rounds {
        let before = touched;
        for at in round
            .flows
            .clone()
            .filter(|at| (with[*at] - without[*at]).abs() > ISOLATED_SIGMA)
        {
            let ln_rate = rounds.obs[at].ln_rate;
            touched += 1;
            explained += usize::from((ln_rate - with[at]).abs() < (ln_rate - without[at]).abs());
        }
        in_rounds += usize::from(touched > before);
    }
    (touched, explained, in_rounds)
}
