//! What each rack's uplinks carry, and each pod's, each direction by itself, in bits per second,
//! with their own ratio.
//!
//! The value comes from the rounds in which the fit finds that direction full: the sum of its
//! flows. The ratio of a round is what the rack's hosts could have done over that sum, compared
//! with the intra-rack round nearest in time, so that a drift of the level cancels.

use super::fitted::Fitted;
use super::hashing::Links;
use super::hypothesis::{Capacities, Direction, Effect, Fabric, Location, Part};
use super::loss;
use super::members::Posterior;
use super::noise::{HALF_STARVED, LITTLE_STARVATION};
use super::obs::has_many_streams;
use super::paced;
use super::rounds::{Round, Rounds};
use ew_evidence::criteria::{
    ALIKE, FULL, LEAST_FILL, MIN_EFFECT, MIN_SEEN, NEGLIGIBLE, SLOW, SURE,
};
use ew_model::HostId;
use ew_model::analysis::{Estimate, UplinkAnalysis};
use ew_stats::{interpolated_median_estimate, median, median_estimate, quantile, scaled};

/// One direction of a rack's uplinks.
#[derive(Clone, Debug)]
pub struct RackDirection {
    /// What its hosts can do together.
    pub hosts_bits_per_sec: f64,
    /// The max that was carried in a round.
    pub carried_bits_per_sec: f64,
    /// What it carries. `None` where it does not limit its hosts as far as was seen.
    pub capacity: Option<Estimate>,
    /// Hosts over capacity; of one that does not limit, over what was carried.
    pub ratio: Option<Estimate>,
    /// How far it was tried.
    pub reach: Reach,
    /// Rounds that the value rests on.
    pub rounds: usize,
    /// Stage with most of them.
    pub stage: Option<usize>,
    /// Shares of their segments that isolated flows retransmit, where they are lost at random.
    pub lost_shares: Vec<f64>,
    /// Whether it, or one of its paths, loses so that what it carries shows no limit.
    pub loses: bool,
}

/// Whether an uplink was tried as far as its hosts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It was full before its hosts were.
    Limits,
    /// It carried what its hosts can do.
    NotLimiting,
    /// Nothing asked so much of it.
    NotTested,
}

/// What hashes do to rounds that the fit finds full, by direction: out of all racks, then into all.
struct Hashed {
    used: Vec<f64>,
    left: Vec<f64>,
}

/// Part of the capacity that the connections' hashes use where an uplink limits, out of all racks
/// and then into all. A full uplink of few connections is not full on each of its paths, so it
/// carries more than the fit makes of it: found by correcting the capacities until what hashes are
/// expected to leave of them is what the fit found.
fn used(fitted: &Fitted<'_>) -> Vec<f64> {
    let rounds = fitted.rounds;
    let mut used = vec![1.0; 2 * rounds.racks];
    if fitted.capacities.paths > 1 {
        return used;
    }
    let found = fitted.uplinks();
    let has_limit = |at: usize| found[at].is_finite();
    let of_host = |side: usize| fitted.capacities.bits_per_sec[side];
    for _ in 0..CORRECTIONS {
        let of_rack = |at: usize| found[at] / used[at];
        let connection = fitted.capacities.connection_bits_per_sec;
        let mut links = Links::new(rounds, of_host, of_rack, connection);
        let shares = of_full_rounds(fitted, found, |round| links.used(round));
        for at in (0..used.len()).filter(|at| has_limit(*at)) {
            used[at] = shares[at].unwrap_or(1.0);
        }
    }
    used
}

/// By direction, the median of a measure over the rounds in which the fit finds it full.
fn of_full_rounds(
    fitted: &Fitted<'_>,
    found: &[f64],
    mut measure: impl FnMut(&Round) -> Vec<f64>,
) -> Vec<Option<f64>> {
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); found.len()];
    for (at, round) in fitted.rounds.rounds.iter().enumerate() {
        let full: Vec<usize> = full(fitted, at, found).collect();
        if full.is_empty() {
            continue;
        }
        let measured = measure(round);
        full.into_iter().for_each(|at| all[at].push(measured[at]));
    }
    all.iter()
        .map(|of_direction| median(of_direction))
        .collect()
}

/// The directions of racks, out of all and then into all, that the fit finds full in a round of
/// many connections.
fn full<'f>(
    fitted: &'f Fitted<'_>,
    at: usize,
    found: &'f [f64],
) -> impl Iterator<Item = usize> + 'f {
    let mut loads = vec![0.0; found.len()];
    let flows = fitted.rounds.of(&fitted.rounds.rounds[at]).iter();
    for (obs, predicted) in flows.zip(&fitted.predicted[at]) {
        if let Some((from, to)) = obs.racks.filter(|_| obs.has_many_streams()) {
            loads[from] += predicted.bits_per_sec;
            loads[fitted.rounds.racks + to] += predicted.bits_per_sec;
        }
    }
    let loads = loads.into_iter().zip(found).enumerate();
    loads.filter_map(|(at, (load, capacity))| (load > (1.0 - NEGLIGIBLE) * capacity).then_some(at))
}

/// Corrections of capacities: each takes most of what is left.
const CORRECTIONS: usize = 3;

/// Part of what its flows ask that a rack's direction would carry if its paths were together as
/// wide as its hosts, and hashes left the most: out of all racks and then into all, of rounds in
/// which the fit finds it full. 1 where nobody knows how many paths there are, and where some are
/// known to be lost.
fn left_by_hashes(fitted: &Fitted<'_>) -> Vec<f64> {
    let rounds = fitted.rounds;
    let mut left = vec![1.0; 2 * rounds.racks];
    let Some(mut links) = fitted.hashed_links(|direction| fitted.hosts_of(direction)) else {
        return left;
    };
    let share = |(asked, carried): (f64, f64)| if asked > 0.0 { carried / asked } else { 1.0 };
    let shares = of_full_rounds(fitted, fitted.uplinks(), |round| {
        links.carried_evenly(round).into_iter().map(share).collect()
    });
    let is_short = |at: usize| rounds.paths.short.contains(&(at % rounds.racks));
    for at in (0..left.len()).filter(|at| !is_short(*at)) {
        left[at] = shares[at].unwrap_or(1.0);
    }
    left
}

/// Every rack, out and in.
pub(super) fn racks(fitted: &Fitted<'_>, paths: Option<&Posterior>) -> Vec<[RackDirection; 2]> {
    let levels = Levels::new(fitted);
    let hashed = Hashed {
        used: used(fitted),
        left: left_by_hashes(fitted),
    };
    let both = |rack: usize| {
        [0, 1].map(|index| direction(fitted, (&levels, &hashed), paths, (rack, index)))
    };
    (0..fitted.rounds.racks).map(both).collect()
}

fn direction(
    fitted: &Fitted<'_>,
    (levels, hashed): (&Levels, &Hashed),
    paths: Option<&Posterior>,
    (rack, index): (usize, usize),
) -> RackDirection {
    let tier = Tier::Rack(rack);
    let sums = sums(fitted, &tier, index);
    let of_collisions = match fitted.rounds.may_collide() {
        true => left_by_collisions(paths, &sums),
        false => Some(1.0),
    };
    let sums = of_many_connections(sums);
    let hosts = tier.hosts_bits_per_sec(fitted);
    let carried = sums.iter().map(|sum| sum.bits_per_sec).fold(0.0, f64::max);
    // By what the fit finds of its capacity, and not by what was measured: that would pick the low
    // ones.
    let at = index * fitted.rounds.racks + rack;
    let (used, left) = (hashed.used[at], hashed.left[at]);
    let full = full_rounds(&sums);
    let carries = |sum: &&Sum| sum.bits_per_sec / used;
    let values: Vec<f64> = full.iter().map(carries).collect();
    let of_round = |sum: &&Sum| hosts * levels.near(sum.time_ns) / carries(sum);
    let ratios: Vec<f64> = full.iter().map(of_round).collect();
    let mut found = RackDirection {
        hosts_bits_per_sec: hosts,
        carried_bits_per_sec: carried,
        capacity: median_estimate(&values),
        ratio: interpolated_median_estimate(&ratios).map(|ratio| widened(ratio, NEGLIGIBLE)),
        reach: Reach::Limits,
        rounds: full.len(),
        stage: most_common(full.iter().map(|sum| sum.stage)),
        lost_shares: lost_shares(fitted, rack, index),
        loses: false,
    };
    let mut low = surely_above(&ratios);
    if let (
        Fabric::Paths {
            paths: count,
            each_bits_per_sec,
        },
        Some(paths),
    ) = (fitted.hypothesis.fabric, paths)
    {
        found.take_paths(fitted, paths, (count, each_bits_per_sec), (rack, index));
        low = found.ratio.and_then(|ratio| ratio.low).or(low);
    }
    let has_others = fitted.rounds.hosts_in(rack).nth(1).is_some();
    let is_by_one_host = has_others && are_of_one_host(&full);
    let is_sure = match paths {
        Some(paths) if fitted.capacities.paths > 1 => paths.is_count_sure(),
        _ => full.len() >= MIN_SEEN && of_collisions.is_some() && !is_by_one_host,
    };
    let left = left.min(of_collisions.unwrap_or(1.0));
    let is_limit = is_sure && is_beyond_hashes(low, left);
    // What loss leaves of many connections looks like what a full uplink carries.
    if found.lost_shares.is_empty() {
        let known = (is_one_path(fitted, paths), is_limit);
        found.lost_shares = lost_beside_room(fitted, &found, known, (rack, index));
    }
    found.loses = !found.lost_shares.is_empty() || tier.may_be_left_by_loss(fitted, index);
    let is_exceeded = (found.capacity).is_some_and(|one| tier.exceeds(fitted, index, one.value));
    if !is_limit || is_exceeded || found.loses {
        found.leave_open(fitted, &sums, levels, (rack, index));
    }
    found
}

/// By traces, or where there are none, by rates.
fn is_one_path(fitted: &Fitted<'_>, paths: Option<&Posterior>) -> bool {
    match fitted.rounds.paths.most {
        Some(traced) => traced == 1,
        None => paths.is_some_and(|paths| paths.one_path() > SURE),
    }
}

/// Rounds in which the fit finds the links full, and that asked for more.
fn full_rounds(sums: &[Sum]) -> Vec<&Sum> {
    let asks_more = |sum: &&Sum| sum.is_full && sum.asked * (1.0 - MIN_EFFECT) > sum.capacity;
    let asked: Vec<&Sum> = sums.iter().filter(asks_more).collect();
    with_most_cpu(&asked)
}

/// What the ratio is above. Whole order statistics assume nothing of the rounds: who is accused is
/// sure to be meant. Without an interval every round must agree.
fn surely_above(ratios: &[f64]) -> Option<f64> {
    let surely = median_estimate(ratios).map(|ratio| widened(ratio, NEGLIGIBLE));
    let low = surely.and_then(|ratio| ratio.low);
    low.or_else(|| ratios.iter().copied().reduce(f64::min))
}

/// What single connections, of which nobody knows over how many paths they are hashed, may leave of
/// what their hosts can do: as many as there are paths leave one of e (balls into bins). `None`
/// where they may leave anything. What is full carries the same in nearly every round and never
/// more, while hashed connections leave another part each time. Few of them seldom meet: then one
/// alone must carry as much as several together, or their rates be those of one path.
fn left_by_collisions(paths: Option<&Posterior>, sums: &[Sum]) -> Option<f64> {
    let full = || sums.iter().filter(|sum| sum.is_full);
    let carried = |is_meant: fn(&&Sum) -> bool| -> Vec<f64> {
        full()
            .filter(is_meant)
            .map(|sum| sum.bits_per_sec)
            .collect()
    };
    let together = carried(|sum| sum.connections > 1.5);
    let alone = carried(|sum| sum.connections < 1.5);
    let middle = median(&together).filter(|_| together.len() >= MIN_SEEN)?;
    let at = |share: f64| quantile(&together, share).unwrap_or_default();
    let most = sums.iter().map(|sum| sum.bits_per_sec).fold(0.0, f64::max);
    if SLOW * most > middle || at(1.0 - FULL) < LEAST_FILL * middle {
        return None;
    }
    let is_one = paths.is_some_and(|paths| paths.one_path() > SURE);
    let as_much_alone = median(&alone).is_some_and(|alone| ALIKE * alone > middle);
    if is_one || as_much_alone {
        return Some(1.0);
    }
    let are_many = full().all(|sum| has_many_streams(sum.connections));
    let are_steady = at(0.25) > (1.0 - MIN_EFFECT) * at(0.75);
    (are_many && are_steady).then_some(LEAST_FILL)
}

/// Whether one and the same host was the tier's end of all flows, so that it may be its own link
/// that was full.
fn are_of_one_host(full: &[&Sum]) -> bool {
    let first = full.first().and_then(|sum| sum.host);
    first.is_some() && full.iter().all(|sum| sum.host == first)
}

/// Whether links limit: what hashes alone may leave of what is asked shows no limit.
fn is_beyond_hashes(ratio: Option<f64>, left: f64) -> bool {
    ratio.is_some_and(|ratio| left * ratio * (1.0 + NEGLIGIBLE) > 1.0 / (1.0 - MIN_EFFECT))
}

/// Links that hosts share to the rest.
pub(super) enum Tier {
    /// Of a rack.
    Rack(usize),
    /// Of a pod, with its racks.
    Pod(usize, Vec<usize>),
}

impl Tier {
    /// Whether a flow passes them on its way out, for index 0, or in.
    fn has(&self, rounds: &Rounds, racks: (usize, usize), index: usize) -> bool {
        let is_end = |(from, to): (usize, usize), own| [from, to][index] == own;
        match self {
            Self::Rack(rack) => is_end(racks, *rack),
            Self::Pod(pod, _) => {
                let pods = rounds.paths.pods_between(racks);
                pods.is_some_and(|pods| is_end(pods, *pod))
            }
        }
    }

    /// Whether more than a limit was carried where all paths are loaded in part.
    pub(super) fn exceeds(&self, fitted: &Fitted<'_>, index: usize, limit: f64) -> bool {
        let rounds = fitted.rounds;
        let is_own = |racks| self.has(rounds, racks, index);
        rounds.paced.exceeds(limit, is_own)
    }

    /// Whether what it carries may be what loss leaves of it.
    pub(super) fn may_be_left_by_loss(&self, fitted: &Fitted<'_>, index: usize) -> bool {
        let rounds = fitted.rounds;
        let is_own = |racks| self.has(rounds, racks, index);
        let outlying = loss::outlying_share(rounds.loss.typical_share());
        rounds.paced.may_be_left_by_loss(outlying, is_own)
    }

    fn capacity(&self, capacities: &Capacities, index: usize) -> f64 {
        let resources = match self {
            Self::Rack(rack) => {
                let first = [capacities.up(*rack, 0), capacities.down(*rack, 0)][index];
                first..first + capacities.paths
            }
            Self::Pod(pod, _) => {
                let at = [capacities.pod_up(*pod), capacities.pod_down(*pod)][index];
                at..at + 1
            }
        };
        capacities.bits_per_sec[resources].iter().sum()
    }

    /// What the hosts can do together.
    fn hosts_bits_per_sec(&self, fitted: &Fitted<'_>) -> f64 {
        let of_rack = |rack: &usize| fitted.hypothesis.hosts_bits_per_sec(fitted.rounds, *rack);
        match self {
            Self::Rack(rack) => of_rack(rack),
            Self::Pod(_, racks) => racks.iter().map(of_rack).sum(),
        }
    }
}

/// Links that carry less than their hosts can do.
#[derive(Clone, Debug)]
pub struct Limiting {
    pub hosts_bits_per_sec: f64,
    pub capacity: Estimate,
    /// Hosts over capacity.
    pub ratio: Estimate,
    /// Rounds that the value rests on.
    pub rounds: usize,
    /// Stage with most of them.
    pub stage: Option<usize>,
}

/// One direction of a tier's links, if it limits; `left` is what hashes may leave of so many
/// connections.
pub(super) fn limiting(
    fitted: &Fitted<'_>,
    tier: &Tier,
    index: usize,
    left: impl Fn(f64) -> f64,
) -> Option<Limiting> {
    let levels = Levels::new(fitted);
    let sums = of_many_connections(sums(fitted, tier, index));
    let hosts = tier.hosts_bits_per_sec(fitted);
    let full = full_rounds(&sums);
    let values: Vec<f64> = full.iter().map(|sum| sum.bits_per_sec).collect();
    let of_round = |sum: &&Sum| hosts * levels.near(sum.time_ns) / sum.bits_per_sec;
    let ratios: Vec<f64> = full.iter().map(of_round).collect();
    let left: Vec<f64> = full.iter().map(|sum| left(sum.connections)).collect();
    // Of few racks few rounds load a pod's links; both directions of one part count then.
    let other = of_many_connections(self::sums(fitted, tier, 1 - index));
    let is_sure = full.len() + full_rounds(&other).len() >= MIN_SEEN;
    (is_sure && is_beyond_hashes(surely_above(&ratios), median(&left)?)).then_some(())?;
    Some(Limiting {
        hosts_bits_per_sec: hosts,
        capacity: median_estimate(&values)?,
        ratio: widened(interpolated_median_estimate(&ratios)?, NEGLIGIBLE),
        rounds: full.len(),
        stage: most_common(full.iter().map(|sum| sum.stage)),
    })
}

impl RackDirection {
    /// Hosts that were limited to a share of their line rate asked for as much less: what was found
    /// is compared with all of it, and what did not limit them then may do so without the limit.
    pub(super) fn hold_against_line_rate(&mut self, share: f64) {
        self.hosts_bits_per_sec /= share;
        self.ratio = self.ratio.map(|ratio| scaled(&ratio, 1.0 / share));
        if self.reach == Reach::NotLimiting {
            self.reach = Reach::NotTested;
            self.ratio = None;
        }
    }

    /// Of what links let pass, protocols and machines leave a little less than was assumed.
    pub(super) fn widen_by_links(&mut self) {
        self.ratio = self.ratio.map(|ratio| widened(ratio, 2.0 * NEGLIGIBLE));
    }

    /// Nobody knows what its hosts could ask for, as where they are throttled.
    pub(super) fn forget(&mut self) {
        self.reach = Reach::NotTested;
        self.ratio = None;
        self.capacity = None;
    }

    pub(super) fn analysis(&self) -> UplinkAnalysis {
        UplinkAnalysis {
            hosts_bits_per_sec: self.hosts_bits_per_sec,
            carried_bits_per_sec: self.carried_bits_per_sec,
            capacity_bits_per_sec: self.capacity,
            oversubscription: self.ratio,
            limited: match self.reach {
                Reach::Limits => Some(true),
                Reach::NotLimiting => Some(false),
                Reach::NotTested => None,
            },
        }
    }

    /// Parallel paths were found: their total is known from all rounds together.
    fn take_paths(
        &mut self,
        fitted: &Fitted<'_>,
        found: &Posterior,
        (count, each): (usize, f64),
        (rack, index): (usize, usize),
    ) {
        let bad =
            fitted
                .hypothesis
                .parts
                .iter()
                .find_map(|part| match (part.location, part.effect) {
                    (Location::Member(other, direction), Effect::Capacity(value))
                        if other == rack && is_meant(direction, index) =>
                    {
                        Some(value)
                    }
                    _ => None,
                });
        let whole = count as f64 * each;
        let total = bad.map_or(whole, |bad| whole - each + bad);
        let (low, high) = found.total_interval;
        // The interval is of the racks that the posterior saw worst; a rack without the bad path
        // has the rest of it.
        let scale = if bad.is_some() || found.bad.is_none() {
            1.0
        } else {
            whole / (whole - each).max(1.0)
        };
        let capacity = Estimate {
            value: total,
            low: Some(low.min(total)),
            high: Some((high * scale).max(total)),
            samples: self.rounds as u32,
        };
        self.ratio = Some(Estimate {
            value: self.hosts_bits_per_sec / total,
            low: capacity.high.map(|high| self.hosts_bits_per_sec / high),
            high: capacity.low.map(|low| self.hosts_bits_per_sec / low),
            samples: self.rounds as u32,
        });
        self.capacity = Some(capacity);
    }

    /// It does not limit: what is known is what it carried.
    fn leave_open(
        &mut self,
        fitted: &Fitted<'_>,
        sums: &[Sum],
        levels: &Levels,
        (rack, index): (usize, usize),
    ) {
        self.capacity = None;
        // A slow host of the rack asks for less; the others may still have asked for all they can.
        let of_host = |host: usize| {
            let side = host + index * fitted.rounds.hosts;
            fitted.capacities.bits_per_sec[side] * fitted.rounds.open[side]
        };
        let able: f64 = fitted.rounds.hosts_in(rack).map(of_host).sum();
        let max = sums.iter().map(|sum| sum.asked).fold(0.0, f64::max);
        let fullest: Vec<&Sum> = sums.iter().filter(|sum| sum.asked > 0.99 * max).collect();
        let fullest = usable(fullest);
        let ratios: Vec<f64> = fullest
            .iter()
            .map(|sum| sum.asked * levels.near(sum.time_ns) / sum.bits_per_sec)
            .collect();
        // A lone host may be as slow as its uplinks make it seem.
        let able = match fitted.rounds.hosts_in(rack).nth(1) {
            None => able.max(fitted.fastest_class_bits_per_sec()),
            Some(_) => able,
        };
        // Whatever starved it: a high figure proves capacity.
        let reached = self.carried_bits_per_sec / able.max(1.0);
        self.reach = if reached > FULL {
            Reach::NotLimiting
        } else {
            Reach::NotTested
        };
        self.ratio = median_estimate(&ratios)
            .map(|ratio| widened(ratio, 2.0 * NEGLIGIBLE))
            .filter(|_| self.reach == Reach::NotLimiting);
        self.rounds = fullest.len();
        self.stage = most_common(fullest.iter().map(|sum| sum.stage));
    }
}

/// What flows through a rack's uplinks retransmit although these have room: none where nothing
/// shows it. Single flows show it of one path only: of several one may be full.
fn lost_beside_room(
    fitted: &Fitted<'_>,
    found: &RackDirection,
    (is_one_path, is_limit): (bool, bool),
    (rack, index): (usize, usize),
) -> Vec<f64> {
    let rounds = fitted.rounds;
    let way = [Direction::Tx, Direction::Rx][index];
    let isolated = match is_one_path && is_limit {
        true => loss::beside_room(rounds, fitted.hypothesis, rack, way),
        false => Vec::new(),
    };
    let limit = found.capacity.filter(|_| is_limit);
    let uplinks = paced::Uplinks {
        rack,
        index,
        is_one_path,
        most_bits_per_sec: found.carried_bits_per_sec,
        limit_bits_per_sec: limit.map(|limit| limit.value),
    };
    let outlying = loss::outlying_share(rounds.loss.typical_share());
    let shares = match isolated.as_slice() {
        [] => rounds.paced.lost_beside_room(&uplinks, outlying).to_vec(),
        _ => isolated,
    };
    match shares.is_empty() || rounds.paced.is_lost_on_all_ways(rack, index) {
        true => shares,
        false => Vec::new(),
    }
}

fn lost_shares(fitted: &Fitted<'_>, rack: usize, index: usize) -> Vec<f64> {
    let is_lossy = |part: &Part| match (part.location, part.effect) {
        (Location::Rack(other, direction), Effect::Loss(_)) => {
            other == rack && is_meant(direction, index)
        }
        _ => false,
    };
    let way = [Direction::Tx, Direction::Rx][index];
    match fitted.hypothesis.parts.iter().any(is_lossy) {
        true => loss::shares_of(fitted.rounds, fitted.hypothesis, rack, way),
        false => Vec::new(),
    }
}

/// Whether a direction of a location is meant, by index: 0 is out, 1 is in.
fn is_meant(direction: Direction, index: usize) -> bool {
    if index == 0 {
        direction.has_tx()
    } else {
        direction.has_rx()
    }
}

/// What left, or entered, a tier in one round.
struct Sum {
    stage: usize,
    time_ns: Option<i64>,
    bits_per_sec: f64,
    /// What its flows could have done by their hosts alone.
    asked: f64,
    starvation: f64,
    connections: f64,
    /// The tier's own end of its flows, if it is one host.
    host: Option<HostId>,
    /// Of the uplinks, as fitted.
    capacity: f64,
    /// The fit finds the direction full.
    is_full: bool,
}

fn sums(fitted: &Fitted<'_>, tier: &Tier, index: usize) -> Vec<Sum> {
    let rounds = fitted.rounds;
    let capacity = tier.capacity(&fitted.capacities, index);
    let mut all = Vec::new();
    for (at, round) in rounds.rounds.iter().enumerate() {
        let mut sum = Sum {
            stage: round.stage,
            time_ns: round.time_ns,
            bits_per_sec: 0.0,
            asked: 0.0,
            starvation: 0.0,
            connections: 0.0,
            host: None,
            capacity,
            is_full: false,
        };
        let (mut flows, mut load) = (0.0, 0.0);
        for (slot, obs) in rounds.of(round).iter().enumerate() {
            if !obs
                .racks
                .is_some_and(|racks| tier.has(rounds, racks, index))
            {
                continue;
            }
            load += fitted.predicted[at][slot].bits_per_sec;
            sum.asked += fitted.asked[at][slot].bits_per_sec;
            sum.bits_per_sec += obs.bits_per_sec;
            sum.starvation += obs.starvation;
            sum.connections += obs.streams;
            let host = [obs.src, obs.dst][index];
            sum.host = Some(host).filter(|host| flows == 0.0 || sum.host == Some(*host));
            flows += 1.0;
        }
        if flows > 0.0 {
            sum.starvation /= flows;
            sum.is_full = load > (1.0 - NEGLIGIBLE) * capacity;
            all.push(sum);
        }
    }
    all
}

/// Capacity is asked with many connections: few collide on hashed paths, and leave a part of it.
fn of_many_connections(mut sums: Vec<Sum>) -> Vec<Sum> {
    let max = sums.iter().map(|sum| sum.connections).fold(0.0, f64::max);
    sums.retain(|sum| sum.connections >= 0.5 * max);
    sums
}

/// All rounds if they carried the same: a full uplink does, whatever starves its hosts, while
/// missing CPU takes another part in every round. Else those whose ends had CPU; where too few had,
/// those that had it for half of the time.
fn with_most_cpu<'s>(sums: &[&'s Sum]) -> Vec<&'s Sum> {
    let below = |max: f64| {
        sums.iter()
            .filter(|sum| sum.starvation < max)
            .copied()
            .collect::<Vec<_>>()
    };
    let good = below(LITTLE_STARVATION);
    let rates: Vec<f64> = sums.iter().map(|sum| sum.bits_per_sec).collect();
    let at = |share: f64| quantile(&rates, share);
    let is_steady = at(0.9)
        .zip(at(0.1))
        .is_some_and(|(high, low)| high < ALIKE * low);
    if is_steady {
        sums.to_vec()
    } else if good.len() >= MIN_SEEN {
        good
    } else {
        below(HALF_STARVED)
    }
}

/// Those with CPU at their ends; all where too few had it.
fn usable(sums: Vec<&Sum>) -> Vec<&Sum> {
    let with_cpu: Vec<&Sum> = sums
        .iter()
        .filter(|sum| sum.starvation < LITTLE_STARVATION)
        .copied()
        .collect();
    if 2 * with_cpu.len() >= sums.len() {
        with_cpu
    } else {
        sums
    }
}

/// How the hosts did over time, against what the fit finds of them.
struct Levels {
    /// Time on the controller's clock, median of measured over predicted of the round's isolated
    /// intra-rack flows.
    rounds: Vec<(i64, f64)>,
    middle: f64,
}

impl Levels {
    fn new(fitted: &Fitted<'_>) -> Self {
        let mut rounds = Vec::new();
        let mut all = Vec::new();
        for (at, round) in fitted.rounds.rounds.iter().enumerate() {
            let flows = fitted
                .rounds
                .of(round)
                .iter()
                .zip(&fitted.predicted[at])
                .enumerate();
            let isolated = flows.filter(|(slot, (obs, predicted))| {
                obs.racks.is_none()
                    && obs.starvation < LITTLE_STARVATION
                    && fitted.is_isolated(at, *slot, predicted)
            });
            let ratios: Vec<f64> = isolated
                .map(|(_, (obs, predicted))| obs.bits_per_sec / predicted.bits_per_sec)
                .collect();
            if let Some(level) = median(&ratios) {
                all.push(level);
                rounds.extend(round.time_ns.map(|time_ns| (time_ns, level)));
            }
        }
        rounds.sort_by_key(|(time_ns, _)| *time_ns);
        Self {
            rounds,
            middle: median(&all).unwrap_or(1.0),
        }
    }

    /// The level of the intra-rack round nearest in time; the middle of all where times are not
    /// known.
    fn near(&self, time_ns: Option<i64>) -> f64 {
        let nearest = time_ns.and_then(|time_ns| {
            self.rounds
                .iter()
                .min_by_key(|(other, _)| other.abs_diff(time_ns))
        });
        nearest.map_or(self.middle, |(_, level)| *level)
    }
}

fn widened(estimate: Estimate, systematic: f64) -> Estimate {
    Estimate {
        low: estimate.low.map(|low| low / (1.0 + systematic)),
        high: estimate.high.map(|high| high * (1.0 + systematic)),
        ..estimate
    }
}

fn most_common(stages: impl Iterator<Item = usize>) -> Option<usize> {
    ew_evidence::basis::most_common(stages)
}
