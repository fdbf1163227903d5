//! A figure over many runs. Made by `ew-analyze`, shown by `ew-report`, stored nowhere.

use crate::comparison::{Change, Metric};
use serde::Serialize;

/// One metric of a stage over runs, with its changes of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// The stage's name.
    pub stage: String,
    /// What was measured.
    pub metric: Metric,
    /// One per run, oldest first.
    pub points: Vec<TrendPoint>,
    /// Where the level changed, oldest first.
    pub changes: Vec<ChangePoint>,
}

/// A run in a trend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The run.
    pub run_id: String,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// Median over the stage's flows and rounds, in the metric's unit. `None`: not measured.
    pub value: Option<f64>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Index of the first run of the new level.
    pub at: u32,
    /// That run.
    pub run_id: String,
    /// The level before: geometric mean over its runs.
    pub before: f64,
    /// The level from this run on.
    pub after: f64,
    /// Share of random orders of the runs that would show as much.
    pub p_value: f64,
    /// [`Change::Better`] or [`Change::Worse`].
    pub change: Change,
}

impl ChangePoint {
    /// The new level over the one before.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

impl Trend {
    /// The newest change, where it is to the worse: what is so today is worse than it was.
    #[must_use]
    pub fn regression(&self) -> Option<&ChangePoint> {
        let newest = self.changes.last()?;
        (newest.change == Change::Worse).then_some(newest)
    }
}
