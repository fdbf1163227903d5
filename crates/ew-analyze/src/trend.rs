//! Figures over many runs: where their level changed, and how much they vary around it.
//!
//! A series is cut where the squares around the two sides' means are minimal. The cut is kept when
//! so much would be seen in few enough of the series in random order (a permutation test: no
//! distribution is assumed, only that runs of one network could as well have come in another
//! order). Then the two parts are analysed in the same way (binary segmentation, Scott and Knott
//! 1974).

use ew_model::comparison::{Change, Metric};
use ew_model::trend::{ChangePoint, Trend, TrendPoint};
use ew_stats::Dice;
use std::collections::BTreeMap;

/// A level is one of at least so many runs: one or two off are not a change.
const MIN_SEGMENT: usize = 3;
/// Of all series of a history together, one in twenty histories without a change may show one.
const SIGNIFICANCE: f64 = 0.05;
/// So many random orders for each possible false alarm make the p-value exact enough.
const ORDERS_PER_ALARM: f64 = 20.0;
/// More random orders than this cost more than they are worth.
const MAX_ORDERS: usize = 20_000;
/// The same series give the same changes.
const SEED: u64 = 0x7e4d_0017;

/// One figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The stage's name.
    pub stage: String,
    /// What was measured.
    pub metric: Metric,
    /// In the metric's unit: bits per second, ns, a share, or a number a second.
    pub value: f64,
}

/// One run's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigures {
    /// Its id.
    pub run_id: String,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// What it measured.
    pub figures: Vec<Figure>,
}

/// Every metric of every stage over runs, oldest first, each with its changes of level. The
/// significance is shared by all that are `wanted`. Runs that did not measure one have no value
/// there.
#[must_use]
pub fn trends(runs: &[RunFigures], wanted: impl Fn(&str, Metric) -> bool) -> Vec<Trend> {
    let mut series: BTreeMap<(&str, Metric), Vec<Option<f64>>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for figure in run.figures.iter().filter(|f| wanted(&f.stage, f.metric)) {
            let key = (figure.stage.as_str(), figure.metric);
            let values = series.entry(key).or_insert_with(|| vec![None; runs.len()]);
            values[index] = Some(figure.value);
        }
    }
    let long_enough =
        |values: &&Vec<Option<f64>>| values.iter().flatten().count() >= 2 * MIN_SEGMENT;
    let tested = series.values().filter(long_enough).count().max(1);
    let significance = SIGNIFICANCE / tested as f64;
    let trend = |((stage, metric), values): ((&str, Metric), Vec<Option<f64>>)| {
        trend(runs, stage, metric, &values, significance)
    };
    series.into_iter().map(trend).collect()
}

fn trend(
    runs: &[RunFigures],
    stage: &str,
    metric: Metric,
    values: &[Option<f64>],
    significance: f64,
) -> Trend {
    let measured: Vec<usize> = (0..values.len()).filter(|i| values[*i].is_some()).collect();
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let cuts = changes(
        &known.iter().map(|v| logarithm(*v)).collect::<Vec<_>>(),
        significance,
    );
    let ends: Vec<usize> = cuts.iter().map(|cut| cut.at).chain([known.len()]).collect();
    let mut begin = 0;
    let mut changes = Vec::new();
    for (cut, end) in cuts.iter().zip(&ends[1..]) {
        let before = geometric_mean(&known[begin..cut.at]);
        let after = geometric_mean(&known[cut.at..*end]);
        changes.push(ChangePoint {
            at: measured[cut.at] as u32,
            run_id: runs[measured[cut.at]].run_id.clone(),
            before,
            after,
            p_value: cut.p_value,
            change: match (after > before) == metric.more_is_better() {
                true => Change::Better,
                false => Change::Worse,
            },
        });
        begin = cut.at;
    }
    let point = |(run, value): (&RunFigures, &Option<f64>)| TrendPoint {
        run_id: run.run_id.clone(),
        started_unix_ns: run.started_unix_ns,
        value: *value,
    };
    Trend {
        stage: stage.to_owned(),
        metric,
        points: runs.iter().zip(values).map(point).collect(),
        changes,
    }
}

/// A level that ends before `at`, where another one begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Share of random orders that would show as much.
    pub p_value: f64,
}

/// Where the level of a series changes, in order; where it does not, a change is seen in at most
/// the share `significance` of series.
#[must_use]
pub fn changes(levels: &[f64], significance: f64) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut parts = vec![(0, levels.len())];
    // Each part is cut into smaller ones, so this ends.
    while let Some((begin, end)) = parts.pop() {
        if let Some(cut) = cut(&levels[begin..end], significance) {
            let at = begin + cut.at;
            cuts.push(Cut { at, ..cut });
            parts.extend([(begin, at), (at, end)]);
        }
    }
    cuts.sort_by_key(|cut| cut.at);
    cuts
}

/// The squares of a series around its levels, and their degrees of freedom.
pub(crate) fn residual_squares(levels: &[f64]) -> (f64, u32) {
    let cuts = changes(levels, SIGNIFICANCE);
    let begins = [0].into_iter().chain(cuts.iter().map(|cut| cut.at));
    let ends = cuts.iter().map(|cut| cut.at).chain([levels.len()]);
    let (mut squares, mut degrees) = (0.0, 0);
    for (begin, end) in begins.zip(ends) {
        let part = &levels[begin..end];
        let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
        squares += part.iter().map(|level| (level - mean).powi(2)).sum::<f64>();
        degrees += part.len().saturating_sub(1) as u32;
    }
    (squares, degrees)
}

fn cut(levels: &[f64], significance: f64) -> Option<Cut> {
    let (at, explained) = best_cut(levels)?;
    let orders = ((ORDERS_PER_ALARM / significance) as usize).min(MAX_ORDERS);
    let max = (significance * (orders + 1) as f64) as usize;
    let mut dice = Dice(SEED);
    let mut shuffled = levels.to_vec();
    let mut as_much = 1;
    for _ in 0..orders {
        for i in (1..shuffled.len()).rev() {
            shuffled.swap(i, dice.below(i + 1));
        }
        // Sums in another order differ in their last digits.
        let is_as_much = best_cut(&shuffled).is_some_and(|(_, by)| by >= explained * (1.0 - 1e-9));
        as_much += usize::from(is_as_much);
        if as_much > max {
            return None;
        }
    }
    let p_value = as_much as f64 / (orders + 1) as f64;
    Some(Cut { at, p_value })
}

/// The cut after which the squares around the two means are minimal: index, and how much less they
/// are than around one mean. `None` when the series is too short or does not vary.
fn best_cut(levels: &[f64]) -> Option<(usize, f64)> {
    let n = levels.len();
    if n < 2 * MIN_SEGMENT {
        return None;
    }
    let total: f64 = levels.iter().sum();
    let mut before: f64 = levels[..MIN_SEGMENT - 1].iter().sum();
    let mut best = None;
    let mut max = f64::EPSILON * levels.iter().map(|level| level * level).sum::<f64>();
    for at in MIN_SEGMENT..=n - MIN_SEGMENT {
        before += levels[at - 1];
        let (left, right) = (at as f64, (n - at) as f64);
        let apart = before / left - (total - before) / right;
        let explained = apart * apart * left * right / n as f64;
        if explained > max {
            max = explained;
            best = Some((at, explained));
        }
    }
    best
}

/// Zero, a share of nothing delivered, has none.
fn logarithm(value: f64) -> f64 {
    value.max(1e-9).ln()
}

fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| logarithm(*value)).sum();
    (sum / values.len().max(1) as f64).exp()
}
