//! The answer in one sentence.

use super::worsening;
use ew_model::comparison::{Change, MetricComparison, StageComparison};

/// From this ratio on, "times" says more than per cent.
const TIMES: f64 = 2.0;
/// So many differences are told.
const TOLD: usize = 3;

/// What got worse beyond the threshold; else the greatest differences; else that there is none.
pub(super) fn sentence(stages: &[StageComparison], threshold: Option<f64>) -> String {
    let mut changed: Vec<(&StageComparison, &MetricComparison)> = stages
        .iter()
        .flat_map(|stage| stage.metrics.iter().map(move |metric| (stage, metric)))
        .collect();
    let tested = changed.iter().any(|(_, m)| m.change != Change::Unknown);
    let is_worse = changed.iter().any(|(_, m)| m.beyond_threshold);
    changed.retain(|(_, m)| match is_worse {
        true => m.beyond_threshold,
        false => matches!(m.change, Change::Better | Change::Worse),
    });
    changed.sort_by(|(_, x), (_, y)| effect(y).total_cmp(&effect(x)));
    let more = changed.len().saturating_sub(TOLD);
    let mut parts: Vec<String> = changed.iter().take(TOLD).map(|(s, m)| one(s, m)).collect();
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    let list = parts.join("; ");
    match (is_worse, list.is_empty(), threshold) {
        (true, _, Some(most)) => format!("Worse by more than {}: {list}", percent(most)),
        (_, true, _) if !tested => "Too little was measured to tell a difference".into(),
        (_, true, _) => "No significant difference".into(),
        (_, false, Some(most)) => format!("Nothing worse by more than {}: {list}", percent(most)),
        (_, false, None) => list,
    }
}

/// "throughput in `mesh` is 9.87 times as high", "median latency in `rtt` is 4.2 % lower".
fn one(stage: &StageComparison, metric: &MetricComparison) -> String {
    let ratio = metric.ratio.map_or(1.0, |ratio| ratio.value);
    let what = format!("{} in `{}`", metric.metric.name(), stage.name);
    let word = if ratio > 1.0 { "higher" } else { "lower" };
    if ratio >= TIMES {
        format!("{what} is {ratio:.2} times as high")
    } else {
        format!("{what} is {} {word}", percent((ratio - 1.0).abs()))
    }
}

fn effect(metric: &MetricComparison) -> f64 {
    match metric.beyond_threshold {
        true => worsening(metric),
        false => metric.ratio.map_or(0.0, |ratio| ratio.value.ln().abs()),
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if (p - p.round()).abs() < 0.05 || p >= 10.0 => format!("{p:.0} %"),
        p => format!("{p:.1} %"),
    }
}
