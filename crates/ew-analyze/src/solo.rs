//! Lone flows: the only evidence against a host. A flow that shares a NIC direction or a filled uplink with others
//! gets what TCP's fairness leaves it, which says nothing of its ends.

use crate::observations::{Observations, RoundView};
use crate::paths::Paths;
use crate::stats::quantile;
use ew_model::record::{EndRecord, FlowRecord};
use ew_model::{HostId, Inventory, RackId};
use std::collections::BTreeMap;

/// Beyond this share of an end's CPU time it is as likely the hypervisor that was slow as the pair.
const MUCH_STOLEN: f64 = 0.1;
/// The same for the share of the window in which an end's threads were ready and got no CPU.
const MUCH_WAITED: f64 = 0.5;
/// What a flow did in most of its window: the upper quartile of its intervals.
const MOST: f64 = 0.75;

/// One measured flow that was alone at its sender and at its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solo {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    /// Index of the stage.
    pub(crate) stage: usize,
    /// Index of the round among the stage's rounds that have rows.
    pub(crate) round: usize,
    /// Number of such flows in that round, this one included.
    pub(crate) company: usize,
    pub(crate) bits_per_sec: f64,
    /// What it did in most of its window: an interruption, such as a retransmission timeout, takes nothing from it.
    pub(crate) upper_bits_per_sec: f64,
    /// Whether an end had too little CPU time for this rate to tell of the pair.
    pub(crate) lacked_cpu: bool,
    /// What the path between the racks leaves this flow. `None` when no path limits it.
    pub(crate) path_bits_per_sec: Option<f64>,
}

/// Lone flows that no path between racks slowed: those inside racks (or without racks), and, where the paths are
/// known, those across racks whose share of the path is at least `needed_bits_per_sec`.
pub(crate) fn host_limited(
    observations: &Observations<'_>,
    paths: Option<&Paths>,
    needed_bits_per_sec: f64,
) -> Vec<Solo> {
    let inventory = observations.inventory();
    let stages = observations.stages.iter().enumerate();
    let mut solos = Vec::new();
    for (stage, view) in stages.filter(|(_, stage)| stage.judged) {
        for (at, round) in view.rounds.iter().enumerate() {
            let crowd = paths.map(|paths| Crowd::new(inventory, round, paths));
            let lone = lone_flows(inventory, round, crowd.as_ref(), needed_bits_per_sec);
            solos.extend(lone.iter().map(|(row, rate, path)| Solo {
                src: row.src,
                dst: row.dst,
                stage,
                round: at,
                company: lone.len(),
                bits_per_sec: *rate,
                upper_bits_per_sec: upper_rate(row.receiver.as_ref(), *rate),
                lacked_cpu: lacked_cpu(row),
                path_bits_per_sec: *path,
            }));
        }
    }
    solos
}

/// A round's lone flows, each with its rate and with what a path leaves it where one limits.
fn lone_flows<'a>(
    inventory: &Inventory,
    round: &RoundView<'a>,
    crowd: Option<&Crowd<'_>>,
    needed_bits_per_sec: f64,
) -> Vec<(&'a FlowRecord, f64, Option<f64>)> {
    let flows = round.rates().zip(&round.solo).filter(|(_, solo)| **solo);
    flows
        .filter_map(|((row, rate), _)| {
            let share = if inventory.crosses_racks(row.src, row.dst) {
                crowd.map_or(Share::Unknown, |c| c.share(inventory, row.src, row.dst))
            } else {
                Share::Unlimited
            };
            match share {
                Share::Unlimited => Some((row, rate, None)),
                Share::Limited(path) if path >= needed_bits_per_sec => {
                    Some((row, rate, Some(path)))
                }
                Share::Limited(_) | Share::Unknown => None,
            }
        })
        .collect()
}

/// Of the receiver's intervals, or the mean where that is more.
fn upper_rate(receiver: Option<&EndRecord>, mean: f64) -> f64 {
    let rates = receiver
        .into_iter()
        .flat_map(EndRecord::interval_bits_per_sec);
    let upper = quantile(&rates.collect::<Vec<_>>(), MOST);
    upper.map_or(mean, |upper| upper.max(mean))
}

/// Whether an end of a flow had too little CPU time for its rate to tell of anything else.
fn lacked_cpu(row: &FlowRecord) -> bool {
    let stolen = |end: &EndRecord| {
        let cpu = end.cpu.as_ref()?;
        Some(cpu.steal_ns as f64 / (f64::from(cpu.cpus) * end.window_ns as f64))
    };
    let ends = [&row.sender, &row.receiver].into_iter().flatten();
    waited_for_cpu(row) || ends.filter_map(stolen).any(|share| share > MUCH_STOLEN)
}

/// Whether the threads of an end waited for a CPU for much of the window.
pub(crate) fn waited_for_cpu(row: &FlowRecord) -> bool {
    let waited = |end: &EndRecord| {
        let waited_ns = end.cpu.as_ref()?.engine_wait_ns?;
        Some(waited_ns as f64 / end.window_ns as f64)
    };
    let ends = [&row.sender, &row.receiver].into_iter().flatten();
    ends.filter_map(waited).any(|share| share > MUCH_WAITED)
}

/// What the paths leave a flow across racks.
#[derive(Clone, Copy, Debug)]
enum Share {
    Unknown,
    Unlimited,
    Limited(f64),
}

/// How many flows of a round use each path.
struct Crowd<'a> {
    paths: &'a Paths,
    pairs: BTreeMap<(RackId, RackId), u32>,
    out: BTreeMap<RackId, u32>,
    into: BTreeMap<RackId, u32>,
}

impl<'a> Crowd<'a> {
    fn new(inventory: &Inventory, round: &RoundView<'_>, paths: &'a Paths) -> Self {
        let mut crowd = Self {
            paths,
            pairs: BTreeMap::new(),
            out: BTreeMap::new(),
            into: BTreeMap::new(),
        };
        for row in &round.records {
            if let Some((from, to)) = rack_pair(inventory, row.src, row.dst) {
                *crowd.pairs.entry((from, to)).or_default() += 1;
                *crowd.out.entry(from).or_default() += 1;
                *crowd.into.entry(to).or_default() += 1;
            }
        }
        crowd
    }

    fn share(&self, inventory: &Inventory, src: HostId, dst: HostId) -> Share {
        let Some((from, to)) = rack_pair(inventory, src, dst) else {
            return Share::Unlimited;
        };
        let tested = self.paths.known.get(&(from, to)).copied().unwrap_or(0);
        if self.out.get(&from).is_none_or(|flows| *flows > tested) {
            return Share::Unknown;
        }
        let shares = [
            part(
                self.paths.pair.get(&(from, to)),
                self.pairs.get(&(from, to)),
            ),
            part(self.paths.up.get(&from), self.out.get(&from)),
            part(self.paths.down.get(&to), self.into.get(&to)),
        ];
        shares
            .into_iter()
            .flatten()
            .min_by(f64::total_cmp)
            .map_or(Share::Unlimited, Share::Limited)
    }
}

fn part(capacity: Option<&f64>, flows: Option<&u32>) -> Option<f64> {
    Some(capacity? / f64::from(*flows?))
}

/// The ordered racks of a flow that crosses racks.
pub(crate) fn rack_pair(
    inventory: &Inventory,
    src: HostId,
    dst: HostId,
) -> Option<(RackId, RackId)> {
    let (from, to) = (inventory.rack_of(src)?, inventory.rack_of(dst)?);
    (from != to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::record::Interval;

    fn end(intervals: &[u64]) -> EndRecord {
        let interval = |bytes: &u64| Interval {
            offset_ns: 0,
            length_ns: 100_000_000,
            bytes: *bytes,
        };
        EndRecord {
            intervals: intervals.iter().map(interval).collect(),
            ..EndRecord::default()
        }
    }

    #[test]
    fn an_interruption_takes_nothing_from_what_a_flow_did_most_of_the_time() {
        let interrupted = end(&[1_000_000, 1_000_000, 0, 0]);
        assert!((upper_rate(Some(&interrupted), 40e6) - 80e6).abs() < 1.0);
        let slow = end(&[500_000, 500_000, 500_000, 500_000]);
        assert!((upper_rate(Some(&slow), 40e6) - 40e6).abs() < 1.0);
    }

    #[test]
    fn without_intervals_the_mean_stands() {
        assert!((upper_rate(None, 40e6) - 40e6).abs() < 1.0);
        assert!((upper_rate(Some(&end(&[])), 40e6) - 40e6).abs() < 1.0);
    }
}
