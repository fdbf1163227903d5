//! Which hosts' links and which paths between racks lose packets, from what TCP had to send again.
//!
//! A full link loses packets too: that is how TCP finds its rate. So lost packets accuse a link only where nothing is full: a
//! side's flows do not all run at one rate that they cannot exceed, flows across do not share a sum, and a path that carries
//! less than its hosts could send is narrow first.

use crate::Network;
use crate::capacity::Side;
use crate::observations::{Observations, RoundView};
use crate::solo::rack_pair;
use crate::stats::{median, quantile};
use ew_model::record::FlowRecord;
use ew_model::{HostId, Inventory, RackId};
use std::collections::{BTreeMap, BTreeSet};

/// Share of segments sent again from which on a link is lossy ...
const LOSSY: f64 = 0.005;
/// ... and this many times what is usual between the run's pairs.
const TIMES_USUAL: f64 = 4.0;
/// A side needs this many partners before its losses are told from theirs.
const LEAST_PARTNERS: usize = 2;
/// What is full has its better intervals within this factor of the middle ones: it cannot be exceeded. Random losses make TCP
/// swing by far more.
const PINNED: f64 = 1.3;
/// Flows of a side that reach this share of its better ones have nothing but the side in their way.
const FAST: f64 = 0.8;
/// A side whose better intervals reach this share of what is typical is not narrow.
const REACHES: f64 = 0.9;
/// A path with at least this ratio of what its hosts could send to what it carries is full before it is lossy.
const NARROW: f64 = 1.25;
/// Alone on a lossy path, flows lose at least this part of what makes it lossy, in the median: one that starts too fast loses a few.
const ALONE: f64 = 0.5;
/// Flows that keep this share of their rate when twice as many run are not limited by what they share.
const KEPT: f64 = 0.75;

/// Ordered pairs with their share of lost segments.
type PairLoss = BTreeMap<(HostId, HostId), f64>;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Share of segments sent again between usual pairs.
    pub(crate) usual: f64,
    /// Sides of hosts that lose, with the median share over partners.
    pub(crate) sides: BTreeMap<Side, f64>,
    /// Ordered racks whose path loses, with the median share over pairs.
    pub(crate) racks: BTreeMap<(RackId, RackId), f64>,
    /// The same of paths that are narrow, and lose what does not fit.
    pub(crate) narrow: BTreeMap<(RackId, RackId), f64>,
}

impl Losses {
    pub(crate) fn new(observations: &Observations<'_>, network: &Network) -> Self {
        let inventory = observations.inventory();
        let pairs = pair_losses(observations);
        let all: Vec<f64> = pairs.values().copied().collect();
        // With half of all pairs lossy, as between two racks, the median is no measure of what is usual.
        let usual = quantile(&all, 0.25).unwrap_or(0.0);
        let least = LOSSY.max(TIMES_USUAL * usual);
        let (narrow, racks): (BTreeMap<_, _>, _) = lossy_racks(observations, &pairs, least)
            .into_iter()
            .partition(|(path, _)| {
                is_narrow(network, *path) && loses_alone(observations, *path, least) != Some(true)
            });
        let across = |src, dst| rack_pair(inventory, src, dst);
        // What is lost on a lossy or a narrow path says nothing of the links at its ends.
        let is_explained = |src, dst| {
            across(src, dst)
                .is_some_and(|path| racks.contains_key(&path) || is_narrow(network, path))
        };
        let own: PairLoss = pairs
            .into_iter()
            .filter(|((src, dst), _)| !is_explained(*src, *dst))
            .collect();
        let mut sides = lossy_sides(&own, least);
        let fit = &network.fit;
        let typical = fit.typical.map_or(f64::INFINITY, |typical| typical.value);
        let is_full = |side| fit.slow.contains_key(&side) && is_full(observations, side, typical);
        sides.retain(|side, _| !is_full(*side));
        Self {
            usual,
            sides,
            racks,
            narrow,
        }
    }

    /// Whether losses account for a slow pair.
    pub(crate) fn touch(&self, inventory: &Inventory, src: HostId, dst: HostId) -> bool {
        let ends = [Side::Tx(src), Side::Rx(dst)];
        ends.iter().any(|side| self.sides.contains_key(side))
            || rack_pair(inventory, src, dst).is_some_and(|pair| self.racks.contains_key(&pair))
    }
}

fn is_narrow(network: &Network, path: (RackId, RackId)) -> bool {
    if network.rack_pairs.full_into.contains(&path.1) {
        return true;
    }
    let pairs = network.rack_pairs.pairs.iter();
    let mut own = pairs.filter(|pair| (pair.analysis.from, pair.analysis.to) == path);
    own.any(|pair| {
        let ratio = pair.analysis.oversubscription;
        pair.analysis.limited == Some(true) && ratio.is_some_and(|ratio| ratio.value >= NARROW)
    })
}

/// Segments sent again over segments sent, per flow. `None` where the kernel did not tell.
pub(crate) fn loss_of(row: &FlowRecord) -> Option<f64> {
    let (lost, sent) = segments(row)?;
    Some(lost / sent)
}

/// Segments sent again, and all segments sent.
fn segments(row: &FlowRecord) -> Option<(f64, f64)> {
    let sender = row.sender.as_ref()?;
    let mss = sender.streams.iter().filter_map(|s| s.tcp_info);
    let mss = mss
        .map(|info| info.send_mss_bytes)
        .max()
        .filter(|mss| *mss > 0)?;
    let lost = row.retransmits()? as f64;
    let sent = sender.bytes as f64 / f64::from(mss) + lost;
    (sent > 0.0).then_some((lost, sent))
}

/// Of flows alone at both ends.
fn pair_losses(observations: &Observations<'_>) -> PairLoss {
    let mut sums: BTreeMap<(HostId, HostId), (f64, f64)> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        for (row, _) in round
            .records
            .iter()
            .zip(&round.solo)
            .filter(|(_, solo)| **solo)
        {
            if let Some((lost, sent)) = segments(row) {
                let sum = sums.entry((row.src, row.dst)).or_default();
                *sum = (sum.0 + lost, sum.1 + sent);
            }
        }
    }
    let share = |(pair, (lost, sent)): ((HostId, HostId), (f64, f64))| (pair, lost / sent);
    sums.into_iter().map(share).collect()
}

/// Sides whose flows lose to nearly every partner. Beside a side that explains a pair's losses, the pair says nothing of its
/// other end.
fn lossy_sides(pairs: &PairLoss, least: f64) -> BTreeMap<Side, f64> {
    let mut found: BTreeMap<Side, f64> = BTreeMap::new();
    loop {
        let mut sides: BTreeMap<Side, Vec<f64>> = BTreeMap::new();
        for ((src, dst), loss) in pairs {
            let (tx, rx) = (Side::Tx(*src), Side::Rx(*dst));
            if !found.contains_key(&tx) && !found.contains_key(&rx) {
                sides.entry(tx).or_default().push(*loss);
                sides.entry(rx).or_default().push(*loss);
            }
        }
        let lossy = sides.into_iter().filter_map(|(side, losses)| {
            let lower = quantile(&losses, 0.25)?;
            let is_lossy = losses.len() >= LEAST_PARTNERS && lower >= least;
            is_lossy.then_some((side, median(&losses)?))
        });
        let Some((worst, loss)) = lossy.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return found;
        };
        found.insert(worst, loss);
    }
}

/// Whether a side's flows run at one rate that they do not exceed: what they lose then is the surplus over a full link.
fn is_full(observations: &Observations<'_>, side: Side, typical: f64) -> bool {
    let rounds = observations.judged().flat_map(|stage| &stage.rounds);
    let lone = rounds.flat_map(|round| round.records.iter().zip(&round.solo));
    let own = lone.filter(|(row, solo)| {
        **solo
            && match side {
                Side::Tx(host) => row.src == host,
                Side::Rx(host) => row.dst == host,
            }
    });
    let ends = own.filter_map(|(row, _)| row.receiver.as_ref());
    let flows = ends.map(|end| end.interval_bits_per_sec().collect());
    let flows: Vec<Vec<f64>> = flows.collect();
    // Flows that something else on their way slows do not touch the side's ceiling.
    let middles: Vec<f64> = flows.iter().filter_map(|rates| median(rates)).collect();
    let fast = FAST * quantile(&middles, 0.9).unwrap_or(0.0);
    let is_fast = |rates: &&Vec<f64>| median(rates).is_some_and(|middle| middle >= fast);
    let rates: Vec<f64> = flows.iter().filter(is_fast).flatten().copied().collect();
    match quantile(&rates, 0.9) {
        Some(high) if high >= REACHES * typical => false,
        _ => is_pinned(&rates),
    }
}

/// Whether rates have a ceiling that many of them touch.
fn is_pinned(rates: &[f64]) -> bool {
    match (quantile(rates, 0.5), quantile(rates, 0.9)) {
        (Some(middle), Some(high)) => high <= PINNED * middle,
        _ => true,
    }
}

/// Ordered racks between which nearly every pair loses while neither rack's inside does, and whose flows do not share a sum.
fn lossy_racks(
    observations: &Observations<'_>,
    pairs: &PairLoss,
    least: f64,
) -> BTreeMap<(RackId, RackId), f64> {
    let inventory = observations.inventory();
    let mut across: BTreeMap<(RackId, RackId), Vec<f64>> = BTreeMap::new();
    let mut inside: BTreeMap<RackId, Vec<f64>> = BTreeMap::new();
    for ((src, dst), loss) in pairs {
        match (rack_pair(inventory, *src, *dst), inventory.rack_of(*src)) {
            (Some(racks), _) => across.entry(racks).or_default().push(*loss),
            (None, Some(rack)) => inside.entry(rack).or_default().push(*loss),
            (None, None) => {}
        }
    }
    let is_clean = |rack: RackId| {
        let middle = inside.get(&rack).and_then(|losses| median(losses));
        middle.is_some_and(|middle| middle < least)
    };
    let lossy = across.into_iter().filter_map(|((from, to), losses)| {
        let lower = quantile(&losses, 0.25)?;
        let loses = losses.len() >= LEAST_PARTNERS && lower >= least;
        let is_path = loses
            && is_clean(from)
            && is_clean(to)
            && loses_alone(observations, (from, to), least) != Some(false)
            && !shares_a_sum(observations, (from, to));
        is_path.then_some(((from, to), median(&losses)?))
    });
    lossy.collect()
}

/// Whether flows that have the way between two racks to themselves lose, too: a lossy path takes its share of any load, a full one
/// only of too much. `None` where no flow was alone.
fn loses_alone(
    observations: &Observations<'_>,
    racks: (RackId, RackId),
    least: f64,
) -> Option<bool> {
    let inventory = observations.inventory();
    let rounds = observations.judged().flat_map(|stage| &stage.rounds);
    let alone = rounds.filter(|round| crowd_of(inventory, round, racks) == 1);
    let rows = alone.flat_map(|round| round.records.iter());
    let on_path = rows.filter(|row| rack_pair(inventory, row.src, row.dst) == Some(racks));
    let losses: Vec<f64> = on_path.filter_map(|row| loss_of(row)).collect();
    Some(median(&losses)? >= ALONE * least)
}

/// Whether what flows between two racks carry together has a ceiling, which they share when more of them run.
fn shares_a_sum(observations: &Observations<'_>, racks: (RackId, RackId)) -> bool {
    let inventory = observations.inventory();
    let mut inside = Vec::new();
    let mut by_crowd: BTreeMap<usize, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        let crowd = by_crowd
            .entry(crowd_of(inventory, round, racks))
            .or_default();
        let on_path = |row: &FlowRecord| rack_pair(inventory, row.src, row.dst) == Some(racks);
        let rows = round.rates().filter(|(row, _)| on_path(row));
        crowd.0.extend(rows.map(|(_, rate)| rate));
        let is_inside = |row: &FlowRecord| rack_pair(inventory, row.src, row.dst).is_none();
        let rows = round.rates().filter(|(row, _)| is_inside(row));
        inside.extend(rows.map(|(_, rate)| rate));
        let rows = round.records.iter().copied().filter(|row| on_path(row));
        crowd.1.extend(sums_over_time(rows));
    }
    by_crowd.retain(|_, (rates, _)| !rates.is_empty());
    let (Some(few), Some(many)) = (by_crowd.first_key_value(), by_crowd.last_key_value()) else {
        return true;
    };
    // A path that is narrow for the fewest flows has their ceiling; flows that stall in company say nothing against it.
    let reached = REACHES * quantile(&inside, 0.75).unwrap_or(0.0);
    let is_narrow = quantile(&few.1.0, 0.9).is_some_and(|high| high < reached);
    if is_narrow && is_pinned(&few.1.0) {
        return true;
    }
    let keeps = match (median(&few.1.0), median(&many.1.0)) {
        (Some(alone), Some(together)) => *many.0 >= 2 * *few.0 && together >= KEPT * alone,
        _ => false,
    };
    !keeps && is_pinned(&many.1.1)
}

/// The receivers' bytes of each interval of a round, over its flows.
fn sums_over_time<'r>(rows: impl Iterator<Item = &'r FlowRecord>) -> Vec<f64> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    let ends = rows.filter_map(|row| row.receiver.as_ref());
    for interval in ends.flat_map(|end| &end.intervals) {
        let offset = interval.offset_ns / 50_000_000;
        *sums.entry(offset).or_default() += interval.bytes as f64;
    }
    sums.into_values().collect()
}

/// Flows that leave the sending rack or enter the receiving one.
fn crowd_of(inventory: &Inventory, round: &RoundView<'_>, (from, to): (RackId, RackId)) -> usize {
    let across = |row: &&&FlowRecord| {
        rack_pair(inventory, row.src, row.dst).is_some_and(|pair| pair.0 == from || pair.1 == to)
    };
    round.records.iter().filter(across).count()
}

/// Racks that are an end of every lossy path, when there are several paths.
pub(crate) fn common_rack(paths: &BTreeMap<(RackId, RackId), f64>) -> Option<RackId> {
    let mut common: Option<BTreeSet<RackId>> = None;
    for (from, to) in paths.keys() {
        let ends = BTreeSet::from([*from, *to]);
        common = Some(match common {
            Some(known) => known.intersection(&ends).copied().collect(),
            None => ends,
        });
    }
    let common = common?;
    (common.len() == 1).then(|| common.first().copied())?
}
