//! Sweeps over message sizes: the stages of a test with `sizes` as one curve, what it amounts to,
//! and where it breaks.

mod breaks;
mod points;
mod shape;

use ew_evidence::observations::{Observations, StageView};
use ew_model::sweep::SweepAnalysis;
use points::Measured;

/// All sweeps, in the plan's order.
pub(crate) fn sweeps(observations: &Observations<'_>) -> Vec<SweepAnalysis> {
    let mut names: Vec<&str> = Vec::new();
    for stage in &observations.stages {
        names.extend(
            stage
                .stage
                .sweep
                .as_deref()
                .filter(|name| !names.contains(name)),
        );
    }
    let sweep = |name: &str| {
        let mut stages: Vec<&StageView<'_>> = observations
            .stages
            .iter()
            .filter(|stage| stage.stage.sweep.as_deref() == Some(name))
            .collect();
        stages.sort_by_key(|stage| stage.stage.workload.message_bytes);
        sweep(name, &stages)
    };
    names.into_iter().filter_map(sweep).collect()
}

/// `None` without stages.
fn sweep(name: &str, stages: &[&StageView<'_>]) -> Option<SweepAnalysis> {
    let workload = &stages.first()?.stage.workload;
    let points = stages.iter().map(|stage| points::point(stage)).collect();
    let curve: Vec<Measured> = stages
        .iter()
        .filter_map(|stage| points::measured(stage))
        .collect();
    let timers = breaks::timers(&curve, workload);
    let clean = breaks::without(&curve, &timers);
    let line = shape::line(&clean);
    let (half_performance, half_note) = shape::half_performance(&clean, line);
    let (saturation, end_note) = shape::saturation(&clean);
    let mut steps = breaks::steps(&clean, workload);
    steps.extend(timers);
    steps.sort_by_key(|step| (step.from_bytes, step.to_bytes));
    Some(SweepAnalysis {
        name: name.to_owned(),
        workload: workload.label(),
        kind: workload.kind,
        points,
        half_performance,
        saturation,
        steps,
        notes: half_note.into_iter().chain(end_note).collect(),
    })
}

#[cfg(test)]
mod tests;
