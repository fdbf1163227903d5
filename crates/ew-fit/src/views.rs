//! The fit as tables show it: every ordered pair of racks.

use super::fitted::Fitted;
use super::uplinks::{RackDirection, Reach};
use ew_evidence::criteria::{FULL, MIN_EFFECT, NEGLIGIBLE};
use ew_evidence::observations::Observations;
use ew_model::analysis::{Estimate, RackPairAnalysis, Undetermined};
use ew_model::{HostId, RackId};
use ew_stats::{median, median_estimate, scaled};
use std::collections::BTreeMap;

/// Every ordered pair of racks, in order.
pub(super) fn rack_pairs(
    observations: &Observations<'_>,
    fitted: &Fitted<'_>,
    racks: &[[RackDirection; 2]],
) -> Vec<RackPairAnalysis> {
    let sums = Sums {
        inside: inside(fitted),
        across: across(fitted),
        ramps: ramps(observations, fitted),
    };
    pairs(racks.len())
        .map(|(from, to)| pair(fitted, racks, &sums, (from, to)))
        .collect()
}

/// The same of a run without figures.
pub(super) fn unknown_pairs(observations: &Observations<'_>) -> Vec<RackPairAnalysis> {
    let racks = observations.inventory().racks.len();
    let unknown = |(from, to)| RackPairAnalysis {
        details: Some(Undetermined::NotMeasured),
        ..empty(from, to)
    };
    pairs(racks).map(unknown).collect()
}

fn pairs(racks: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..racks).flat_map(move |from| {
        (0..racks)
            .filter(move |to| *to != from)
            .map(move |to| (from, to))
    })
}

fn empty(from: usize, to: usize) -> RackPairAnalysis {
    RackPairAnalysis {
        from: RackId(from as u32),
        to: RackId(to as u32),
        inside_bits_per_sec: None,
        across_bits_per_sec: None,
        oversubscription: None,
        limited: None,
        ramp: Vec::new(),
        knee_senders: None,
        uplink_bits_per_sec: None,
        details: None,
    }
}

type Ramps = BTreeMap<(usize, usize), BTreeMap<u32, Vec<f64>>>;

/// What racks do, from one look at all flows.
struct Sums {
    inside: BTreeMap<usize, Estimate>,
    across: BTreeMap<(usize, usize), Estimate>,
    ramps: Ramps,
}

/// As [`RackDirection::hold_against_line_rate`].
pub(super) fn hold_against_line_rate(pair: &mut RackPairAnalysis, share: f64) {
    pair.oversubscription = match pair.limited {
        Some(true) => pair
            .oversubscription
            .map(|ratio| scaled(&ratio, 1.0 / share)),
        Some(false) | None => None,
    };
    if pair.limited == Some(false) {
        pair.limited = None;
        pair.details = Some(Undetermined::TestedUpTo { share });
    }
}

fn pair(
    fitted: &Fitted<'_>,
    racks: &[[RackDirection; 2]],
    sums: &Sums,
    (from, to): (usize, usize),
) -> RackPairAnalysis {
    let (out, into) = (&racks[from][0], &racks[to][1]);
    let asked = out.hosts_bits_per_sec.min(into.hosts_bits_per_sec);
    let across = sums.across.get(&(from, to));
    let ramp = sums.ramps.get(&(from, to));
    let carried = across.map(|across| across.value);
    let limit = narrower(out, into);
    let is_lossy = out.loses || into.loses;
    let is_reached = carried.is_some_and(|carried| carried > FULL * asked);
    let limited = match limit {
        Some(limit) if capacity(limit) < (1.0 - MIN_EFFECT) * asked => Some(true),
        _ if is_reached => Some(false),
        _ if is_lossy => None,
        _ if out.reach == Reach::NotLimiting || into.reach == Reach::NotLimiting => Some(false),
        _ => None,
    };
    let oversubscription = match (limited, limit) {
        (Some(true), Some(limit)) => limit
            .ratio
            .map(|ratio| scaled(&ratio, asked / limit.hosts_bits_per_sec)),
        (Some(false), _) => out
            .ratio
            .filter(|_| out.reach == Reach::NotLimiting)
            .or(into.ratio),
        _ => None,
    };
    let typical = fitted.hypothesis.classes.last().copied();
    let is_limited = limited == Some(true);
    RackPairAnalysis {
        inside_bits_per_sec: sums.inside.get(&from).copied(),
        across_bits_per_sec: across.copied(),
        oversubscription,
        limited,
        ramp: ramp.map(points).unwrap_or_default(),
        knee_senders: limit
            .filter(|_| is_limited && ramp.is_some())
            .zip(typical)
            .map(|(limit, nic)| capacity(limit) / nic),
        uplink_bits_per_sec: limit.filter(|_| is_limited).map(capacity),
        details: limited.is_none().then_some(match is_lossy {
            true => Undetermined::Lossy,
            false => why_open(fitted),
        }),
        ..empty(from, to)
    }
}

fn why_open(fitted: &Fitted<'_>) -> Undetermined {
    match fitted.rounds.may_collide() {
        true => Undetermined::SingleConnections,
        false => Undetermined::NotLoaded,
    }
}

/// Of the uplinks on the way the one that carries less.
fn narrower<'r>(out: &'r RackDirection, into: &'r RackDirection) -> Option<&'r RackDirection> {
    let limits = [out, into]
        .into_iter()
        .filter(|direction| direction.capacity.is_some());
    limits.min_by(|a, b| capacity(a).total_cmp(&capacity(b)))
}

fn capacity(direction: &RackDirection) -> f64 {
    direction
        .capacity
        .map_or(f64::INFINITY, |capacity| capacity.value)
}

/// What the hosts of each rack do among each other.
fn inside(fitted: &Fitted<'_>) -> BTreeMap<usize, Estimate> {
    let mut of_racks: BTreeMap<usize, BTreeMap<HostId, Vec<f64>>> = BTreeMap::new();
    for (round, slot, obs, predicted) in fitted.flows() {
        let rack = fitted.rounds.rack_of[obs.src.index()].filter(|_| obs.racks.is_none());
        if let Some(rack) = rack.filter(|_| fitted.is_isolated(round, slot, &predicted)) {
            let of_hosts = of_racks.entry(rack).or_default();
            of_hosts.entry(obs.src).or_default().push(obs.bits_per_sec);
        }
    }
    let estimate = |(rack, of_hosts): (usize, BTreeMap<HostId, Vec<f64>>)| {
        let medians = of_hosts.values().filter_map(|rates| median(rates));
        Some((rack, median_estimate(&medians.collect::<Vec<_>>())?))
    };
    of_racks.into_iter().filter_map(estimate).collect()
}

/// Sum of what each rack sends to each other in the rounds in which the max was asked.
fn across(fitted: &Fitted<'_>) -> BTreeMap<(usize, usize), Estimate> {
    let mut of_pairs: BTreeMap<(usize, usize), Vec<(f64, f64)>> = BTreeMap::new();
    for (at, round) in fitted.rounds.rounds.iter().enumerate() {
        let mut sums: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
        for (slot, obs) in fitted.rounds.of(round).iter().enumerate() {
            if let Some(racks) = obs.racks {
                let (asked, sum) = sums.entry(racks).or_default();
                *asked += fitted.asked[at][slot].bits_per_sec;
                *sum += obs.bits_per_sec;
            }
        }
        for (racks, of_round) in sums {
            of_pairs.entry(racks).or_default().push(of_round);
        }
    }
    let of_pair =
        |(racks, sums): ((usize, usize), Vec<(f64, f64)>)| Some((racks, of_most_asked(sums)?));
    of_pairs.into_iter().filter_map(of_pair).collect()
}

/// Of the sums of a pair, asked and reached, those where the max was asked.
fn of_most_asked(mut sums: Vec<(f64, f64)>) -> Option<Estimate> {
    sums.retain(|(asked, _)| *asked > 0.0);
    let max = sums.iter().map(|(asked, _)| *asked).fold(0.0, f64::max);
    sums.retain(|(asked, _)| *asked > (1.0 - NEGLIGIBLE) * max);
    let sums: Vec<f64> = sums.into_iter().map(|(_, sum)| sum).collect();
    median_estimate(&sums)
}

/// Sums of each ordered pair by senders a rack, of the stages that grow them.
fn ramps(observations: &Observations<'_>, fitted: &Fitted<'_>) -> Ramps {
    let mut ramps: Ramps = BTreeMap::new();
    for round in &fitted.rounds.rounds {
        let view = &observations.stages[round.stage].rounds[round.at];
        let Some(senders) = view.senders_per_rack else {
            continue;
        };
        let mut sums: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for obs in fitted.rounds.of(round) {
            if let Some(racks) = obs.racks {
                *sums.entry(racks).or_default() += obs.bits_per_sec;
            }
        }
        for (racks, sum) in sums {
            ramps
                .entry(racks)
                .or_default()
                .entry(senders)
                .or_default()
                .push(sum);
        }
    }
    ramps
}

fn points(sums: &BTreeMap<u32, Vec<f64>>) -> Vec<(u32, f64)> {
    sums.iter()
        .filter_map(|(senders, sums)| Some((*senders, median(sums)?)))
        .collect()
}
