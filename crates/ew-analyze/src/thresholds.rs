//! Thresholds of the scenario against the run's figures.

use ew_model::Analysis;
use ew_model::analysis::{LatencyFigures, StageAnalysis, Warning};
use ew_model::finding::VerdictStatus;
use ew_model::threshold::{Checked, Metric, Threshold};

/// Checks all of them, and makes the verdict one of them when it was better: a missed threshold is
/// worse than configured, and one without a figure leaves the answer incomplete.
pub(crate) fn check(mut analysis: Analysis) -> Analysis {
    let thresholds = &analysis.run.scenario.thresholds;
    let checked: Vec<Checked> = thresholds.iter().map(|t| checked(t, &analysis)).collect();
    let is_missed = checked.iter().any(|c| c.is_met == Some(false));
    let is_unknown = checked.iter().any(|c| c.is_met.is_none());
    let status = &mut analysis.verdict.status;
    let was_better = matches!(
        status,
        VerdictStatus::NothingWrong | VerdictStatus::AsExpected
    );
    if was_better && is_missed {
        *status = VerdictStatus::Worse;
    } else if was_better && is_unknown {
        *status = VerdictStatus::Partial;
    }
    let missed = checked.iter().filter(|c| c.is_met != Some(true));
    let missed = missed.cloned().map(Warning::ThresholdMissed);
    analysis.warnings.extend(missed);
    analysis.thresholds = checked;
    analysis
}

fn checked(threshold: &Threshold, analysis: &Analysis) -> Checked {
    let value = value(threshold, analysis);
    let nic = analysis.basis.nic_bits_per_sec;
    Checked {
        threshold: threshold.clone(),
        value,
        is_met: value.and_then(|value| threshold.is_met_by(value, nic)),
    }
}

fn value(threshold: &Threshold, analysis: &Analysis) -> Option<f64> {
    let stage = threshold.stage.as_deref();
    let is_meant = |of: &&StageAnalysis| stage.is_none_or(|name| of.name == name);
    let stages = analysis.stages.iter().filter(is_meant);
    let first = stages.clone().find_map(|stage| stage.latency.as_ref());
    let time = |of: fn(&LatencyFigures) -> Option<u64>| Some(of(&first?.times)? as f64);
    match threshold.metric {
        Metric::PairMin => pairs(threshold, analysis).into_iter().next(),
        Metric::PairMedian => {
            let pairs = pairs(threshold, analysis);
            pairs.get(pairs.len() / 2).copied()
        }
        Metric::HostTxMin => least(
            analysis
                .hosts
                .iter()
                .map(|h| h.tx_bits_per_sec.map(|e| e.value)),
        ),
        Metric::HostRxMin => least(
            analysis
                .hosts
                .iter()
                .map(|h| h.rx_bits_per_sec.map(|e| e.value)),
        ),
        Metric::AggregateMin => least(stages.map(|s| s.aggregate_bits_per_sec.map(|e| e.value))),
        Metric::RttP50 => time(|times| Some(times.p50_ns)),
        Metric::RttP90 => time(|times| times.p90_ns),
        Metric::RttP99 => time(|times| times.p99_ns),
        Metric::RttP999 => time(|times| times.p999_ns),
        Metric::RttMax => time(|times| Some(times.max_ns)),
        Metric::Loss => most(stages.map(|s| s.datagrams?.loss)),
        Metric::Jitter => most(stages.map(|s| Some(s.datagrams?.jitter_ns as f64))),
    }
}

/// Rates of all pairs, the slowest first: of the mesh, or of the stage.
fn pairs(threshold: &Threshold, analysis: &Analysis) -> Vec<f64> {
    let is_of_host_pairs =
        threshold.stage.is_none() || threshold.stage == analysis.host_pairs_stage;
    let host_pairs = analysis.host_pairs.iter().filter(|_| is_of_host_pairs);
    let mut rates: Vec<f64> = host_pairs
        .filter_map(|host_pair| host_pair.bits_per_sec)
        .collect();
    if rates.is_empty() {
        let stages = analysis.stages.iter().filter(|stage| stage.kind.is_bulk());
        let meant = stages.filter(|s| threshold.stage.as_ref().is_none_or(|name| s.name == *name));
        rates.extend(meant.filter_map(|stage| stage.slowest_bits_per_sec));
    }
    rates.sort_by(f64::total_cmp);
    rates
}

fn least(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().min_by(f64::total_cmp)
}

fn most(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().max_by(f64::total_cmp)
}
