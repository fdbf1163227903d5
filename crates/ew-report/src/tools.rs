//! Tools side by side as tables, the same in every view: one of figures, one of what they mean.

use crate::catalogue::tools::{differences, meaning, open_reason, statistic};
use crate::figures::Figures;
use crate::words::{MISSING, one_line, or_missing};
use ew_model::analysis::Estimate;
use ew_model::tools::{Standing, ToolComparison, ToolFigure};
use ew_model::units::{format_bits_per_sec, format_duration_ns};
use ew_model::{Analysis, Inventory};

const HELD_AGAINST: &str = "Figures are rates or round trips, medians over repetitions. The engine's is its figure of the same kind (rate, median, mean \
     or least), which the tool's is compared with.";
const STANDINGS: &str = "Agrees: even the far ends of both intervals are within 5% of each other. Not distinguished: the intervals overlap, but are too wide to \
     say more; more repetitions make them narrower. Differs: they do not overlap.";

/// None in a run of the engine alone.
pub(crate) fn tables(analysis: &Analysis) -> Vec<Figures> {
    if analysis.tools.is_empty() {
        return Vec::new();
    }
    vec![side_by_side(analysis), meanings(analysis)]
}

fn side_by_side(analysis: &Analysis) -> Figures {
    let notes = |comparison: &ToolComparison| notes(comparison, analysis.inventory());
    let rows = |comparison: &ToolComparison| -> Vec<Vec<String>> {
        let figures = comparison.figures.iter();
        figures.map(|figure| row(comparison, figure)).collect()
    };
    Figures {
        title: "Tools side by side",
        header: vec![
            "workload",
            "tool",
            "against the engine",
            "figure",
            "95% interval",
            "the engine's",
            "as reported",
        ],
        rows: analysis.tools.iter().flat_map(rows).collect(),
        left: 3,
        notes: [HELD_AGAINST, STANDINGS]
            .map(str::to_owned)
            .into_iter()
            .chain(analysis.tools.iter().flat_map(notes))
            .collect(),
    }
}

/// A rate, or a round trip with the time that the tool reports, which may be half of it.
fn row(comparison: &ToolComparison, figure: &ToolFigure) -> Vec<String> {
    let is_bulk = comparison.kind.is_bulk();
    let words = |value: f64| match is_bulk {
        true => format_bits_per_sec(value),
        false => format_duration_ns(value as u64),
    };
    let own = match is_bulk {
        true => figure.bits_per_sec,
        false => figure.round_trip_ns,
    };
    let statistic = statistic(figure.statistic);
    let reported = figure
        .time_ns
        .map(|time| format!("{}, {statistic}", words(time.value)));
    vec![
        comparison.kind.name().into(),
        figure.tool.name().into(),
        standing(&figure.standing),
        or_missing(own, |own| words(own.value)),
        interval(own, words),
        or_missing(figure.engines, |engines| words(engines.value)),
        reported.unwrap_or_else(|| statistic.into()),
    ]
}

fn interval(estimate: Option<Estimate>, words: impl Fn(f64) -> String) -> String {
    let ends = estimate.and_then(|estimate| estimate.low.zip(estimate.high));
    or_missing(ends, |(low, high)| {
        format!("{} to {}", words(low), words(high))
    })
}

fn standing(standing: &Standing) -> String {
    let percent = |difference: &f64| format!("{:+.1}%", difference * 100.0);
    match standing {
        Standing::Reference => "reference".into(),
        Standing::Agrees { difference } => format!("agrees ({})", percent(difference)),
        Standing::NotToldApart { difference } => {
            format!("not distinguished ({})", percent(difference))
        }
        Standing::Differs { difference, .. } => format!("differs ({})", percent(difference)),
        Standing::Open { .. } => MISSING.into(),
    }
}

/// Why figures differ, or are missing.
fn notes(comparison: &ToolComparison, names: &Inventory) -> Vec<String> {
    let kind = comparison.kind.name();
    let note = |figure: &ToolFigure| {
        let tool = figure.tool.name();
        match &figure.standing {
            Standing::Differs { details, .. } if details.is_empty() => Some(format!(
                "{kind}, {tool}: nothing that the tools fix or report explains the difference"
            )),
            Standing::Differs { details, .. } => Some(format!(
                "{kind}, {tool}: known to be different: {}",
                one_line(&differences(figure.tool, details, names).join("; "))
            )),
            Standing::Open { details } => Some(format!(
                "{kind}, {tool}: {}",
                one_line(&open_reason(details))
            )),
            Standing::Reference | Standing::Agrees { .. } | Standing::NotToldApart { .. } => None,
        }
    };
    comparison.figures.iter().filter_map(note).collect()
}

fn meanings(analysis: &Analysis) -> Figures {
    let rows = analysis.tools.iter().flat_map(|comparison| {
        let figures = comparison.figures.iter();
        figures.map(|figure| {
            let (kind, tool) = (comparison.kind.name(), figure.tool.name());
            vec![
                kind.to_owned(),
                tool.to_owned(),
                meaning(&figure.facts).join("; "),
            ]
        })
    });
    Figures {
        title: "What each figure means",
        header: vec!["workload", "tool", "meaning"],
        rows: rows.collect(),
        left: 3,
        notes: Vec::new(),
    }
}
