//! One stage's totals.

use crate::expected::Expected;
use crate::observations::{Observations, StageView, latency};
use crate::stats::{median, median_estimate, quantile};
use crate::timeline::timeline;
use ew_model::HostId;
use ew_model::analysis::{Estimate, StageAnalysis};
use ew_model::scenario::{Pattern, Pick};
use std::collections::{BTreeMap, BTreeSet};

/// All stages of the plan, in order; one that did not run has its planned flows counted as missing.
pub(crate) fn stages(observations: &Observations<'_>, expected: &Expected) -> Vec<StageAnalysis> {
    observations
        .stages
        .iter()
        .enumerate()
        .map(|(index, stage)| stage_analysis(index, stage, expected))
        .collect()
}

fn stage_analysis(index: usize, stage: &StageView<'_>, expected: &Expected) -> StageAnalysis {
    let workload = &stage.stage.workload;
    let rates: Vec<f64> = match stage.is_bulk() {
        true => stage
            .rounds
            .iter()
            .flat_map(|r| r.rates())
            .map(|(_, rate)| rate)
            .collect(),
        false => Vec::new(),
    };
    StageAnalysis {
        name: stage.stage.name.clone(),
        pattern: stage.stage.pattern.name().into(),
        workload: format!("{} ({})", workload.kind.name(), workload.tool.name()),
        rounds: stage.rounds.len() as u32,
        flows: stage.planned,
        missing: stage.missing.len() as u32,
        aggregate_bits_per_sec: aggregate(stage),
        flow_bits_per_sec: median_estimate(&rates),
        slowest_bits_per_sec: rates.iter().copied().min_by(f64::total_cmp),
        fastest_bits_per_sec: rates.iter().copied().max_by(f64::total_cmp),
        of_expected: of_expected(index, stage, expected),
        retransmits: retransmits(stage),
        rtt_ns: round_trips(stage),
        start_skew_ns: start_skew(stage),
        timeline: if stage.is_bulk() {
            timeline(stage)
        } else {
            Vec::new()
        },
        random_collisions: random_collisions(stage),
    }
}

/// Sum per round, median over rounds. A ramp's rounds differ by design, so only its last step counts; a round with
/// missing flows would look slow, so it counts only when there is no whole one.
fn aggregate(stage: &StageView<'_>) -> Option<Estimate> {
    if !stage.is_bulk() {
        return None;
    }
    let most = stage
        .rounds
        .iter()
        .filter_map(|round| round.senders_per_rack)
        .max();
    let sums = |whole_only: bool| -> Vec<f64> {
        stage
            .rounds
            .iter()
            .filter(|round| round.senders_per_rack == most && !round.records.is_empty())
            .filter(|round| round.whole || !whole_only)
            .map(|round| round.rates().map(|(_, rate)| rate).sum())
            .collect()
    };
    median_estimate(&sums(true)).or_else(|| median_estimate(&sums(false)))
}

fn of_expected(index: usize, stage: &StageView<'_>, expected: &Expected) -> Option<f64> {
    if !stage.is_bulk() {
        return None;
    }
    let ratios: Vec<f64> = stage
        .rounds
        .iter()
        .enumerate()
        .flat_map(|(at, round)| expected.ratios(index, at, round))
        .collect();
    median(&ratios)
}

fn retransmits(stage: &StageView<'_>) -> Option<u64> {
    let known: Vec<u64> = stage
        .measured()
        .filter_map(|row| row.retransmits())
        .collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Least, median and greatest over ordered pairs of the pair's median round trip.
fn round_trips(stage: &StageView<'_>) -> Option<(u64, u64, u64)> {
    let mut pairs: BTreeMap<(HostId, HostId), Vec<f64>> = BTreeMap::new();
    for row in stage.measured() {
        if let Some(ns) = latency(row) {
            pairs.entry((row.src, row.dst)).or_default().push(ns as f64);
        }
    }
    let medians: Vec<f64> = pairs.values().filter_map(|values| median(values)).collect();
    let least = medians.iter().copied().min_by(f64::total_cmp)?;
    let greatest = medians.iter().copied().max_by(f64::total_cmp)?;
    Some((least as u64, median(&medians)? as u64, greatest as u64))
}

/// Median, 99th percentile and greatest of |achieved - planned| start over the senders.
fn start_skew(stage: &StageView<'_>) -> Option<(u64, u64, u64)> {
    let skews: Vec<f64> = stage
        .measured()
        .filter_map(|row| row.sender.as_ref())
        .map(|end| end.start_skew_ns.unsigned_abs() as f64)
        .collect();
    let at = |share: f64| quantile(&skews, share).map(|ns| ns as u64);
    Some((at(0.5)?, at(0.99)?, at(1.0)?))
}

/// Draws of a server port that another client of the same round had drawn before; the stock iperf3 serves one
/// client at a time and refuses the rest.
fn random_collisions(stage: &StageView<'_>) -> Option<u32> {
    let Pattern::CrossRack {
        pick: Pick::Random { .. },
        ..
    } = stage.stage.pattern
    else {
        return None;
    };
    let mut collisions = 0;
    for round in &stage.stage.rounds {
        let mut taken: BTreeSet<(HostId, u16)> = BTreeSet::new();
        for flow in &round.flows {
            if flow
                .lane
                .is_some_and(|lane| !taken.insert((flow.server(), lane)))
            {
                collisions += 1;
            }
        }
    }
    Some(collisions)
}
