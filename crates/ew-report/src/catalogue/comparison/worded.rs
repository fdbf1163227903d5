//! A comparison with its sentences, as its JSON document holds it.

use super::{comparison_sentence, no_conclusion, not_compared, note, side_name, stage_note};
use crate::catalogue::basis::nic_source;
use ew_model::comparison::{Comparison, MetricComparison, Side, StageComparison};
use serde::Serialize;

/// A comparison, with what a person reads of it.
#[derive(Serialize)]
pub(crate) struct WordedComparison<'a> {
    /// The answer in one sentence.
    sentence: String,
    /// As facts.
    #[serde(flatten)]
    comparison: &'a Comparison,
    base: WordedSide<'a>,
    other: WordedSide<'a>,
    stages: Vec<WordedStage<'a>>,
    /// Stages of one run only, or that cannot be compared, each with the reason.
    not_compared: Vec<String>,
    /// What else differs and may be the cause, or limits the conclusions.
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct WordedSide<'a> {
    /// What to call it.
    name: String,
    #[serde(flatten)]
    side: &'a Side,
    /// Where its line rate came from.
    nic_source: &'static str,
}

#[derive(Serialize)]
struct WordedStage<'a> {
    #[serde(flatten)]
    stage: &'a StageComparison,
    /// What differs in how it was measured.
    remarks: Vec<String>,
    metrics: Vec<WordedMetric<'a>>,
}

#[derive(Serialize)]
struct WordedMetric<'a> {
    #[serde(flatten)]
    metric: &'a MetricComparison,
    /// Why there is no conclusion.
    reason: Option<String>,
}

/// The comparison with its sentences.
pub(crate) fn worded_comparison(comparison: &Comparison) -> WordedComparison<'_> {
    WordedComparison {
        sentence: comparison_sentence(comparison),
        comparison,
        base: worded_side(&comparison.base),
        other: worded_side(&comparison.other),
        stages: comparison.stages.iter().map(worded_stage).collect(),
        not_compared: comparison.not_compared.iter().map(not_compared).collect(),
        remarks: comparison.notes.iter().map(note).collect(),
    }
}

fn worded_side(side: &Side) -> WordedSide<'_> {
    WordedSide {
        name: side_name(side),
        side,
        nic_source: nic_source(side.nic_rate_source),
    }
}

fn worded_stage(stage: &StageComparison) -> WordedStage<'_> {
    let worded = |metric| WordedMetric {
        metric,
        reason: no_conclusion(metric),
    };
    WordedStage {
        stage,
        remarks: stage.notes.iter().map(stage_note).collect(),
        metrics: stage.metrics.iter().map(worded).collect(),
    }
}
