//! Pods against their nodes: each path by pairs with its baseline, and why it is lower.
//!
//! Rests on observations, counters and rank tests alone: the same two nodes meet in the same
//! repetition whatever the path, so every ratio is of two measurements a moment apart.

mod causes;
mod difference;
mod matched;

use crate::finding::{finding_of, plain, quantity};
use crate::verdict;
use difference::is_significant;
use ew_evidence::observations::{Observations, RoundView, StageView};
use ew_evidence::telemetry::Telemetry;
use ew_model::finding::details::PodNetwork;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Verdict, VerdictStatus};
use ew_model::pods::{PodComparison, PodFigures, PodPath, parse_agent_name};
use ew_model::record::{EndRecord, FlowRecord};
use ew_model::scenario::Pattern;
use ew_model::workload::{Workload, WorkloadKind};
use ew_stats::significance::{adjusted_where_known, signed_rank};
use ew_stats::{median, median_estimate};
use matched::Match;
use std::collections::BTreeMap;

/// All paths that have a baseline, in the order of the plan; none but in runs with pods.
pub(crate) fn comparisons(
    observations: &Observations<'_>,
    telemetry: &Telemetry<'_>,
) -> Vec<PodComparison> {
    let matches = matches(observations);
    let p_values: Vec<_> = matches
        .iter()
        .map(|m| signed_rank(&logs(&m.ratios)))
        .collect();
    let p_values = adjusted_where_known(&p_values);
    let mut all: Vec<PodComparison> = Vec::new();
    for (found, p_value) in matches.iter().zip(p_values) {
        if let Some(comparison) = compare(found, p_value) {
            all.push(comparison);
        }
    }
    let direct = all.clone();
    for comparison in &mut all {
        let found = matches
            .iter()
            .find(|m| m.stage.stage.name == comparison.stage);
        if let (Some(found), true) = (found, is_lower(comparison)) {
            comparison.causes = causes::find(observations, telemetry, found, comparison, &direct);
        }
        let allowed = observations.run.manifest.scenario.expect.pod_loss;
        let exceeded = allowed.filter(|allowed| exceeds(comparison, *allowed));
        comparison.figures.exceeded_loss_share = exceeded;
    }
    all
}

/// The verdict with what pods pay. A loss above what is allowed is a fault.
pub(crate) fn conclude(mut verdict: Verdict, comparisons: &[PodComparison]) -> Verdict {
    if comparisons.is_empty() {
        return verdict;
    }
    let lower = comparisons.iter().filter(|c| is_lower(c));
    verdict.findings.extend(lower.map(finding));
    verdict::sort(&mut verdict.findings);
    let is_worse = comparisons.iter().any(|c| c.exceeded_loss_share.is_some());
    let may_fail = matches!(
        verdict.status,
        VerdictStatus::NothingWrong | VerdictStatus::AsExpected
    );
    if is_worse && may_fail {
        verdict.status = VerdictStatus::Worse;
    } else if verdict.status == VerdictStatus::NothingWrong && comparisons.iter().any(is_lower) {
        verdict.status = VerdictStatus::AsExpected;
    }
    verdict
}

fn matches<'o, 'a>(observations: &'o Observations<'a>) -> Vec<Match<'o, 'a>> {
    let stages: Vec<(usize, PodPath, &StageView<'_>)> = observations
        .stages
        .iter()
        .enumerate()
        .filter_map(|(index, view)| match view.stage.pattern {
            Pattern::Pods { path } => Some((index, path, view)),
            _ => None,
        })
        .collect();
    let baseline_of = |path: PodPath, workload: &Workload| {
        let wanted = path.baseline()?;
        let fits = |(_, other, view): &&(usize, PodPath, &StageView<'_>)| {
            *other == wanted && view.stage.workload == *workload
        };
        stages
            .iter()
            .find(fits)
            .map(|(index, _, view)| (*index, wanted, *view))
    };
    let matched = stages.iter().filter_map(|(index, path, view)| {
        let (baseline_index, baseline_path, baseline) = baseline_of(*path, &view.stage.workload)?;
        Some(Match {
            stage: view,
            index: *index,
            baseline,
            baseline_index,
            path: *path,
            baseline_path,
            ratios: ratios(observations, view, baseline, *path),
        })
    });
    matched.collect()
}

/// Of the same nodes in the same repetition. Two pods of one node have no two nodes: theirs are of
/// the repetition alone.
fn ratios(
    observations: &Observations<'_>,
    view: &StageView<'_>,
    baseline: &StageView<'_>,
    path: PodPath,
) -> Vec<f64> {
    if path == PodPath::SameNode {
        let (own, other) = (by_sample(view), by_sample(baseline));
        let ratio = |(sample, value): (&u32, &f64)| Some(value / other.get(sample)?);
        return own
            .iter()
            .filter_map(ratio)
            .filter(|r| r.is_finite())
            .collect();
    }
    let (own, other) = (
        by_nodes(observations, view),
        by_nodes(observations, baseline),
    );
    let ratio = |(key, value): (&(u32, String, String), &f64)| Some(value / other.get(key)?);
    own.iter()
        .filter_map(ratio)
        .filter(|r| r.is_finite())
        .collect()
}

fn by_nodes(
    observations: &Observations<'_>,
    view: &StageView<'_>,
) -> BTreeMap<(u32, String, String), f64> {
    let inventory = observations.inventory();
    let node = |id| parse_agent_name(inventory.name(id)).node.to_owned();
    let rows = rows(view).into_iter();
    rows.filter_map(|(sample, row)| Some(((sample, node(row.src), node(row.dst)), value(row)?)))
        .collect()
}

fn by_sample(view: &StageView<'_>) -> BTreeMap<u32, f64> {
    let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (sample, row) in rows(view) {
        values.entry(sample).or_default().extend(value(row));
    }
    let typical = |(sample, values): (u32, Vec<f64>)| Some((sample, median(&values)?));
    values.into_iter().filter_map(typical).collect()
}

/// Measured rows with the repetition they belong to; those of repair rounds belong to none.
fn rows<'a>(view: &StageView<'a>) -> Vec<(u32, &'a FlowRecord)> {
    let planned = &view.stage.rounds;
    let of_round = |round: &RoundView<'a>| {
        let sample = planned
            .get(round.index.0 as usize)
            .map(|planned| planned.sample);
        let records = round.records.clone().into_iter();
        records.filter_map(move |row| Some((sample?, row)))
    };
    view.rounds.iter().flat_map(of_round).collect()
}

/// Higher is better: bits per second, or transactions per second.
fn value(row: &FlowRecord) -> Option<f64> {
    crate::latency::transactions_per_sec(row).or_else(|| row.bits_per_sec())
}

fn values(view: &StageView<'_>) -> Vec<f64> {
    view.measured().filter_map(value).collect()
}

fn logs(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|ratio| ratio.ln()).collect()
}

fn compare(found: &Match<'_, '_>, p_value: Option<f64>) -> Option<PodComparison> {
    let figure = median_estimate(&values(found.stage))?;
    let baseline = median_estimate(&values(found.baseline))?;
    let ratio = median_estimate(&found.ratios)?;
    let workload = &found.stage.stage.workload;
    let figures = PodFigures {
        stage: found.stage.stage.name.clone(),
        baseline_stage: found.baseline.stage.name.clone(),
        path: found.path,
        baseline_path: found.baseline_path,
        kind: workload.kind,
        streams: workload.streams,
        figure,
        baseline,
        ratio,
        p_value,
        significant: is_significant(&ratio, p_value),
        exceeded_loss_share: None,
        node_cpu: cpu(found.stage, node_share),
        agent_cpus: cpu(found.stage, agent_cpus),
        baseline_node_cpu: cpu(found.baseline, node_share),
        baseline_agent_cpus: cpu(found.baseline, agent_cpus),
    };
    Some(PodComparison {
        figures,
        causes: Vec::new(),
    })
}

fn is_lower(comparison: &PodComparison) -> bool {
    comparison.significant && comparison.ratio.value < 1.0
}

/// Whether TCP goodput of pods on different nodes is below the nodes' own by more than this share.
fn exceeds(comparison: &PodComparison, allowed: f64) -> bool {
    let is_asked = matches!(comparison.path, PodPath::OtherNode | PodPath::OtherZone)
        && comparison.kind == WorkloadKind::TcpStream;
    is_asked && is_lower(comparison) && 1.0 - comparison.ratio.value > allowed
}

/// Of the clients and of the servers: medians over the windows. The sender of the data is the
/// client in all these stages' plans.
fn cpu(view: &StageView<'_>, figure: impl Fn(&EndRecord) -> Option<f64>) -> [Option<f64>; 2] {
    let of = |end: fn(&FlowRecord) -> Option<&EndRecord>| {
        let values: Vec<f64> = view
            .measured()
            .filter_map(end)
            .filter_map(&figure)
            .collect();
        median(&values)
    };
    [
        of(|row| row.sender.as_ref()),
        of(|row| row.receiver.as_ref()),
    ]
}

fn node_share(end: &EndRecord) -> Option<f64> {
    let cpu = end.cpu.as_ref()?;
    let all_ns = f64::from(cpu.cpus) * end.window_ns as f64;
    (all_ns > 0.0).then(|| (cpu.busy_ns as f64 / all_ns).min(1.0))
}

fn agent_cpus(end: &EndRecord) -> Option<f64> {
    let cpu = end.cpu.as_ref()?;
    (end.window_ns > 0).then(|| cpu.engine_ns as f64 / end.window_ns as f64)
}

fn finding(comparison: &PodComparison) -> Finding {
    let exceeded = comparison.exceeded_loss_share;
    Finding {
        measured: quantity(&comparison.ratio, "ratio"),
        expected: plain(1.0 - exceeded.unwrap_or(0.0), "ratio"),
        ..finding_of(
            match exceeded {
                Some(_) => Severity::Fault,
                None => Severity::Notice,
            },
            Subject::Run,
            Cause::PodNetwork,
            Details::PodNetwork(PodNetwork {
                comparison: Box::new(comparison.clone()),
            }),
        )
    }
}
