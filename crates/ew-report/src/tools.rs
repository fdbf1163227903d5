//! Tools side by side as tables, the same in every view: one of figures, one of what they mean.

use crate::figures::Figures;
use crate::words::{MISSING, one_line, or_missing};
use ew_model::Analysis;
use ew_model::analysis::Estimate;
use ew_model::tools::{Standing, ToolComparison, ToolFigure};
use ew_model::units::{format_bits_per_sec, format_duration_ns};

const HELD_AGAINST: &str = "The engine's: its figure of the same kind (rate, median, mean or least round trip), which the tool's is held against; \
     all are medians over repetitions, with their 95 % intervals.";

/// None in a run of the engine alone.
pub(crate) fn tables(analysis: &Analysis) -> Vec<Figures> {
    if analysis.tools.is_empty() {
        return Vec::new();
    }
    vec![side_by_side(analysis), meanings(analysis)]
}

fn side_by_side(analysis: &Analysis) -> Figures {
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
            "throughput",
            "a second",
            "time as told",
            "which",
            "round trip",
            "the engine's",
            "samples",
        ],
        rows: analysis.tools.iter().flat_map(rows).collect(),
        left: 3,
        notes: std::iter::once(HELD_AGAINST.to_owned())
            .chain(analysis.tools.iter().flat_map(notes))
            .collect(),
    }
}

fn row(comparison: &ToolComparison, figure: &ToolFigure) -> Vec<String> {
    let samples = figure
        .bits_per_sec
        .or(figure.time_ns)
        .map(|estimate| estimate.samples);
    vec![
        comparison.kind.name().into(),
        figure.tool.name().into(),
        standing(&figure.standing),
        with_interval(figure.bits_per_sec, format_bits_per_sec),
        or_missing(figure.transactions_per_sec, |per_second| {
            format!("{:.0}", per_second.value)
        }),
        with_interval(figure.time_ns, |ns| format_duration_ns(ns as u64)),
        figure.statistic.clone(),
        with_interval(figure.round_trip_ns, |ns| format_duration_ns(ns as u64)),
        with_interval(figure.engines, |value| match comparison.kind.is_bulk() {
            true => format_bits_per_sec(value),
            false => format_duration_ns(value as u64),
        }),
        or_missing(samples, |samples| samples.to_string()),
    ]
}

fn standing(standing: &Standing) -> String {
    let percent = |difference: &f64| format!("{:+.1} %", difference * 100.0);
    match standing {
        Standing::Reference => "reference".into(),
        Standing::Agrees { difference } => format!("agrees ({})", percent(difference)),
        Standing::Differs { difference, .. } => format!("differs ({})", percent(difference)),
        Standing::Open { .. } => MISSING.into(),
    }
}

fn with_interval(estimate: Option<Estimate>, format: impl Fn(f64) -> String) -> String {
    or_missing(estimate, |estimate| match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!(
                "{} ({} to {})",
                format(estimate.value),
                format(low),
                format(high)
            )
        }
        _ => format(estimate.value),
    })
}

/// Why figures differ, or are missing.
fn notes(comparison: &ToolComparison) -> Vec<String> {
    let kind = comparison.kind.name();
    let note = |figure: &ToolFigure| {
        let tool = figure.tool.name();
        match &figure.standing {
            Standing::Differs { reasons, .. } if reasons.is_empty() => Some(format!(
                "{kind}, {tool}: nothing that the tools fix or tell explains the difference"
            )),
            Standing::Differs { reasons, .. } => Some(format!(
                "{kind}, {tool}: known to be different: {}",
                reasons.join("; ")
            )),
            Standing::Open { reason } => Some(format!("{kind}, {tool}: {}", one_line(reason))),
            Standing::Reference | Standing::Agrees { .. } => None,
        }
    };
    comparison.figures.iter().filter_map(note).collect()
}

fn meanings(analysis: &Analysis) -> Figures {
    let rows = analysis.tools.iter().flat_map(|comparison| {
        let figures = comparison.figures.iter();
        figures.map(|figure| {
            let (kind, tool) = (comparison.kind.name(), figure.tool.name());
            vec![kind.to_owned(), tool.to_owned(), figure.meaning.join("; ")]
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
