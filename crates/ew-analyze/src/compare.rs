//! Two runs held against each other: the same stages, the same flows where there are any, repeated
//! measurements, and tests that say what is chance.

mod metric;
mod remarks;
mod sentence;

use crate::analyze;
use crate::observations::{Observations, StageView};
use ew_model::comparison::{
    Change, Comparison, ComparisonVerdict, Metric, MetricComparison, Side, StageComparison,
};
use ew_model::run::Run;
use ew_model::{Analysis, WorkloadKind};
use thiserror::Error;

/// A difference counts when its adjusted p-value is below this.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// What may be chosen of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// What to call the two runs; else by their ids.
    pub names: Option<(String, String)>,
    /// How much worse is too much: 0.05 is 5 %.
    pub threshold: Option<f64>,
    /// Whether a single host that is too much worse counts, too, and not only a whole stage.
    pub each_host: bool,
}

/// Why two runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompareError {
    /// No stage measures the same.
    #[error(
        "nothing to compare: no stage of {base} measures what a stage of {other} does ({base} has {base_stages}; {other} has \
         {other_stages}); run the same scenario for both"
    )]
    NothingInCommon {
        /// The base run's id.
        base: String,
        /// Its stages.
        base_stages: String,
        /// The other run's id.
        other: String,
        /// Its stages.
        other_stages: String,
    },
    /// A run has no figure in any common stage.
    #[error(
        "nothing to compare: {run} has no figure in {stages}; `eastwest report {run}` says why, then run it again"
    )]
    NothingMeasured {
        /// Its id.
        run: String,
        /// The common stages.
        stages: String,
    },
}

/// Compares `other` with `base`. The same runs give the same answer.
///
/// # Errors
/// [`CompareError`] when they have nothing in common.
pub fn compare(
    base: &Run,
    other: &Run,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let (a, b) = (Observations::new(base), Observations::new(other));
    let matched = matched_stages(&a.stages, &b.stages);
    refuse_unlike(&a, &b, &matched)?;
    let mut stages: Vec<StageComparison> = matched
        .iter()
        .map(|(ours, theirs)| stage(&a, ours, &b, theirs))
        .filter(|stage| !stage.metrics.is_empty())
        .collect();
    if stages.is_empty() {
        return Err(nothing_measured(base, other, &matched));
    }
    judge(&mut stages, options);
    let analyses = (analyze(base), analyze(other));
    let names = options.names.clone();
    let (base_name, other_name) =
        names.unwrap_or_else(|| (base.manifest.id.clone(), other.manifest.id.clone()));
    let is_worse =
        metrics(&stages).any(|m| m.beyond_threshold || m.hosts_beyond_threshold().next().is_some());
    Ok(Comparison {
        base: side(base_name, &analyses.0),
        other: side(other_name, &analyses.1),
        sentence: sentence::sentence(&stages, options.threshold),
        verdict: match is_worse {
            true => ComparisonVerdict::Worse,
            false => ComparisonVerdict::NotWorse,
        },
        threshold: options.threshold,
        not_compared: remarks::not_compared(&a, &b, &matched),
        remarks: remarks::of_runs(&analyses.0, &analyses.1),
        stages,
    })
}

/// Stages of the two runs that measure the same: by name, else the only ones of their pattern and
/// traffic.
fn matched_stages<'v, 'a>(
    ours: &'v [StageView<'a>],
    theirs: &'v [StageView<'a>],
) -> Vec<(&'v StageView<'a>, &'v StageView<'a>)> {
    let alike = |a: &StageView<'_>, b: &StageView<'_>| {
        a.stage.workload.kind == b.stage.workload.kind
            && a.stage.pattern.name() == b.stage.pattern.name()
    };
    let only = |all: &'v [StageView<'a>], like: &StageView<'_>| {
        let mut found = all.iter().filter(|stage| alike(stage, like));
        found.next().filter(|_| found.next().is_none())
    };
    let partner = |a: &'v StageView<'a>| {
        let named = theirs.iter().find(|b| {
            b.stage.name == a.stage.name && a.stage.workload.kind == b.stage.workload.kind
        });
        let nameless = || only(theirs, a).filter(|_| only(ours, a).is_some());
        Some((a, named.or_else(nameless)?))
    };
    ours.iter().filter_map(partner).collect()
}

fn refuse_unlike(
    a: &Observations<'_>,
    b: &Observations<'_>,
    matched: &[(&StageView<'_>, &StageView<'_>)],
) -> Result<(), CompareError> {
    if !matched.is_empty() {
        return Ok(());
    }
    Err(CompareError::NothingInCommon {
        base: a.run.manifest.id.clone(),
        base_stages: remarks::stage_list(&a.stages),
        other: b.run.manifest.id.clone(),
        other_stages: remarks::stage_list(&b.stages),
    })
}

fn nothing_measured(
    base: &Run,
    other: &Run,
    matched: &[(&StageView<'_>, &StageView<'_>)],
) -> CompareError {
    let base_has = matched.iter().any(|(a, _)| a.measured().next().is_some());
    let names: Vec<String> = matched
        .iter()
        .map(|(a, _)| format!("`{}`", a.stage.name))
        .collect();
    CompareError::NothingMeasured {
        run: if base_has { other } else { base }.manifest.id.clone(),
        stages: names.join(", "),
    }
}

fn stage(
    a: &Observations<'_>,
    ours: &StageView<'_>,
    b: &Observations<'_>,
    theirs: &StageView<'_>,
) -> StageComparison {
    let workload = &ours.stage.workload;
    let compared = metrics_of(workload.kind).iter();
    StageComparison {
        name: ours.stage.name.clone(),
        pattern: ours.stage.pattern.name().into(),
        workload: format!("{} ({})", workload.kind.name(), workload.tool.name()),
        remarks: remarks::of_stages(ours.stage, theirs.stage),
        metrics: compared
            .filter_map(|metric| metric::compare(*metric, (a, ours), (b, theirs)))
            .collect(),
    }
}

/// What may be compared of a kind of traffic, the most informative first; what a run does not hold
/// is skipped.
fn metrics_of(kind: WorkloadKind) -> &'static [Metric] {
    match kind.is_bulk() {
        true => &[Metric::Throughput, Metric::Delivered, Metric::Jitter],
        false => &[
            Metric::LatencyMedian,
            Metric::LatencyP99,
            Metric::LatencyP999,
            Metric::ConnectMedian,
            Metric::Transactions,
        ],
    }
}

/// Adjusts all p-values for their number, and says what each difference amounts to.
fn judge(stages: &mut [StageComparison], options: &CompareOptions) {
    let p_values: Vec<Option<f64>> = metrics(stages).map(|m| m.p_value).collect();
    let q_values = crate::significance::adjusted_where_known(&p_values);
    let all = stages.iter_mut().flat_map(|stage| &mut stage.metrics);
    for (metric, q_value) in all.zip(q_values) {
        metric.q_value = q_value;
        metric.change = change(metric);
        if let Some(most) = options.threshold {
            hold_against(most, metric, options.each_host);
        }
    }
}

/// Marks what is significantly worse by more than `most`: the metric, and the hosts where these are
/// asked for.
fn hold_against(most: f64, metric: &mut MetricComparison, each_host: bool) {
    let kind = metric.metric;
    let is_too_much = |ratio: f64| kind.worsening(ratio) > most;
    metric.beyond_threshold =
        metric.change == Change::Worse && metric.ratio.is_some_and(|r| is_too_much(r.value));
    let hosts = metric.hosts.iter_mut().filter(|_| each_host);
    let roles = hosts.flat_map(|host| [&mut host.sending, &mut host.receiving]);
    for role in roles.flatten() {
        let is_significant = role.q_value.is_some_and(|q| q < SIGNIFICANT);
        role.beyond_threshold = is_significant && is_too_much(role.ratio);
    }
}

/// A difference counts when the test says so and no interval of the ratio holds 1.
fn change(metric: &MetricComparison) -> Change {
    let (Some(q), Some(ratio)) = (metric.q_value, metric.ratio) else {
        return Change::Unknown;
    };
    let holds_one = |low: f64, high: f64| low <= 1.0 && 1.0 <= high;
    let own = ratio.low.zip(ratio.high);
    let intervals = [own, metric.ratio_over_hosts].into_iter().flatten();
    if q >= SIGNIFICANT
        || intervals
            .into_iter()
            .any(|(low, high)| holds_one(low, high))
    {
        Change::None
    } else if (ratio.value > 1.0) == metric.metric.more_is_better() {
        Change::Better
    } else {
        Change::Worse
    }
}

fn metrics(stages: &[StageComparison]) -> impl Iterator<Item = &MetricComparison> {
    stages.iter().flat_map(|stage| &stage.metrics)
}

fn side(name: String, analysis: &Analysis) -> Side {
    let run = &analysis.run;
    let basis = &analysis.basis;
    Side {
        name,
        run_id: run.id.clone(),
        scenario: run.scenario.name.clone(),
        started_unix_ns: run.started_unix_ns,
        hosts: run.inventory.hosts.len() as u32,
        nic_bits_per_sec: basis.nic_bits_per_sec,
        nic_source: basis.nic_source.clone(),
        ceiling_bits_per_sec: basis.nic_bits_per_sec.map(|nic| nic * basis.efficiency),
    }
}
