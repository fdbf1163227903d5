//! How racks are tied: by nothing that limits, by pipes, or by hidden parallel paths; and racks
//! that differ from the others.

use super::hypothesis::{Direction, Effect, Fabric, Hypothesis, Location, Part};
use super::members::{self, Posterior};
use super::noise::{ISOLATED_SIGMA, MAX_DEFICIT, SPLIT_SIGMA, log_kernel};
use super::rounds::Rounds;
use super::search::{COARSE, FINEST, Search, fabric_value, part_value};
use super::sums::{ABOVE, OWN_QUANTILES, SUM_QUANTILES, sums};
use super::{hosts, loss, pairs, pods};
use ew_evidence::criteria::{EQUAL, MIN_EFFECT, NEGLIGIBLE, SIGNIFICANT};
use ew_stats::quantile;
use std::collections::BTreeMap;

/// Hosts that one part of their rack may replace.
const MIN_REPLACED: usize = 2;
/// How unevenly TCP may split.
const SPLITS: [f64; 4] = [0.15, 0.25, 0.45, 0.7];

/// The simplest ways to tie racks, each at its best.
pub(super) fn fabrics(search: &mut Search<'_>, hosts: &Hypothesis) -> Vec<Hypothesis> {
    let mut fabrics = vec![hosts.clone()];
    if !search.rounds.has_crossing() {
        return fabrics;
    }
    let of_racks = sums_out(search.rounds);
    let sizes: Vec<f64> = (0..search.rounds.racks)
        .map(|rack| hosts.hosts_bits_per_sec(search.rounds, rack))
        .collect();
    let (min, max) = (
        sizes.iter().copied().fold(f64::INFINITY, f64::min),
        sizes.iter().copied().fold(0.0, f64::max),
    );
    let asked = max_asked(search, hosts);
    let tried = |values: Vec<f64>| -> Vec<f64> {
        let quantiles = SUM_QUANTILES.iter();
        let quantiles = quantiles.filter_map(|share| quantile(&values, *share));
        quantiles.map(|value| ABOVE * value).collect()
    };
    let is_limit = |sum: &f64| *sum < (1.0 - MIN_EFFECT) * asked;
    let mut equal = tried(of_racks.values().flatten().copied().collect());
    equal.retain(is_limit);
    let mut kinds = Vec::new();
    if min < (1.0 - NEGLIGIBLE) * max {
        let of_rack = |(rack, sums): (&usize, &Vec<f64>)| -> Vec<f64> {
            sums.iter().map(|sum| sum / sizes[*rack]).collect()
        };
        let mut shares = tried(of_racks.iter().flat_map(of_rack).collect());
        // As the smallest rack shows it, which fills its uplinks whomever it faces.
        shares.extend(equal.iter().map(|sum| sum / min));
        shares.retain(|share| *share < 1.0 - MIN_EFFECT);
        let ratio = |share: f64| Fabric::Proportional(1.0 / share);
        kinds.push(shares.into_iter().map(ratio).collect());
    }
    kinds.push(equal.into_iter().map(Fabric::Equal).collect::<Vec<_>>());
    let mut pipe: Option<(f64, Hypothesis)> = None;
    for kind in kinds {
        let tied = kind.into_iter().map(|fabric| Hypothesis {
            fabric,
            ..hosts.clone()
        });
        let scored: Vec<(f64, Hypothesis)> = tied.map(|one| (search.score(&one), one)).collect();
        let best = scored.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, mut best)) = best {
            search.climb(&mut best, fabric_value, &COARSE);
            fit_split(search, &mut best);
            search.climb(&mut best, fabric_value, &FINEST);
            let worth = search.worth(&best);
            // Uplinks in proportion, which are first, claim less about the greater racks: they stay
            // where equal ones explain as much.
            if pipe.as_ref().is_none_or(|(known, _)| worth > known + EQUAL) {
                pipe = Some((worth, best));
            }
        }
    }
    fabrics.extend(pipe.map(|(_, pipe)| pipe));
    fabrics
}

fn fit_split(search: &mut Search<'_>, hypothesis: &mut Hypothesis) {
    let mut best = (f64::NEG_INFINITY, hypothesis.split_sigma);
    for split in SPLITS {
        hypothesis.split_sigma = split;
        let score = search.score(hypothesis);
        if score > best.0 {
            best = (score, split);
        }
    }
    hypothesis.split_sigma = best.1;
}

/// Sums of what leaves each rack, by rack.
fn sums_out(rounds: &Rounds) -> BTreeMap<usize, Vec<f64>> {
    sums(rounds, |(from, _)| Some(from))
}

/// The max that was asked of a rack's uplink, by hosts alone.
fn max_asked(search: &mut Search<'_>, hosts: &Hypothesis) -> f64 {
    let unlimited = Hypothesis {
        fabric: Fabric::Unlimited,
        ..hosts.clone()
    };
    let capacities = unlimited.capacities(search.rounds);
    let mut max: f64 = 0.0;
    for round in &search.rounds.rounds {
        let mut of_round: BTreeMap<usize, f64> = BTreeMap::new();
        let predicted = search.scorer().predict(&capacities, round).to_vec();
        for (obs, predicted) in search.rounds.of(round).iter().zip(predicted) {
            if let Some((from, _)) = obs.racks {
                *of_round.entry(from).or_default() += predicted.bits_per_sec;
            }
        }
        max = of_round.into_values().fold(max, f64::max);
    }
    max
}

/// Racks whose uplinks differ from the others', or lose packets, and pods that limit.
pub(super) fn add(search: &mut Search<'_>, mut hypothesis: Hypothesis) -> Hypothesis {
    if search.rounds.racks < 2 || !search.rounds.has_crossing() {
        return hypothesis;
    }
    for _ in 0..2 * (search.rounds.racks + search.rounds.paths.pods()) {
        let now = search.worth(&hypothesis);
        let mut best: Option<(f64, Hypothesis)> = None;
        for base in bases(&hypothesis) {
            for part in candidates(search.rounds, &base) {
                let other = base.with(part);
                let worth = search.worth(&other);
                if worth > best.as_ref().map_or(now, |best| best.0) {
                    best = Some((worth, other));
                }
            }
        }
        let Some((_, mut better)) = best else { break };
        let last = better.parts.len() - 1;
        search.climb(&mut better, |h| part_value(h, last), &COARSE);
        hypothesis = better;
    }
    hypothesis
}

/// Hosts of one rack that all seem slow may be its uplinks, where most of their flows cross: tries
/// these instead of them, and then again which hosts are slow.
pub(super) fn instead_of_hosts(search: &mut Search<'_>, mut hypothesis: Hypothesis) -> Hypothesis {
    for rack in 0..search.rounds.racks {
        let own: Vec<usize> = search.rounds.hosts_in(rack).collect();
        let is_of_host = |part: &Part| match part.location {
            Location::Host(host, _) => own.contains(&host.index()),
            _ => false,
        };
        let mut base = hypothesis.clone();
        base.parts.retain(|part| !is_of_host(part));
        if hypothesis.parts.len() < base.parts.len() + MIN_REPLACED {
            continue;
        }
        let is_of_rack =
            |part: &Part| matches!(part.location, Location::Rack(other, _) if other == rack);
        let parts = candidates(search.rounds, &base).into_iter();
        let others = parts.filter(is_of_rack).map(|part| base.with(part));
        let scored: Vec<(f64, Hypothesis)> =
            others.map(|other| (search.worth(&other), other)).collect();
        let best = scored.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let now = search.worth(&hypothesis);
        if let Some((_, mut better)) = best.filter(|(worth, _)| *worth > now) {
            let last = better.parts.len() - 1;
            search.climb(&mut better, |h| part_value(h, last), &COARSE);
            hypothesis = hosts::add(search, better, |_| true);
        }
    }
    hypothesis
}

/// What a rack that differs is added to: a hypothesis, and the same without the racks' common
/// limit, which may be what one rack's explains worse.
fn bases(hypothesis: &Hypothesis) -> Vec<Hypothesis> {
    let mut bases = vec![hypothesis.clone()];
    let is_pipe = matches!(
        hypothesis.fabric,
        Fabric::Equal(_) | Fabric::Proportional(_)
    );
    let is_of_rack = |part: &Part| matches!(part.location, Location::Rack(..));
    if is_pipe && !hypothesis.parts.iter().any(is_of_rack) {
        bases.push(Hypothesis {
            fabric: Fabric::Unlimited,
            split_sigma: SPLIT_SIGMA,
            ..hypothesis.clone()
        });
    }
    bases
}

fn candidates(rounds: &Rounds, hypothesis: &Hypothesis) -> Vec<Part> {
    let capacities = hypothesis.capacities(rounds);
    let (out, into) = (sums_out(rounds), sums(rounds, |(_, to)| Some(to)));
    let mut parts = Vec::new();
    for rack in 0..rounds.racks {
        for direction in [Direction::Tx, Direction::Rx, Direction::Both] {
            let location = Location::Rack(rack, direction);
            if overlaps(hypothesis, rack, direction) {
                continue;
            }
            let known = if direction == Direction::Rx {
                &into
            } else {
                &out
            };
            let Some(sums) = known.get(&rack) else {
                continue;
            };
            let members = |first: usize| -> f64 {
                capacities.bits_per_sec[first..first + capacities.paths]
                    .iter()
                    .sum()
            };
            let now = match direction {
                Direction::Tx => members(capacities.up(rack, 0)),
                Direction::Rx => members(capacities.down(rack, 0)),
                Direction::Both => {
                    members(capacities.up(rack, 0)).min(members(capacities.down(rack, 0)))
                }
            };
            let values = OWN_QUANTILES
                .iter()
                .filter_map(|share| Some(ABOVE * quantile(sums, *share)?));
            // Under a common limit a rack may also have more than the others.
            let differs = |value: &f64| (value / now).ln().abs() > MIN_EFFECT;
            parts.extend(values.filter(differs).map(|value| Part {
                location,
                effect: Effect::Capacity(value),
            }));
            parts.extend(
                loss::of_rack(rounds, hypothesis, rack, direction).map(|left| Part {
                    location,
                    effect: Effect::Loss(left),
                }),
            );
        }
    }
    parts.extend(pods::candidates(rounds, hypothesis));
    parts
}

fn overlaps(hypothesis: &Hypothesis, rack: usize, direction: Direction) -> bool {
    let is_same = |part: &Part| match part.location {
        Location::Rack(other, known) if other == rack => {
            known.has_tx() && direction.has_tx() || known.has_rx() && direction.has_rx()
        }
        _ => false,
    };
    hypothesis.parts.iter().any(is_same)
}

/// What was found out about parallel paths.
pub(super) struct Hidden {
    pub(super) posterior: Posterior,
    /// `None` where one pipe explains as much.
    pub(super) hypothesis: Option<Hypothesis>,
}

/// Parallel paths are asked for when flows across fit worse than the noise allows, and before any
/// pipe is reported: collisions of hashes look like one.
pub(super) fn hidden(
    search: &mut Search<'_>,
    hosts: &Hypothesis,
    best: &Hypothesis,
) -> Option<Hidden> {
    let is_limited = best.fabric != Fabric::Unlimited
        || best
            .parts
            .iter()
            .any(|part| matches!(part.location, Location::Rack(..)));
    if !search.rounds.has_crossing() || !(is_limited || fits_badly(search, best)) {
        return None;
    }
    let posterior = members::posterior(search.rounds, hosts)?;
    // Where capacity was asked with many connections, their sums show what the fabric carries.
    if posterior.one_path() > SIGNIFICANT || search.rounds.asks_capacity {
        return Some(Hidden {
            posterior,
            hypothesis: None,
        });
    }
    let mut other = hosts.clone();
    other
        .parts
        .retain(|part| matches!(part.location, Location::Host(..)));
    other.fabric = Fabric::Paths {
        paths: posterior.paths,
        each_bits_per_sec: posterior.each_bits_per_sec,
    };
    other.split_sigma = posterior.split_sigma;
    if let Some((rack, value)) = posterior.bad_member() {
        let location = Location::Member(rack, Direction::Both);
        other.parts.push(Part {
            location,
            effect: Effect::Capacity(value),
        });
    }
    let other = super::hosts::add(search, other, |_| true);
    let other = pairs::add(search, other);
    // Racks that differ from one another are another explanation of sums that differ: the whole
    // score decides.
    let is_better = search.worth(&other) > search.worth(best);
    Some(Hidden {
        posterior,
        hypothesis: is_better.then_some(other),
    })
}

fn fits_badly(search: &mut Search<'_>, hypothesis: &Hypothesis) -> bool {
    let rounds = search.rounds;
    let capacities = hypothesis.capacities(rounds);
    let (mut deficit, mut flows) = (0.0, 0.0);
    for round in &rounds.rounds {
        let predicted = search.scorer().predict(&capacities, round).to_vec();
        for (obs, predicted) in rounds
            .of(round)
            .iter()
            .zip(predicted)
            .filter(|(obs, _)| obs.racks.is_some())
        {
            let sigma = if predicted.users > 1.5 {
                hypothesis.split_sigma
            } else {
                ISOLATED_SIGMA
            };
            let z = obs.ln_rate - predicted.bits_per_sec.max(1.0).ln();
            // At the kernel's own quartiles it loses about half a nat against its peak.
            let typical = log_kernel(0.0, sigma, obs.doubt) - 0.5;
            deficit += typical - log_kernel(z, sigma, obs.doubt);
            flows += 1.0;
        }
    }
    flows > 0.0 && deficit / flows > MAX_DEFICIT
}

/// Every rack, every direction.
pub(super) fn rivals(
    rounds: &Rounds,
    location: impl Fn(usize, Direction) -> Location,
) -> Vec<Location> {
    let racks = 0..rounds.racks;
    racks
        .flat_map(|rack| {
            [Direction::Tx, Direction::Rx, Direction::Both]
                .map(|direction| location(rack, direction))
        })
        .collect()
}
