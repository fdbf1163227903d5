//! What others' load costs: each of the victims' loads under an aggressor, by repetition against
//! the same load alone.
//!
//! Impact factors as GPCNeT has them (see [`ew_model::congestion`]). The factor of a repetition is
//! that of one pass, in which the stages run one after the other, so that what drifts touches both
//! alike.

use crate::finding::{finding_of, plain, quantity};
use ew_evidence::observations::{StageView, times};
use ew_model::analysis::Estimate;
use ew_model::congestion::{Aggressor, CongestionImpact, Impact};
use ew_model::finding::details::Congestion;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Verdict};
use ew_model::latency::Histogram;
use ew_model::scenario::Pattern;
use ew_model::workload::WorkloadKind;
use ew_model::{FlowRecord, Run, StageIndex};
use ew_stats::{median, median_estimate, quantile};
use std::collections::BTreeMap;

/// The figure that 99% do better than.
const WORST: f64 = 0.01;
/// As few transactions as leave the true percentile below the max time in 95% of all runs.
pub(crate) const MIN_FOR_P99: u64 = 299;

/// What a repetition's victims show: times in ns, or rates in bits per second.
#[derive(Clone, Copy)]
struct Sample {
    mean: f64,
    p99: Option<f64>,
}

/// All loads under all aggressors, in the order of the plan; none but in runs with aggressors.
pub(crate) fn impacts(run: &Run, stages: &[StageView<'_>]) -> Vec<CongestionImpact> {
    let victims: Vec<(StageIndex, Aggressor, &StageView<'_>)> = (0u32..)
        .zip(stages)
        .filter_map(|(index, view)| match view.stage.pattern {
            Pattern::Congestion { aggressor } => Some((StageIndex(index), aggressor, view)),
            _ => None,
        })
        .collect();
    let alone = |loaded: &StageView<'_>| {
        let mut alone = victims.iter().filter(|(_, by, _)| *by == Aggressor::None);
        alone.find(|(_, _, view)| view.stage.workload == loaded.stage.workload)
    };
    // Messages of many sizes have no typical time (see `completion`).
    let loaded = victims.iter().filter(|(_, by, view)| {
        *by != Aggressor::None && view.stage.workload.kind != WorkloadKind::FlowSizes
    });
    loaded
        .filter_map(|(index, aggressor, view)| {
            let (_, _, baseline) = alone(view)?;
            impact(*aggressor, view, baseline, carried(run, *index))
        })
        .collect()
}

/// The verdict of a run that asks for nothing else, with the impacts.
pub(crate) fn conclude(
    mut verdict: Verdict,
    impacts: &[CongestionImpact],
    stages: &[StageView<'_>],
) -> Verdict {
    let is_one = |view: &StageView<'_>| matches!(view.stage.pattern, Pattern::Congestion { .. });
    if !stages.iter().all(is_one) {
        return verdict;
    }
    verdict.findings.extend(worst_of_each(impacts).map(finding));
    verdict
}

/// Of each load of the victims the aggressor that costs it most.
fn worst_of_each(impacts: &[CongestionImpact]) -> impl Iterator<Item = &CongestionImpact> {
    impacts.iter().filter(|one| {
        let alike = impacts
            .iter()
            .filter(|other| other.baseline_stage == one.baseline_stage);
        alike
            .max_by(|a, b| times_worse(a).total_cmp(&times_worse(b)))
            .is_some_and(|worst| worst.stage == one.stage)
    })
}

fn impact(
    aggressor: Aggressor,
    view: &StageView<'_>,
    baseline: &StageView<'_>,
    aggressors_bits_per_sec: Option<Estimate>,
) -> Option<CongestionImpact> {
    let (loaded, alone) = (by_sample(view), by_sample(baseline));
    let both: Vec<(Sample, Sample)> = loaded
        .iter()
        .filter_map(|(sample, loaded)| Some((*alone.get(sample)?, *loaded)))
        .collect();
    let is_bulk = view.is_bulk();
    let means: Vec<(f64, f64)> = both.iter().map(|(a, l)| (a.mean, l.mean)).collect();
    let tails = both.iter().filter_map(|(a, l)| Some((a.p99?, l.p99?)));
    let mut tails: Vec<(f64, f64)> = tails.collect();
    if tails.is_empty() {
        // Few transactions a repetition may be enough in all.
        tails.extend(of_all(baseline).zip(of_all(view)));
    }
    Some(CongestionImpact {
        stage: view.stage.name.clone(),
        baseline_stage: baseline.stage.name.clone(),
        aggressor,
        kind: view.stage.workload.kind,
        mean: compared(&means, is_bulk)?,
        p99: compared(&tails, is_bulk),
        aggressors_bits_per_sec,
    })
}

/// The 99th percentile of the transactions of all repetitions.
fn of_all(view: &StageView<'_>) -> Option<f64> {
    let rows: Vec<&FlowRecord> = view.measured().collect();
    (!view.is_bulk()).then(|| round_trips(&rows)?.p99)?
}

/// Of pairs (alone, loaded). A time is worse the longer, a rate the lower it is.
fn compared(both: &[(f64, f64)], is_rate: bool) -> Option<Impact> {
    let factors: Vec<f64> = both
        .iter()
        .map(|(alone, loaded)| match is_rate {
            true => alone / loaded,
            false => loaded / alone,
        })
        .filter(|factor| factor.is_finite())
        .collect();
    let of = |one: fn(&(f64, f64)) -> f64| median(&both.iter().map(one).collect::<Vec<_>>());
    Some(Impact {
        alone: of(|(alone, _)| *alone)?,
        loaded: of(|(_, loaded)| *loaded)?,
        factor: median_estimate(&factors)?,
    })
}

fn by_sample(view: &StageView<'_>) -> BTreeMap<u32, Sample> {
    let mut rows: BTreeMap<u32, Vec<&FlowRecord>> = BTreeMap::new();
    for row in view.measured() {
        rows.entry(row.sample).or_default().push(row);
    }
    let of = |rows: &[&FlowRecord]| match view.is_bulk() {
        true => rates(rows),
        false => round_trips(rows),
    };
    rows.iter()
        .filter_map(|(sample, rows)| Some((*sample, of(rows)?)))
        .collect()
}

/// Of all transactions alike: a victim that got few answers counts as little.
fn round_trips(rows: &[&FlowRecord]) -> Option<Sample> {
    let mut all = Histogram::default();
    rows.iter()
        .filter_map(|row| times(row))
        .for_each(|one| all.merge(one));
    let summary = all.summary()?;
    Some(Sample {
        mean: summary.mean_ns as f64,
        p99: (summary.count >= MIN_FOR_P99).then_some(summary.p99_ns as f64),
    })
}

fn rates(rows: &[&FlowRecord]) -> Option<Sample> {
    let rates: Vec<f64> = rows.iter().filter_map(|row| row.bits_per_sec()).collect();
    let count = rates.len();
    (count > 0).then(|| Sample {
        mean: rates.iter().sum::<f64>() / count as f64,
        p99: quantile(&rates, WORST),
    })
}

/// What a stage's aggressors carried together, by repetition.
fn carried(run: &Run, stage: StageIndex) -> Option<Estimate> {
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    let rows = run.flows.iter();
    for row in rows.filter(|row| row.is_aggressor && row.stage == stage) {
        *sums.entry(row.sample).or_default() += row.bits_per_sec().unwrap_or(0.0);
    }
    median_estimate(&sums.into_values().collect::<Vec<_>>())
}

fn times_worse(impact: &CongestionImpact) -> f64 {
    impact.mean.factor.value
}

fn finding(impact: &CongestionImpact) -> Finding {
    let factor = &impact.mean.factor;
    let is_longer = !impact.kind.is_bulk() && factor.low.is_some_and(|low| low > 1.0);
    Finding {
        measured: quantity(factor, "ratio"),
        expected: plain(1.0, "ratio"),
        ..finding_of(
            Severity::Info,
            Subject::Run,
            Cause::Congestion,
            Details::Congestion(Congestion {
                impact: Box::new(impact.clone()),
                is_longer_wait: is_longer,
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_worse_the_longer_and_a_rate_the_lower_it_is() {
        let both = [(10.0, 30.0); 6];
        assert_eq!(compared(&both, false).unwrap().factor.value, 3.0);
        let impact = compared(&both.map(|(a, b)| (b, a)), true).unwrap();
        assert_eq!(impact.factor.value, 3.0);
        assert_eq!((impact.alone, impact.loaded), (30.0, 10.0));
        assert!(compared(&[], true).is_none());
        assert!(
            compared(&[(1.0, 0.0)], true).is_none(),
            "nothing got through"
        );
    }
}
