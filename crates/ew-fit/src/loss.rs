//! Random loss, distinguished from the loss that a full queue makes: only flows that share nothing
//! with anybody count, and none whose way is full. Retransmissions of concurrent flows accuse
//! nobody.

use super::hypothesis::{Direction, Effect, Hypothesis, Location};
use super::loss_index::{NO_LOSS, SPREAD};
use super::noise::OVERDISPERSION;
use super::obs::Obs;
use super::rounds::{Round, Rounds};
use ew_evidence::criteria::{
    ALIKE, EQUAL, FULL, LEAST_FILL, LOSSY, MANY, MIN_SEEN, NEGLIGIBLE, TIMES_TYPICAL,
};
use ew_model::HostId;
use ew_stats::median;
use std::collections::BTreeSet;

/// Evidence of retransmissions for loss in a direction, nats. `None` where they are no outlier.
pub(super) fn of_side(
    rounds: &Rounds,
    hypothesis: &Hypothesis,
    (host, direction): (HostId, Direction),
    is_meant: impl Fn(&Obs) -> bool,
) -> Option<f64> {
    if direction == Direction::Both {
        return None;
    }
    let mut flows = flows_of(rounds, Location::Host(host, direction), hypothesis);
    flows.retain(|obs| is_meant(obs));
    gain(rounds, &flows).filter(|_| is_random(rounds, hypothesis, &flows))
}

/// Whether all that a host's side shows may be random loss.
pub(super) fn is_random_on(
    rounds: &Rounds,
    hypothesis: &Hypothesis,
    (host, direction): (HostId, Direction),
) -> bool {
    let flows = flows_of(rounds, Location::Host(host, direction), hypothesis);
    is_random(rounds, hypothesis, &flows)
}

fn is_random(rounds: &Rounds, hypothesis: &Hypothesis, flows: &[&Obs]) -> bool {
    is_scattered(&reached(hypothesis, flows)) || lose_unhindered(rounds, hypothesis, flows)
}

/// The share of their rate that is left to flows through a rack's uplink, before it is fitted.
/// `None` where nothing speaks for loss.
pub(super) fn of_rack(
    rounds: &Rounds,
    hypothesis: &Hypothesis,
    rack: usize,
    direction: Direction,
) -> Option<f64> {
    let flows = flows_of(rounds, Location::Rack(rack, direction), hypothesis);
    let is_random = lose_unhindered(rounds, hypothesis, &flows)
        || is_scattered(&reached(hypothesis, &flows)) && !are_steady(hypothesis, &flows);
    if !is_random {
        return None;
    }
    gain(rounds, &flows)?;
    median(&reached(hypothesis, &flows)).map(|left| left.min(1.0))
}

/// Evidence of the retransmissions for all lossy parts together. A flow that crosses two of them
/// retransmits once.
pub(super) fn gain_of_parts(rounds: &Rounds, hypothesis: &Hypothesis) -> f64 {
    let lossy = hypothesis
        .parts
        .iter()
        .filter(|part| matches!(part.effect, Effect::Loss(_)));
    let mut counted: BTreeSet<*const Obs> = BTreeSet::new();
    lossy
        .map(|part| {
            let mut flows = flows_of(rounds, part.location, hypothesis);
            flows.retain(|obs| counted.insert(*obs));
            raw_gain(rounds, &flows).unwrap_or(0.0)
        })
        .sum()
}

/// Shares of their segments that isolated flows through a rack's uplink retransmit.
pub(super) fn shares_of(
    rounds: &Rounds,
    hypothesis: &Hypothesis,
    rack: usize,
    direction: Direction,
) -> Vec<f64> {
    shares(&flows_of(
        rounds,
        Location::Rack(rack, direction),
        hypothesis,
    ))
}

/// The same where they are far more than typical although the uplink has room: in other rounds it
/// carried far more, so that no queue was full. None where they are not.
pub(super) fn beside_room(
    rounds: &Rounds,
    hypothesis: &Hypothesis,
    rack: usize,
    direction: Direction,
) -> Vec<f64> {
    let flows = isolated_on(rounds, Location::Rack(rack, direction), hypothesis);
    if gain(rounds, &flows).is_none_or(|gain| gain < EQUAL) {
        return Vec::new();
    }
    let is_meant = |(from, to): (usize, usize)| {
        direction.has_tx() && from == rack || direction.has_rx() && to == rack
    };
    let asked: BTreeSet<*const Obs> = flows.iter().map(|obs| std::ptr::from_ref(*obs)).collect();
    let of_round = |round: &Round| {
        let own = rounds.of(round).iter();
        let own: Vec<&Obs> = own.filter(|obs| obs.racks.is_some_and(is_meant)).collect();
        let losing = own
            .iter()
            .filter(|obs| asked.contains(&std::ptr::from_ref(**obs)));
        let sum: f64 = own.iter().map(|obs| obs.bits_per_sec).sum();
        (sum, losing.count())
    };
    let sums: Vec<(f64, usize)> = rounds.rounds.iter().map(of_round).collect();
    let most = sums.iter().map(|(sum, _)| *sum).fold(0.0, f64::max);
    let with_room = sums.iter().filter(|(sum, _)| *sum < LEAST_FILL * most);
    let with_room: usize = with_room.map(|(_, losing)| losing).sum();
    match with_room as f64 > (1.0 - MANY) * flows.len() as f64 {
        true => shares(&flows),
        false => Vec::new(),
    }
}

fn shares(flows: &[&Obs]) -> Vec<f64> {
    let shares = flows.iter().filter_map(|obs| obs.retransmitted_share);
    shares.collect()
}

fn lose_unhindered(rounds: &Rounds, hypothesis: &Hypothesis, flows: &[&Obs]) -> bool {
    let flows = flows.iter().filter_map(|obs| {
        let link = hypothesis.class_rate(obs.src.index());
        Some((obs.bits_per_sec / link, obs.retransmitted_share?))
    });
    are_unhindered(flows, rounds.loss.typical_share, rounds.scatter)
}

/// Whether nearly all flows that fill their sender's link with what they retransmit, retransmit far
/// more than typical: no queue behind that is full, so that none drops their segments. That they
/// lack what they repeat must explain their rates surely better than that they lack nothing, as
/// these scatter: retransmissions that cost nothing prove nothing. Of each flow the share of the
/// link that it reaches, and that of its segments that it retransmits.
pub fn are_unhindered(
    flows: impl Iterator<Item = (f64, f64)>,
    typical_share: f64,
    sigma: f64,
) -> bool {
    let fills = |(reached, share): &(f64, f64)| reached * (1.0 + share) >= 1.0 - NEGLIGIBLE;
    let filling: Vec<(f64, f64)> = flows.filter(fills).collect();
    let outlying = outlying_share(typical_share);
    let losing = filling
        .iter()
        .filter(|(_, share)| *share > outlying)
        .count();
    let gain = |(reached, share): &(f64, f64)| {
        let (lacked, repeated) = (reached.ln(), share.ln_1p());
        (lacked.powi(2) - (lacked + repeated).powi(2)) / (2.0 * sigma.powi(2))
    };
    filling.len() >= MIN_SEEN
        && losing as f64 >= (1.0 - MANY) * filling.len() as f64
        && filling.iter().map(gain).sum::<f64>() > EQUAL * OVERDISPERSION
}

/// Whether most of the flows that are slow are steady: what cannot be exceeded is full. Random loss
/// makes TCP swing.
fn are_steady(hypothesis: &Hypothesis, flows: &[&Obs]) -> bool {
    let is_slow = |obs: &&&Obs| obs.bits_per_sec < FULL * asked(hypothesis, obs);
    let slow: Vec<&&Obs> = flows.iter().filter(is_slow).collect();
    let steady = slow.iter().filter(|obs| obs.is_steady).count();
    2 * steady > slow.len()
}

/// Flows that retransmit more than this are outliers.
pub(super) fn outlying_share(typical_share: f64) -> f64 {
    LOSSY.max(TIMES_TYPICAL * typical_share)
}

fn asked(hypothesis: &Hypothesis, obs: &Obs) -> f64 {
    let of = |host: HostId| hypothesis.class_rate(host.index());
    of(obs.src).min(of(obs.dst))
}

/// The isolated flows through a location that fill nothing on their way: neither an uplink nor the
/// switch port of a receiver that is slower than the sender.
fn flows_of<'r>(rounds: &'r Rounds, location: Location, hypothesis: &Hypothesis) -> Vec<&'r Obs> {
    let capacities = hypothesis.capacities(rounds);
    let fills_uplink = |obs: &&Obs| {
        let Some((from, to)) = obs.racks else {
            return false;
        };
        let path = capacities.bits_per_sec[capacities.up(from, 0)]
            .min(capacities.bits_per_sec[capacities.down(to, 0)]);
        asked(hypothesis, obs) > FULL * path
    };
    let mut flows = isolated_on(rounds, location, hypothesis);
    flows.retain(|obs| !fills_uplink(obs));
    flows
}

/// The same, whatever is assumed of uplinks.
fn isolated_on<'r>(
    rounds: &'r Rounds,
    location: Location,
    hypothesis: &Hypothesis,
) -> Vec<&'r Obs> {
    let rate = |host: HostId| hypothesis.class_rate(host.index());
    let fills_port = |obs: &Obs| rate(obs.dst) < FULL * rate(obs.src);
    let isolated = rounds.loss.isolated.iter().map(|at| &rounds.obs[*at]);
    isolated
        .filter(|obs| location.carries(obs) && !fills_port(obs) && !may_share_link(rounds, obs))
        .collect()
}

/// Whether hashes may put several connections of a flow on one of a host's links, which is full
/// then while the others are not.
fn may_share_link(rounds: &Rounds, obs: &Obs) -> bool {
    let has_several = |host: HostId| rounds.members[host.index()] > 1;
    obs.streams > 1.5 && (has_several(obs.src) || has_several(obs.dst))
}

/// `None` unless enough flows, with enough partners, retransmit far more than typical.
fn gain(rounds: &Rounds, flows: &[&Obs]) -> Option<f64> {
    let shares = shares(flows);
    let partners = |end: fn(&Obs) -> HostId| {
        flows
            .iter()
            .map(|obs| end(obs))
            .collect::<BTreeSet<_>>()
            .len()
    };
    let met = partners(|obs| obs.src).max(partners(|obs| obs.dst));
    let stands_out = median(&shares)? > outlying_share(rounds.loss.typical_share);
    let is_known = shares.len() >= MIN_SEEN && met > 1;
    if stands_out && is_known {
        raw_gain(rounds, flows)
    } else {
        None
    }
}

/// Of what each flow's hosts can do.
fn reached(hypothesis: &Hypothesis, flows: &[&Obs]) -> Vec<f64> {
    let share = |obs: &&Obs| obs.bits_per_sec / asked(hypothesis, obs);
    flows.iter().map(share).collect()
}

/// What is full, or shaped, gives its flows one rate that they cannot exceed, and drops the rest;
/// random loss gives each another.
pub fn is_scattered(rates: &[f64]) -> bool {
    let at = |share: f64| ew_stats::quantile(rates, share);
    at(0.75)
        .zip(at(0.25))
        .is_some_and(|(high, low)| high > ALIKE * low)
}

/// The flows' shares against those of all isolated flows, both log-normal.
fn raw_gain(rounds: &Rounds, flows: &[&Obs]) -> Option<f64> {
    let index = &rounds.loss;
    let shares = flows.iter().filter_map(|obs| obs.retransmitted_share);
    let logs: Vec<f64> = shares.map(|share| (share + NO_LOSS).ln()).collect();
    let own = median(&logs)?;
    let log_normal =
        |log: f64, middle: f64, spread: f64| -0.5 * ((log - middle) / spread).powi(2) - spread.ln();
    let of_flow =
        |log: &f64| log_normal(*log, own, SPREAD) - log_normal(*log, index.usual_log, index.spread);
    Some(
        logs.iter()
            .map(of_flow)
            .sum::<f64>()
            .clamp(-EQUAL * logs.len() as f64, EQUAL * logs.len() as f64),
    )
}
