//! Thresholds and expectations of the scenario against what the run has figures for.

use ew_evidence::criteria::SLOW;
use ew_model::Analysis;
use ew_model::analysis::{
    Expectation, HostPair, LatencyFigures, PairMap, StageAnalysis, UplinkAnalysis, Warning,
};
use ew_model::finding::VerdictStatus;
use ew_model::threshold::{Checked, Metric, Threshold};
use ew_stats::median;

/// Checks all of them, and makes the verdict one of them when it was better: a missed threshold is
/// worse than configured; one without a figure, and an expectation that no stage could test, leave
/// the answer incomplete.
pub(crate) fn check(mut analysis: Analysis) -> Analysis {
    let thresholds = &analysis.run.scenario.thresholds;
    let checked: Vec<Checked> = thresholds.iter().map(|t| checked(t, &analysis)).collect();
    let is_missed = checked.iter().any(|c| c.is_met == Some(false));
    let not_tested = not_tested(&analysis);
    let is_unknown = !not_tested.is_empty() || checked.iter().any(|c| c.is_met.is_none());
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
    let not_tested = not_tested.into_iter();
    let not_tested = not_tested.map(|expectation| Warning::NotTested { expectation });
    analysis.warnings.extend(not_tested);
    analysis.thresholds = checked;
    analysis
}

/// Expectations that no part of the run could have shown to be missed.
fn not_tested(analysis: &Analysis) -> Vec<Expectation> {
    let expect = &analysis.run.scenario.expect;
    let racks = &analysis.racks;
    let is_within = |ratio: f64| {
        let shows = |uplink: &UplinkAnalysis| shows_ratio(uplink, ratio);
        racks.iter().any(|rack| shows(&rack.tx) || shows(&rack.rx))
    };
    let has_paths = || racks.iter().any(|rack| !rack.paths.is_empty());
    let has_rtt = || analysis.hosts.iter().any(|host| host.idle_rtt_ns.is_some());
    [
        (
            expect
                .oversubscription
                .is_some_and(|ratio| !is_within(ratio)),
            Expectation::Oversubscription,
        ),
        (expect.paths.is_some() && !has_paths(), Expectation::Paths),
        (expect.rtt_ns.is_some() && !has_rtt(), Expectation::Rtt),
    ]
    .into_iter()
    .filter_map(|(is_open, expectation)| is_open.then_some(expectation))
    .collect()
}

/// Whether it is known what limits an uplink, or it carried what the ratio leaves of its hosts.
fn shows_ratio(uplink: &UplinkAnalysis, ratio: f64) -> bool {
    let carried = uplink.carried_bits_per_sec * ratio;
    uplink.limited.is_some() || carried > SLOW * uplink.hosts_bits_per_sec
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
        Metric::PairMin => least(pairs(threshold, analysis).into_iter().map(Some)),
        Metric::PairMedian => median(&pairs(threshold, analysis)),
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

/// Rates of all pairs: of the mesh, or of the stage.
fn pairs(threshold: &Threshold, analysis: &Analysis) -> Vec<f64> {
    let stage = threshold.stage.as_ref();
    let is_named = |name: &str| stage.is_none_or(|stage| stage == name);
    let host_pairs = match stage.is_none() || threshold.stage == analysis.host_pairs_stage {
        true => analysis.host_pairs.as_slice(),
        false => map_of(stage, analysis),
    };
    let rates: Vec<f64> = host_pairs.iter().filter_map(|p| p.bits_per_sec).collect();
    if !rates.is_empty() {
        return rates;
    }
    let stages = analysis.stages.iter().filter(|stage| stage.kind.is_bulk());
    let meant = stages.filter(|stage| is_named(&stage.name));
    meant
        .filter_map(|stage| stage.slowest_bits_per_sec)
        .collect()
}

/// The pairs of another stage than the mesh.
fn map_of<'a>(stage: Option<&String>, analysis: &'a Analysis) -> &'a [HostPair] {
    let named = |map: &&PairMap| {
        let of_map = analysis.stages.get(map.stage as usize);
        of_map.is_some_and(|found| stage == Some(&found.name))
    };
    let map = analysis.pair_maps.iter().find(named);
    map.map_or(&[], |map| &map.host_pairs)
}

fn least(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().min_by(f64::total_cmp)
}

fn most(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().max_by(f64::total_cmp)
}
