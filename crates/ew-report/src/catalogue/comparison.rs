//! The answer of a comparison in one sentence.

mod notes;
mod worded;

pub(crate) use notes::{no_conclusion, not_compared, note, stage_note};
pub(crate) use worded::{WordedComparison, worded_comparison};

use ew_model::comparison::{Change, Comparison, MetricComparison, Side, StageComparison};
use std::cmp::Ordering;

/// From this ratio on, "times" says more than per cent.
const TIMES: f64 = 2.0;
/// Less than this share is not reported in figures.
const MIN_REPORTED: f64 = 0.001;
/// So many differences are reported.
const REPORTED: usize = 3;

/// A figure that differs.
struct Difference {
    /// "throughput in `mesh`", "throughput of h3 as sender in `mesh`".
    what: String,
    ratio: f64,
    /// Whether it is what the stage is about: its throughput, its median latency.
    is_first: bool,
}

/// What got worse beyond the threshold, whole stages before hosts; else the largest differences,
/// what stages are about before their other figures; else that there is none.
#[must_use]
pub fn comparison_sentence(comparison: &Comparison) -> String {
    let stages = &comparison.stages;
    let mut changed = of_stages(stages, |metric| metric.beyond_threshold);
    changed.extend(worse_hosts(stages));
    let is_worse = !changed.is_empty();
    if !is_worse {
        changed = of_stages(stages, |metric| is_difference(metric.change));
    }
    let more = changed.len().saturating_sub(REPORTED);
    let mut parts: Vec<String> = changed
        .iter()
        .take(REPORTED)
        .map(Difference::words)
        .collect();
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    let list = parts.join("; ");
    let all = || stages.iter().flat_map(|stage| &stage.metrics);
    let is_tested = all().any(|metric| metric.change != Change::Unknown);
    let is_replicated = all().any(MetricComparison::is_replicated);
    let word = if is_replicated { "Worse" } else { "Different" };
    match (is_worse, list.is_empty(), comparison.threshold) {
        (true, _, Some(max)) => format!("{word} by more than {}: {list}", percent(max)),
        (_, true, _) if !is_tested => "Too little was measured to show a difference".into(),
        (_, true, _) if is_replicated => "No significant difference".into(),
        (_, true, _) => "No difference beyond chance and the run-to-run spread".into(),
        (_, false, Some(max)) => format!("Nothing worse by more than {}: {list}", percent(max)),
        (_, false, None) => list,
    }
}

/// As asked; else the run's id, and of several the first one's and how many more.
pub(crate) fn side_name(side: &Side) -> String {
    match (&side.given_name, side.run_ids.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, []) => String::new(),
        (None, [run]) => run.clone(),
        (None, [first, more @ ..]) => format!("{first} and {} more", more.len()),
    }
}

fn is_difference(change: Change) -> bool {
    matches!(change, Change::Better | Change::Worse | Change::Different)
}

fn of_stages(
    stages: &[StageComparison],
    is_meant: impl Fn(&MetricComparison) -> bool,
) -> Vec<Difference> {
    let mut reported = Vec::new();
    for stage in stages {
        let metrics = stage.metrics.iter().enumerate();
        let meant = metrics.filter(|(_, metric)| is_meant(metric));
        reported.extend(meant.map(|(index, metric)| Difference {
            what: format!("{} in `{}`", metric.metric.name(), stage.name),
            ratio: metric.ratio.map_or(1.0, |ratio| ratio.value),
            is_first: index == 0,
        }));
    }
    reported.sort_by(Difference::most_telling_first);
    reported
}

/// Hosts of stages that are not worse as a whole: in the others they only follow.
fn worse_hosts(stages: &[StageComparison]) -> Vec<Difference> {
    let mut worse = Vec::new();
    for stage in stages {
        for metric in stage.metrics.iter().filter(|m| !m.beyond_threshold) {
            let name = metric.metric.name();
            let hosts = metric.hosts_beyond_threshold();
            worse.extend(hosts.map(|(host, role, at)| Difference {
                what: format!("{name} of {host} as {role} in `{}`", stage.name),
                ratio: at.ratio,
                is_first: false,
            }));
        }
    }
    worse.sort_by(Difference::most_telling_first);
    worse
}

impl Difference {
    /// What a stage is about, and then the largest.
    fn most_telling_first(&self, other: &Self) -> Ordering {
        let effect = |difference: &Self| difference.ratio.ln().abs();
        let by_kind = other.is_first.cmp(&self.is_first);
        by_kind.then_with(|| effect(other).total_cmp(&effect(self)))
    }

    /// "throughput in `mesh` is 9.87 times as high", "median latency in `rtt` is 4.2% lower".
    fn words(&self) -> String {
        let Self { what, ratio, .. } = self;
        let word = if *ratio > 1.0 { "higher" } else { "lower" };
        let share = (ratio - 1.0).abs();
        if *ratio >= TIMES {
            format!("{what} is {ratio:.2} times as high")
        } else if share < MIN_REPORTED {
            // Steady figures differ by more than chance, and by next to nothing.
            format!("{what} is less than {} {word}", percent(MIN_REPORTED))
        } else {
            format!("{what} is {} {word}", percent(share))
        }
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if (p - p.round()).abs() < 0.05 || p >= 10.0 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}
