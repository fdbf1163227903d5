//! Two states of a network compared: the same stages, the same flows where there are any. Runs are
//! the replicates; where there is one of each, what runs of one network differ by is taken from
//! earlier runs.

mod levels;
mod metric;
mod notes;
mod outliers;
mod values;

use crate::analyze;
use crate::trend::Figure;
use ew_evidence::observations::{Observations, StageView};
use ew_model::comparison::{
    Change, Comparison, ComparisonVerdict, Metric, MetricComparison, Side, StageComparison,
};
use ew_model::run::Run;
use ew_model::{Analysis, WorkloadKind};
use thiserror::Error;
use values::Measured;

/// A difference counts when its adjusted p-value is below this.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// What may be chosen of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// What to call the two runs; else by their ids.
    pub names: Option<(String, String)>,
    /// How much worse is too much: 0.05 is 5%.
    pub threshold: Option<f64>,
    /// Whether a single host that is too much worse counts, too, and not only a whole stage.
    pub each_host: bool,
}

/// Why two runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompareError {
    /// A side was given no run.
    #[error("nothing to compare: a side has no run; name at least one of each")]
    NoRun,
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
        "nothing to compare: {run} has no figure in {stages}; `eastwest report {run}` shows why, then run it again"
    )]
    NothingMeasured {
        /// Its id.
        run: String,
        /// The common stages.
        stages: String,
    },
}

/// What is compared: runs of two states, and earlier runs that show what runs of one network differ
/// by.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Of the base state; at least one.
    pub base: &'a [Run],
    /// Of the other state; at least one.
    pub other: &'a [Run],
    /// Others of the same scenario, oldest first; may be none.
    pub history: &'a [Run],
}

/// All observations of [`Runs`].
struct Observed<'a> {
    base: Vec<Observations<'a>>,
    other: Vec<Observations<'a>>,
    history: Vec<Observations<'a>>,
}

/// Compares two states. The same runs give the same answer.
///
/// # Errors
/// [`CompareError`] when they have nothing in common, or a side has no run.
pub fn compare(runs: &Runs<'_>, options: &CompareOptions) -> Result<Comparison, CompareError> {
    let (Some(base), Some(other)) = (runs.base.first(), runs.other.first()) else {
        return Err(CompareError::NoRun);
    };
    let all = Observed {
        base: runs.base.iter().map(Observations::new).collect(),
        other: runs.other.iter().map(Observations::new).collect(),
        history: runs.history.iter().map(Observations::new).collect(),
    };
    let (a, b) = (&all.base[0], &all.other[0]);
    let matched = matched_stages(&a.stages, &b.stages);
    refuse_unlike(a, b, &matched)?;
    let mut stages: Vec<StageComparison> = matched
        .iter()
        .map(|(ours, theirs)| stage(&all, ours, theirs))
        .filter(|stage| !stage.metrics.is_empty())
        .collect();
    if stages.is_empty() {
        return Err(nothing_measured(base, other, &matched));
    }
    judge(&mut stages, options);
    let analyses = (analyze(base), analyze(other));
    let (base_name, other_name) = options.names.clone().unzip();
    let mut notes = notes::of_runs(&analyses.0, &analyses.1);
    notes.extend(notes::of_replicates(runs.base, runs.other));
    notes.extend(notes::of_spread(&stages));
    Ok(Comparison {
        base: side(base_name, runs.base, &analyses.0),
        other: side(other_name, runs.other, &analyses.1),
        verdict: verdict(&stages),
        threshold: options.threshold,
        not_compared: notes::not_compared(a, b, &matched),
        notes,
        stages,
    })
}

fn verdict(stages: &[StageComparison]) -> ComparisonVerdict {
    let is_beyond =
        |m: &&MetricComparison| m.beyond_threshold || m.hosts_beyond_threshold().next().is_some();
    let beyond: Vec<&MetricComparison> = metrics(stages).filter(is_beyond).collect();
    match beyond.iter().any(|metric| metric.is_replicated()) {
        true => ComparisonVerdict::Worse,
        false if beyond.is_empty() => ComparisonVerdict::NotWorse,
        false => ComparisonVerdict::Different,
    }
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
        base_stages: notes::stage_list(&a.stages),
        other: b.run.manifest.id.clone(),
        other_stages: notes::stage_list(&b.stages),
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

fn stage(all: &Observed<'_>, ours: &StageView<'_>, theirs: &StageView<'_>) -> StageComparison {
    let workload = &ours.stage.workload;
    let compared = metrics_of(workload.kind).iter();
    let base = measured(&all.base, ours);
    let other = measured(&all.other, theirs);
    let history = measured(&all.history, ours);
    StageComparison {
        name: ours.stage.name.clone(),
        pattern: ours.stage.pattern.name().into(),
        workload: workload.label(),
        notes: notes::of_stages(ours.stage, theirs.stage),
        metrics: compared
            .filter_map(|metric| metric::compare(*metric, &base, &other, &history))
            .collect(),
    }
}

/// The stage that measures the same in each of the runs that have one.
fn measured<'v, 'a>(runs: &'v [Observations<'a>], like: &StageView<'_>) -> Vec<Measured<'v, 'a>> {
    let is_same = |view: &&StageView<'_>| {
        view.stage.name == like.stage.name && view.stage.workload.kind == like.stage.workload.kind
    };
    let of_run = |run: &'v Observations<'a>| Some((run, run.stages.iter().find(is_same)?));
    runs.iter().filter_map(of_run).collect()
}

/// A run's figures as a trend has them: every metric of every stage, as the median over flows and
/// rounds.
#[must_use]
pub fn figures(run: &Run) -> Vec<Figure> {
    let observations = Observations::new(run);
    let mut figures = Vec::new();
    for view in &observations.stages {
        for metric in metrics_of(view.stage.workload.kind) {
            let values = values::Values::of(*metric, (&observations, view)).all();
            figures.extend(ew_stats::median(&values).map(|value| Figure {
                stage: view.stage.name.clone(),
                metric: *metric,
                value,
            }));
        }
    }
    figures
}

/// What may be compared of a kind of traffic, the most informative first; what a run does not
/// contain is skipped.
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

/// Adjusts all p-values for their number, and classifies each difference.
fn judge(stages: &mut [StageComparison], options: &CompareOptions) {
    let p_values: Vec<Option<f64>> = metrics(stages).map(|m| m.p_value).collect();
    let q_values = ew_stats::significance::adjusted_where_known(&p_values);
    let all = stages.iter_mut().flat_map(|stage| &mut stage.metrics);
    for (metric, q_value) in all.zip(q_values) {
        metric.q_value = q_value;
        metric.change = change(metric);
        if let Some(max) = options.threshold {
            apply_threshold(max, metric, options.each_host);
        }
    }
}

/// Marks what differs, and is worse by more than `max`: the metric, and the hosts where these are
/// asked for.
fn apply_threshold(max: f64, metric: &mut MetricComparison, each_host: bool) {
    let kind = metric.metric;
    let is_too_much = |ratio: f64| kind.worsening(ratio) > max;
    let differs = matches!(metric.change, Change::Worse | Change::Different);
    metric.beyond_threshold = differs && metric.ratio.is_some_and(|r| is_too_much(r.value));
    let hosts = metric.hosts.iter_mut().filter(|_| each_host);
    let roles = hosts.flat_map(|host| [&mut host.sending, &mut host.receiving]);
    for role in roles.flatten() {
        let is_significant = role.q_value.is_some_and(|q| q < SIGNIFICANT);
        // A level that moved for all is the stage's change, not the host's.
        let relative = role.relative.is_some_and(is_too_much);
        role.beyond_threshold = is_significant && relative && is_too_much(role.ratio);
    }
}

/// A difference counts when the test is significant and no interval of the ratio contains 1.
/// Without runs enough it is one of the runs, not of the networks.
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
    } else if !metric.is_replicated() {
        Change::Different
    } else if (ratio.value > 1.0) == metric.metric.more_is_better() {
        Change::Better
    } else {
        Change::Worse
    }
}

fn metrics(stages: &[StageComparison]) -> impl Iterator<Item = &MetricComparison> {
    stages.iter().flat_map(|stage| &stage.metrics)
}

fn side(given_name: Option<String>, runs: &[Run], analysis: &Analysis) -> Side {
    let run = &analysis.run;
    let basis = &analysis.basis;
    Side {
        given_name,
        run_ids: runs.iter().map(|run| run.manifest.id.clone()).collect(),
        scenario: run.scenario.name.clone(),
        started_unix_ns: run.started_unix_ns,
        hosts: run.inventory.hosts.len() as u32,
        nic_bits_per_sec: basis.nic_bits_per_sec,
        nic_rate_source: basis.nic_rate_source,
        ceiling_bits_per_sec: basis.nic_bits_per_sec.map(|nic| nic * basis.efficiency),
    }
}
