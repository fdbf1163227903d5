//! One stage's totals.

use crate::expected::Expected;
use crate::timeline::timeline;
use crate::{convergence, cpu, datagrams, latency};
use ew_evidence::observations::{Observations, StageView};
use ew_evidence::telemetry::Telemetry;
use ew_model::HostId;
use ew_model::analysis::{Estimate, Label, PairAnalysis, StageAnalysis, UnconvergedFigure};
use ew_model::record::{FigureNote, FlowRecord};
use ew_model::scenario::{Pattern, Pick};
use ew_stats::{median, median_estimate, quantile};
use std::collections::{BTreeMap, BTreeSet};

/// All stages of the plan, in order; one that did not run has its planned flows counted as missing.
pub(crate) fn stages(
    observations: &Observations<'_>,
    expected: &Expected,
    telemetry: &Telemetry<'_>,
) -> Vec<StageAnalysis> {
    observations
        .stages
        .iter()
        .enumerate()
        .map(|(index, stage)| StageAnalysis {
            span_ns: telemetry.span_ns(index),
            ..stage_analysis(index, stage, expected)
        })
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
    let pairs = pairs(stage);
    let (sender_cpu, receiver_cpu) = cpu::of_ends(stage);
    StageAnalysis {
        name: stage.stage.name.clone(),
        pattern: stage.stage.pattern.name().into(),
        workload: workload.label(),
        kind: workload.kind,
        settings: workload.settings(),
        judged: stage.judged,
        labels: labels(stage),
        rounds: stage.rounds.len() as u32,
        flows: stage.planned,
        missing: stage.missing.len() as u32,
        aggregate_bits_per_sec: aggregate(stage),
        flow_bits_per_sec: median_estimate(&rates),
        slowest_bits_per_sec: rates.iter().copied().min_by(f64::total_cmp),
        fastest_bits_per_sec: rates.iter().copied().max_by(f64::total_cmp),
        of_expected: of_expected(index, stage, expected),
        ceiling: expected.ceiling(index),
        retransmits: retransmits(stage),
        rtt_ns: round_trips(stage, &pairs),
        latency: latency::latency(stage),
        datagrams: datagrams::datagrams(stage),
        pairs,
        sender_cpu,
        receiver_cpu,
        start_skew_ns: start_skew(stage),
        start_skew_error_ns: start_skew_error_ns(stage),
        span_ns: None,
        timeline: if stage.is_bulk() {
            timeline(stage)
        } else {
            Vec::new()
        },
        random_collisions: random_collisions(stage),
        auto: stage.stage.auto,
        unconverged: unconverged(stage),
        sweep: stage.stage.sweep.clone(),
    }
}

/// Figures wider than was asked, the widest first.
fn unconverged(stage: &StageView<'_>) -> Vec<UnconvergedFigure> {
    let records: Vec<&FlowRecord> = stage.measured().collect();
    let mut figures: Vec<UnconvergedFigure> = convergence::unconverged(stage.stage, &records)
        .into_iter()
        .map(|unconverged| unconverged.figure)
        .collect();
    let width = |figure: &UnconvergedFigure| figure.width.unwrap_or(f64::INFINITY);
    figures.sort_by(|a, b| width(b).total_cmp(&width(a)));
    figures
}

fn aggregate(stage: &StageView<'_>) -> Option<Estimate> {
    stage
        .is_bulk()
        .then(|| stage.sum_over_flows(FlowRecord::bits_per_sec))?
}

/// Every note that an end of a flow made, and how many flows carry it.
fn labels(stage: &StageView<'_>) -> Vec<Label> {
    let mut flows: BTreeMap<FigureNote, u32> = BTreeMap::new();
    let mut of_flows = 0;
    for row in stage.measured() {
        of_flows += 1;
        let ends = [&row.sender, &row.receiver].into_iter().flatten();
        let notes: BTreeSet<FigureNote> = ends.flat_map(|end| &end.notes).copied().collect();
        for note in notes {
            *flows.entry(note).or_default() += 1;
        }
    }
    let label = |(note, flows)| Label {
        note,
        flows,
        of_flows,
    };
    flows.into_iter().map(label).collect()
}

/// What each ordered pair did over all rounds, where the matrix of rates does not have it.
fn pairs(stage: &StageView<'_>) -> Vec<PairAnalysis> {
    let mut times = latency::by_pair(stage);
    let mut rows: BTreeMap<(HostId, HostId), Vec<&FlowRecord>> = BTreeMap::new();
    for row in stage.measured() {
        rows.entry((row.src, row.dst)).or_default().push(row);
    }
    let over = |rows: &[&FlowRecord], figure: fn(&FlowRecord) -> Option<f64>| {
        median(
            &rows
                .iter()
                .filter_map(|row| figure(row))
                .collect::<Vec<_>>(),
        )
    };
    let is_bulk = stage.is_bulk();
    let pairs = rows.iter().map(|((src, dst), rows)| PairAnalysis {
        src: *src,
        dst: *dst,
        samples: rows.len() as u32,
        bits_per_sec: over(rows, FlowRecord::bits_per_sec).filter(|_| is_bulk),
        transactions_per_sec: over(rows, latency::transactions_per_sec).filter(|_| !is_bulk),
        times: times
            .remove(&(*src, *dst))
            .and_then(|times| latency::figures(&times)),
        datagrams: datagrams::sum(stage, rows),
    });
    pairs
        .filter(|pair| pair.times.is_some() || pair.datagrams.is_some())
        .collect()
}

fn of_expected(index: usize, stage: &StageView<'_>, expected: &Expected) -> Option<f64> {
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

/// Min, median and max over ordered pairs of the pair's median round trip.
fn round_trips(stage: &StageView<'_>, pairs: &[PairAnalysis]) -> Option<(u64, u64, u64)> {
    if !stage.has_round_trips() {
        return None;
    }
    let medians: Vec<f64> = pairs
        .iter()
        .filter_map(|pair| Some(pair.times?.p50_ns as f64))
        .collect();
    let min = medians.iter().copied().min_by(f64::total_cmp)?;
    let max = medians.iter().copied().max_by(f64::total_cmp)?;
    Some((min as u64, median(&medians)? as u64, max as u64))
}

/// Median, 99th percentile and max of |achieved - planned| start over the senders.
fn start_skew(stage: &StageView<'_>) -> Option<(u64, u64, u64)> {
    let skews: Vec<f64> = stage
        .measured()
        .filter_map(|row| row.sender.as_ref())
        .map(|end| end.start_skew_ns.unsigned_abs() as f64)
        .collect();
    let at = |share: f64| quantile(&skews, share).map(|ns| ns as u64);
    Some((at(0.5)?, at(0.99)?, at(1.0)?))
}

/// The clocks' part in it, at most; `None` as soon as one of the senders' is not known.
fn start_skew_error_ns(stage: &StageView<'_>) -> Option<u64> {
    let senders = stage.measured().filter(|row| row.sender.is_some());
    let errors = senders.map(|row| stage.clock_error_ns(row.src, row.sender.as_ref()));
    errors.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// Choices of a server port that another client of the same round had selected before; the stock
/// iperf3 serves one client at a time and refuses the rest.
fn random_collisions(stage: &StageView<'_>) -> Option<u32> {
    let Pattern::CrossRack {
        pick: Pick::Random { .. },
        ..
    } = stage.stage.pattern
    else {
        return None;
    };
    let mut collisions = 0;
    for round in &stage.due {
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
