//! A comparison as one page: bars with their intervals, and the tables.

use super::lines::{notes, sides, status};
use super::tables::{change_words, estimated, probability, ratio_words, tables};
use crate::catalogue::comparison::{comparison_sentence, side_name};
use crate::error::ReportError;
use crate::html::render_page;
use crate::words::one_line;
use ew_model::analysis::Estimate;
use ew_model::comparison::{Change, Comparison, ComparisonVerdict, MetricComparison};
use serde::Serialize;

#[derive(Serialize)]
struct Page {
    title: String,
    style: &'static str,
    status: &'static str,
    status_class: &'static str,
    sentence: String,
    sides: [String; 2],
    names: [String; 2],
    charts: Vec<Chart>,
    tables: Vec<TableView>,
    notes: Vec<String>,
    version: &'static str,
}

/// The bars of a metric.
#[derive(Serialize)]
struct Chart {
    stage: String,
    metric: &'static str,
    class: &'static str,
    change: String,
    ratio: String,
    probability: String,
    bars: Vec<Bar>,
}

/// A bar: lengths as per cent of the chart's width.
#[derive(Serialize)]
struct Bar {
    letter: &'static str,
    text: String,
    width: String,
    /// Begin and length of the interval.
    interval: Option<(String, String)>,
}

#[derive(Serialize)]
struct TableView {
    title: String,
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    left: usize,
    notes: Vec<String>,
}

pub(super) fn render(comparison: &Comparison) -> Result<String, ReportError> {
    let page = Page {
        title: format!(
            "{} against {}",
            one_line(&side_name(&comparison.other)),
            one_line(&side_name(&comparison.base))
        ),
        style: concat!(
            include_str!("../html/report.css"),
            include_str!("compare.css")
        ),
        status: status(comparison),
        status_class: status_class(comparison),
        sentence: one_line(&comparison_sentence(comparison)).replace('`', ""),
        sides: sides(comparison),
        names: [&comparison.base, &comparison.other].map(|side| one_line(&side_name(side))),
        charts: charts(comparison),
        tables: tables(comparison)
            .into_iter()
            .map(|table| TableView {
                title: table.title,
                header: table.header,
                rows: table.rows,
                left: table.left,
                notes: table.notes,
            })
            .collect(),
        notes: notes(comparison)
            .iter()
            .map(|note| note.replace('`', ""))
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
    };
    render_page("compare.html", include_str!("compare.html"), &page)
}

fn status_class(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.threshold) {
        (ComparisonVerdict::Worse | ComparisonVerdict::Different, _) => "bad",
        (ComparisonVerdict::NotWorse, Some(_)) => "good",
        (ComparisonVerdict::NotWorse, None) => "open",
    }
}

fn charts(comparison: &Comparison) -> Vec<Chart> {
    let mut charts = Vec::new();
    for stage in &comparison.stages {
        for metric in &stage.metrics {
            charts.push(Chart {
                stage: one_line(&stage.name),
                metric: metric.metric.name(),
                class: match metric.change {
                    Change::Better => "good",
                    Change::Worse => "bad",
                    Change::Different | Change::None | Change::Unknown => "open",
                },
                change: change_words(metric, comparison.threshold),
                ratio: ratio_words(metric.ratio.as_ref()),
                probability: probability(metric.q_value),
                bars: bars(metric),
            });
        }
    }
    charts
}

fn bars(metric: &MetricComparison) -> Vec<Bar> {
    let medians = [("A", &metric.base.median), ("B", &metric.other.median)];
    let ends = medians
        .iter()
        .flat_map(|(_, e)| [e.value, e.high.unwrap_or(e.value)]);
    let max = ends.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let share = |value: f64| format!("{:.2}", (100.0 * value / max).clamp(0.0, 100.0));
    let interval = |e: &Estimate| {
        let (low, high) = e.low.zip(e.high)?;
        Some((share(low), share(high - low)))
    };
    let bar = |(letter, median): (&'static str, &Estimate)| Bar {
        letter,
        text: estimated(metric.metric, median),
        width: share(median.value),
        interval: interval(median),
    };
    medians.into_iter().map(bar).collect()
}
