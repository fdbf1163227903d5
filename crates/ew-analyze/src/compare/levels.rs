//! The level of a metric in each run, and how much it varies from run to run.

use super::values::{Pair, Values};
use crate::trend;
use ew_model::analysis::Estimate;
use ew_model::comparison::{Metric, RunSpread};
use ew_stats::significance::{student_t, two_sided_t};
use ew_stats::{Z_95, median};

/// With fewer degrees of freedom a spread is assumed instead: one difference is no spread.
const MIN_DEGREES: u32 = 2;

/// How much two sides differ, and whether that is chance.
pub(super) struct Tested {
    pub(super) ratio: Option<Estimate>,
    pub(super) p_value: Option<f64>,
}

/// Logarithms of one metric's level, one per run.
pub(super) struct Levels {
    base: Vec<f64>,
    other: Vec<f64>,
    history: Vec<f64>,
}

impl Levels {
    pub(super) fn of(base: &[Values], other: &[Values], history: &[Values]) -> Self {
        let compared: Vec<&Values> = base.iter().chain(other).collect();
        let all: Vec<&Values> = history.iter().chain(base.iter().take(1)).collect();
        let own = |runs: &[Values], flows: Option<&[&Pair]>| -> Vec<f64> {
            let level = |run: &Values| level(run, flows.map(|flows| (flows, &base[0])));
            runs.iter().filter_map(level).collect()
        };
        let (flows, flows_of_history) = (common(&compared), common(&all));
        Self {
            base: own(base, flows.as_deref()),
            other: own(other, flows.as_deref()),
            history: own(history, flows_of_history.as_deref()),
        }
    }

    /// Pooled over both sides and the history, each around its own level; the history's level may
    /// have changed. Assumed where that is of too few runs.
    pub(super) fn spread(&self, metric: Metric) -> RunSpread {
        let around = |levels: &[f64]| {
            let mean = mean(levels);
            let squares: f64 = levels.iter().map(|level| (level - mean).powi(2)).sum();
            (squares, levels.len().saturating_sub(1) as u32)
        };
        let sides = [around(&self.base), around(&self.other)];
        let history = trend::residual_squares(&self.history);
        let squares: f64 = sides.iter().chain([&history]).map(|(s, _)| s).sum();
        let degrees: u32 = sides.iter().chain([&history]).map(|(_, d)| d).sum();
        if degrees < MIN_DEGREES {
            return RunSpread {
                deviation: metric.assumed_run_spread(),
                degrees: None,
                history: 0,
            };
        }
        RunSpread {
            deviation: (squares / f64::from(degrees)).sqrt(),
            degrees: Some(degrees),
            history: self.history.len() as u32,
        }
    }

    /// Student's t between the sides' mean levels, with a common spread.
    pub(super) fn tested(&self, spread: &RunSpread) -> Tested {
        let (base, other) = (self.base.len() as f64, self.other.len() as f64);
        let error = spread.deviation * (1.0 / base + 1.0 / other).sqrt();
        let difference = mean(&self.other) - mean(&self.base);
        let half = quantile(spread) * error;
        Tested {
            ratio: Some(Estimate {
                value: difference.exp(),
                low: Some((difference - half).exp()),
                high: Some((difference + half).exp()),
                samples: self.base.len().min(self.other.len()) as u32,
            }),
            p_value: Some(p_value(difference, error, spread)),
        }
    }
}

impl Tested {
    /// Two runs whose flows were tested, as a difference of the networks: what runs of one network
    /// differ by comes on top of what was tested.
    pub(super) fn allowing_for(self, spread: &RunSpread) -> Self {
        let Some(ratio) = self.ratio else {
            return self;
        };
        let between = spread.deviation * std::f64::consts::SQRT_2;
        let wider = |end: f64| (end / ratio.value).ln().hypot(quantile(spread) * between);
        let within = ratio.low.zip(ratio.high);
        let within = within.map_or(0.0, |(low, high)| (high / low).ln() / (2.0 * Z_95));
        let level = p_value(ratio.value.ln(), within.hypot(between), spread);
        Self {
            ratio: Some(Estimate {
                low: ratio.low.map(|low| ratio.value * (-wider(low)).exp()),
                high: ratio.high.map(|high| ratio.value * wider(high).exp()),
                ..ratio
            }),
            p_value: self.p_value.map(|p| p.max(level)),
        }
    }
}

/// The flows that all these runs have, where that is at least half of every run's.
fn common<'v>(runs: &[&'v Values]) -> Option<Vec<&'v Pair>> {
    let (first, others) = runs.split_first()?;
    let has = |pair: &&Pair| others.iter().all(|run| run.by_pair.contains_key(*pair));
    let flows: Vec<&Pair> = first.by_pair.keys().filter(has).collect();
    let enough = |run: &&Values| 2 * flows.len() >= run.by_pair.len();
    runs.iter().all(enough).then_some(flows)
}

/// The middle over flows: of how far they are from `typical` where the flows are the same, else of
/// their own levels.
fn level(run: &Values, same: Option<(&[&Pair], &Values)>) -> Option<f64> {
    match same {
        None => median(&run.levels()),
        Some((flows, typical)) => {
            let distance = |pair: &&Pair| run.level(pair) - typical.level(pair);
            median(&flows.iter().map(distance).collect::<Vec<_>>())
        }
    }
}

fn mean(levels: &[f64]) -> f64 {
    levels.iter().sum::<f64>() / levels.len().max(1) as f64
}

fn quantile(spread: &RunSpread) -> f64 {
    spread
        .degrees
        .map_or(Z_95, |degrees| student_t(degrees as usize))
}

/// What is assumed is taken as known.
fn p_value(difference: f64, error: f64, spread: &RunSpread) -> f64 {
    if difference == 0.0 {
        return 1.0;
    }
    let degrees = spread.degrees.map_or(f64::INFINITY, f64::from);
    two_sided_t((difference / error).abs(), degrees)
}
