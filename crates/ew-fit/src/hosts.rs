//! Hosts that do less than their class: found from the flows they have to themselves, scored with
//! all.

use super::filling::PRIVATE;
use super::hypothesis::{Capacities, Direction, Effect, Hypothesis, Location, Part};
use super::noise::{OVERDISPERSION, SPLIT_SIGMA, swinging_density};
use super::obs::Obs;
use super::rounds::Rounds;
use super::score::isolated_kernel;
use super::search::Search;
use super::{loss, prices};
use ew_evidence::criteria::{ALIKE, MANY, MIN_EFFECT, SLOW};
use ew_model::HostId;
use ew_stats::median;
use std::collections::BTreeMap;

/// Passes of adding hosts. Many hosts are taken several at a time.
const MAX_PASSES: usize = 40;
/// Candidates whose full score is asked for, a pass.
const TRIALS: usize = 6;
/// Above this many hosts, all that gain at least half of the best and share no flow are taken in
/// one pass.
const MANY_HOSTS: usize = 64;
/// Capacities that are tried, as shares of what is assumed: from this to the smallest effect.
const LOWEST: f64 = 0.03;
const GRID: usize = 45;
/// Shares of the rate that loss may leave.
const LOSS_GRID: [f64; 10] = [0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.93, 0.98];
/// Partners that are asked whether it is they.
const RIVALS: usize = 3;

/// A flow that has its bottleneck to itself, with its prediction.
struct IsolatedFlow<'a> {
    obs: &'a Obs,
    predicted: f64,
    /// Its hosts let its connections have less than these could carry by themselves.
    is_by_host: bool,
}

impl IsolatedFlow<'_> {
    /// How little a low rate shows, 0 to 1, where such a share of cross-rack ones collide.
    fn doubt(&self, collide: f64) -> f64 {
        match self.obs.racks {
            Some(_) => self.obs.doubt.max(collide),
            None => self.obs.doubt,
        }
    }
}

struct Candidate {
    gain: f64,
    part: Part,
    host: HostId,
}

/// Worst first; then the rest is judged again, so a slow sender leaves no slow receivers behind.
/// Flows that are not meant show nothing.
pub(super) fn add(
    search: &mut Search<'_>,
    mut hypothesis: Hypothesis,
    is_meant: impl Fn(&Obs) -> bool,
) -> Hypothesis {
    let max = MANY * 2.0 * search.rounds.hosts as f64;
    for _ in 0..MAX_PASSES {
        let known = hypothesis
            .parts
            .iter()
            .filter(|part| matches!(part.location, Location::Host(..)))
            .count();
        if known as f64 > max {
            break;
        }
        let candidates = screen(search, &hypothesis, &is_meant);
        match best_of(search, &hypothesis, &candidates) {
            Some(better) => hypothesis = better,
            None => break,
        }
    }
    hypothesis
}

/// The sides that lose at random anew, where flows that were not meant before, as those that cross
/// racks, show that they do not: what a lossy partner scatters among a few steady flows looks like
/// loss, too.
pub(super) fn lossy_anew(search: &mut Search<'_>, mut hypothesis: Hypothesis) -> Hypothesis {
    for part in hypothesis.parts.clone() {
        let Part {
            location: Location::Host(host, direction),
            effect: Effect::Loss(_),
        } = part
        else {
            continue;
        };
        let mut without = hypothesis.clone();
        without
            .parts
            .retain(|other| other.location != part.location);
        if !loss::is_random_on(search.rounds, &without, (host, direction)) {
            hypothesis = add(search, without, |_| true);
        }
    }
    hypothesis
}

/// The hosts anew, without the flows that lose at random between racks, which shows nothing of
/// hosts.
pub(super) fn beside_lossy_racks(search: &mut Search<'_>, hypothesis: Hypothesis) -> Hypothesis {
    let lossy = hypothesis.parts.iter().filter_map(|part| match *part {
        Part {
            location: Location::Rack(rack, direction),
            effect: Effect::Loss(_),
        } => Some((rack, direction)),
        _ => None,
    });
    let lossy: Vec<(usize, Direction)> = lossy.collect();
    if lossy.is_empty() {
        return hypothesis;
    }
    let loses = |(from, to): (usize, usize)| {
        lossy.iter().any(|(rack, direction)| {
            direction.has_tx() && *rack == from || direction.has_rx() && *rack == to
        })
    };
    let mut without = hypothesis;
    without
        .parts
        .retain(|part| !matches!(part.location, Location::Host(..)));
    add(search, without, |obs| !obs.racks.is_some_and(loses))
}

/// The best candidate by the full score, if it is worth its price; among many hosts with all that
/// do not touch it.
fn best_of(
    search: &mut Search<'_>,
    hypothesis: &Hypothesis,
    candidates: &[Candidate],
) -> Option<Hypothesis> {
    let mut first: Vec<HostId> = Vec::new();
    for candidate in candidates {
        if first.len() < 2 && !first.contains(&candidate.host) {
            first.push(candidate.host);
        }
    }
    let now = search.worth(hypothesis);
    let mut best: Option<(f64, &Candidate, Hypothesis)> = None;
    for candidate in candidates
        .iter()
        .filter(|c| first.contains(&c.host))
        .take(TRIALS)
    {
        let other = candidate.taken_by(hypothesis);
        let worth = search.worth(&other);
        if worth > best.as_ref().map_or(now, |best| best.0) {
            best = Some((worth, candidate, other));
        }
    }
    let (_, taken, mut better) = best?;
    if search.rounds.hosts > MANY_HOSTS {
        take_apart(search.rounds, candidates, taken, &mut better);
    }
    let at = hypothesis.parts.len();
    search.climb(
        &mut better,
        |h| super::search::part_value(h, at),
        &super::search::FINE,
    );
    Some(better)
}

impl Candidate {
    /// A host that does what a lower class does is of that class: it was taken for a faster one for
    /// a figure or two, and nothing is wrong with it.
    fn taken_by(&self, hypothesis: &Hypothesis) -> Hypothesis {
        let Some(class) = self.lower_class(hypothesis) else {
            return hypothesis.with(self.part);
        };
        let mut other = hypothesis.clone();
        other.class_of[self.host.index()] = class;
        other
    }

    fn lower_class(&self, hypothesis: &Hypothesis) -> Option<usize> {
        let Part {
            location: Location::Host(_, Direction::Both),
            effect: Effect::Capacity(capacity),
        } = self.part
        else {
            return None;
        };
        let lower = &hypothesis.classes[..hypothesis.class_of[self.host.index()]];
        let is_alike = |class: &f64| (class / capacity).ln().abs() < ALIKE.ln();
        lower.iter().position(is_alike)
    }
}

/// Adds what gains at least half of the best and shares no flow with what is taken already.
fn take_apart(
    rounds: &Rounds,
    candidates: &[Candidate],
    first: &Candidate,
    hypothesis: &mut Hypothesis,
) {
    let mut near: Vec<bool> = vec![false; rounds.hosts];
    let mark = |near: &mut Vec<bool>, host: HostId| {
        near[host.index()] = true;
        for obs in rounds
            .obs
            .iter()
            .filter(|obs| obs.src == host || obs.dst == host)
        {
            near[obs.src.index()] = true;
            near[obs.dst.index()] = true;
        }
    };
    mark(&mut near, first.host);
    for candidate in candidates.iter().filter(|c| c.gain >= 0.5 * first.gain) {
        if !near[candidate.host.index()] {
            *hypothesis = candidate.taken_by(hypothesis);
            mark(&mut near, candidate.host);
        }
    }
}

/// Every side with the capacity, or the loss, that explains its isolated flows best; those that
/// gain more than they cost, best first.
fn screen(
    search: &mut Search<'_>,
    hypothesis: &Hypothesis,
    is_meant: impl Fn(&Obs) -> bool,
) -> Vec<Candidate> {
    let rounds = search.rounds;
    let capacities = hypothesis.capacities(rounds);
    let mut isolated = isolated_flows(search, &capacities);
    isolated.retain(|flow| is_meant(flow.obs));
    let crossing = rounds.may_collide().then(|| Crossing::of(&isolated));
    let mut of_sides: [BTreeMap<HostId, Vec<&IsolatedFlow<'_>>>; 2] = Default::default();
    for flow in &isolated {
        of_sides[0].entry(flow.obs.src).or_default().push(flow);
        of_sides[1].entry(flow.obs.dst).or_default().push(flow);
    }
    let none = Vec::new();
    let mut candidates = Vec::new();
    for host in (0..rounds.hosts as u32).map(HostId) {
        let tx = of_sides[0].get(&host).unwrap_or(&none);
        let rx = of_sides[1].get(&host).unwrap_or(&none);
        let own = hypothesis.classes[hypothesis.class_of[host.index()]];
        let collide = crossing.as_ref();
        let collide = collide.map_or(0.0, |crossing| crossing.low_share_without(host));
        for (direction, flows) in [
            (Direction::Tx, vec![tx]),
            (Direction::Rx, vec![rx]),
            (Direction::Both, vec![tx, rx]),
        ] {
            let flows: Vec<&IsolatedFlow<'_>> = flows.into_iter().flatten().copied().collect();
            if overlaps(hypothesis, host, direction) || flows.is_empty() {
                continue;
            }
            let slow = best_capacity(hypothesis, &flows, own, collide);
            let lossy = loss::of_side(rounds, hypothesis, (host, direction), &is_meant)
                .and_then(|gain| best_loss(hypothesis, &flows, gain, collide));
            for (gain, effect) in slow.into_iter().chain(lossy) {
                let part = Part {
                    location: Location::Host(host, direction),
                    effect,
                };
                let gain = gain / OVERDISPERSION;
                if gain > prices::of_part(rounds, &part) {
                    candidates.push(Candidate { gain, part, host });
                }
            }
        }
    }
    candidates.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    candidates
}

fn overlaps(hypothesis: &Hypothesis, host: HostId, direction: Direction) -> bool {
    let is_same = |part: &Part| match part.location {
        Location::Host(other, known) if other == host => {
            known.has_tx() && direction.has_tx() || known.has_rx() && direction.has_rx()
        }
        _ => false,
    };
    hypothesis.parts.iter().any(is_same)
}

/// Flows that share no end and no bottleneck; cross-rack ones only where no hidden path may slow
/// them.
fn isolated_flows<'a>(search: &mut Search<'a>, capacities: &Capacities) -> Vec<IsolatedFlow<'a>> {
    let rounds = search.rounds;
    let mut isolated = Vec::new();
    for round in &rounds.rounds {
        let predicted = search.scorer().mean_prediction(capacities, round);
        for (slot, obs) in rounds.of(round).iter().enumerate() {
            let is_isolated = round.alone[slot] && predicted[slot].users < 1.5;
            if is_isolated && (obs.racks.is_none() || capacities.paths == 1) {
                isolated.push(IsolatedFlow {
                    obs,
                    predicted: predicted[slot].bits_per_sec,
                    is_by_host: predicted[slot].bottleneck != PRIVATE,
                });
            }
        }
    }
    isolated
}

/// Cross-rack flows, and how many of them are low: of all, and of each host.
struct Crossing {
    all: (f64, f64),
    of_hosts: BTreeMap<HostId, (f64, f64)>,
}

impl Crossing {
    fn of(isolated: &[IsolatedFlow<'_>]) -> Self {
        let mut crossing = Self {
            all: (0.0, 0.0),
            of_hosts: BTreeMap::new(),
        };
        for flow in isolated.iter().filter(|flow| flow.obs.racks.is_some()) {
            let is_low = flow.obs.bits_per_sec < SLOW * flow.predicted;
            let add = |(flows, low): &mut (f64, f64)| {
                *flows += 1.0;
                *low += f64::from(u8::from(is_low));
            };
            add(&mut crossing.all);
            add(crossing.of_hosts.entry(flow.obs.src).or_default());
            add(crossing.of_hosts.entry(flow.obs.dst).or_default());
        }
        crossing
    }

    /// Share of those of others that are low: where connections may collide, a low rate of a
    /// cross-rack one shows the less of its host.
    fn low_share_without(&self, host: HostId) -> f64 {
        let (flows, low) = self.of_hosts.get(&host).copied().unwrap_or_default();
        (self.all.1 - low) / (self.all.0 - flows).max(1.0)
    }
}

/// The gain of the best capacity below `own`. `None` where the flows do what they should.
fn best_capacity(
    hypothesis: &Hypothesis,
    flows: &[&IsolatedFlow<'_>],
    own: f64,
    collide: f64,
) -> Option<(f64, Effect)> {
    // What connections do by themselves is no less where a host does less than several of them, and
    // what a slower partner lets pass shows nothing of this host.
    let gap_of = |meant: &dyn Fn(&IsolatedFlow<'_>) -> bool| -> Option<f64> {
        let flows = flows.iter().filter(|flow| meant(flow));
        let gap = |flow: &&IsolatedFlow<'_>| flow.obs.ln_rate - flow.predicted.ln();
        median(&flows.map(gap).collect::<Vec<_>>())
    };
    let shows_host = |flow: &IsolatedFlow<'_>| flow.predicted > (1.0 - MIN_EFFECT) * own;
    let gap = gap_of(&|flow| flow.is_by_host && shows_host(flow))
        .or_else(|| gap_of(&|flow| flow.is_by_host))
        .or_else(|| gap_of(&|_| true));
    if gap? > (1.0 - MIN_EFFECT / 2.0).ln() {
        return None;
    }
    let highest = (1.0 - MIN_EFFECT).ln();
    let step = (highest - LOWEST.ln()) / (GRID - 1) as f64;
    let values = (0..GRID).map(|at| own * (highest - step * at as f64).exp());
    let gain = |capacity: f64| -> f64 {
        let of_flow = |flow: &&IsolatedFlow<'_>| {
            let limited = flow.predicted.min(capacity);
            let doubt = flow.doubt(collide);
            isolated_kernel(hypothesis, flow.obs, limited, doubt)
                - isolated_kernel(hypothesis, flow.obs, flow.predicted, doubt)
        };
        flows.iter().map(of_flow).sum()
    };
    // The grid is wider than the noise: what the flows did in the middle is tried, too.
    let middle = median(
        &flows
            .iter()
            .map(|flow| flow.obs.bits_per_sec)
            .collect::<Vec<_>>(),
    );
    let values = values.chain(middle.filter(|middle| middle.ln() <= own.ln() + highest));
    let best = values
        .map(|value| (gain(value), value))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((best.0, Effect::Capacity(best.1)))
}

fn best_loss(
    hypothesis: &Hypothesis,
    flows: &[&IsolatedFlow<'_>],
    retransmissions: f64,
    collide: f64,
) -> Option<(f64, Effect)> {
    let gain = |left: f64| -> f64 {
        let of_flow = |flow: &&IsolatedFlow<'_>| {
            let z = flow.obs.ln_rate - (left * flow.predicted).ln();
            let doubt = flow.doubt(collide);
            let without = isolated_kernel(hypothesis, flow.obs, flow.predicted, doubt);
            let steady = hypothesis.isolated_sigma;
            swinging_density(z, steady, SPLIT_SIGMA, doubt).ln() - without
        };
        flows.iter().map(of_flow).sum()
    };
    let best = LOSS_GRID
        .iter()
        .map(|left| (gain(*left), *left))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((best.0 + retransmissions, Effect::Loss(best.1)))
}

/// Either side, both, and the partners that a host met most.
pub(super) fn rivals(rounds: &Rounds, host: HostId) -> Vec<Location> {
    let mut locations: Vec<Location> = [Direction::Tx, Direction::Rx, Direction::Both]
        .map(|direction| Location::Host(host, direction))
        .to_vec();
    let mut met: [BTreeMap<HostId, usize>; 2] = Default::default();
    for round in &rounds.rounds {
        for (obs, alone) in rounds.of(round).iter().zip(&round.alone) {
            if *alone && obs.src == host {
                *met[0].entry(obs.dst).or_default() += 1;
            } else if *alone && obs.dst == host {
                *met[1].entry(obs.src).or_default() += 1;
            }
        }
    }
    for (met, direction) in met.into_iter().zip([Direction::Rx, Direction::Tx]) {
        let mut partners: Vec<(HostId, usize)> = met.into_iter().collect();
        partners.sort_by_key(|(host, count)| (std::cmp::Reverse(*count), *host));
        locations.extend(
            partners
                .iter()
                .take(RIVALS)
                .map(|(host, _)| Location::Host(*host, direction)),
        );
    }
    locations
}

#[cfg(test)]
mod tests {
    use super::super::hypothesis::Fabric;
    use super::*;

    #[test]
    fn a_host_that_does_what_a_lower_class_does_is_of_that_class() {
        let hypothesis = Hypothesis {
            classes: vec![9.5e6, 38e6],
            class_of: vec![0, 1, 1],
            fabric: Fabric::Unlimited,
            parts: Vec::new(),
            split_sigma: SPLIT_SIGMA,
            isolated_sigma: 0.025,
        };
        let taken = |direction, bits_per_sec| {
            let host = HostId(2);
            let part = Part {
                location: Location::Host(host, direction),
                effect: Effect::Capacity(bits_per_sec),
            };
            let gain = 10.0;
            let candidate = Candidate { gain, part, host };
            let other = candidate.taken_by(&hypothesis);
            (other.class_of[2], other.parts.len())
        };
        assert_eq!(taken(Direction::Both, 9.6e6), (0, 0));
        assert_eq!(taken(Direction::Both, 20e6), (1, 1), "no class's speed");
        assert_eq!(taken(Direction::Tx, 9.6e6), (1, 1), "one direction");
    }
}
