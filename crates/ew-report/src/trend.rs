//! Figures over runs, for the terminal and for programs.

use crate::compare::value;
use crate::error::ReportError;
use crate::format::TextStyle;
use crate::table::{table, wrap};
use crate::text::Ink;
use crate::words;
use crate::words::{MISSING, one_line, plural};
use ew_model::comparison::Change;
use ew_model::trend::{ChangePoint, Trend};
use serde::Serialize;

/// Version of the JSON document's layout.
const SCHEMA_VERSION: u32 = 1;
/// From the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One line per series: its runs as bars, the newest value, and every change of level.
#[must_use]
pub fn trends_text(trends: &[Trend], style: &TextStyle) -> String {
    let width = style.width.max(40);
    let ink = Ink { color: style.color };
    let header = ["stage", "metric", "runs", "newest", "oldest to newest"];
    let rows: Vec<Vec<String>> = trends.iter().map(row).collect();
    let mut out = format!("{}\n", ink.bold(&headline(trends)));
    out.push('\n');
    out.push_str(&table(&header, &rows, 2, width));
    for trend in trends {
        for change in &trend.changes {
            let words = change_words(trend, change);
            let line = wrap(&words, width, "- ");
            out.push_str(&match change.change {
                Change::Worse => ink.red(line.trim_end()) + "\n",
                _ => line,
            });
        }
    }
    out
}

/// "Worse since run 20261122-...: throughput in `mesh` is 10% lower".
fn headline(trends: &[Trend]) -> String {
    let worse = trends.iter().filter_map(|t| Some((t, t.regression()?)));
    let newest = worse.max_by_key(|(_, change)| change.at);
    match newest {
        Some((trend, change)) => format!("Worse: {}", change_words(trend, change)),
        None if trends.iter().all(|trend| trend.changes.is_empty()) => {
            let runs = trends.first().map_or(0, |trend| trend.points.len());
            format!("No change of level over {}", plural(runs, "run"))
        }
        None => "No change to the worse".to_owned(),
    }
}

fn row(trend: &Trend) -> Vec<String> {
    let values: Vec<f64> = trend
        .points
        .iter()
        .filter_map(|point| point.value)
        .collect();
    let newest = values
        .last()
        .map_or_else(|| MISSING.to_owned(), |v| value(trend.metric, *v));
    vec![
        one_line(&trend.stage),
        trend.metric.name().into(),
        values.len().to_string(),
        newest,
        bars(trend),
    ]
}

/// A bar per run; a gap where it was not measured, a stroke where the level changes.
fn bars(trend: &Trend) -> String {
    let values = || trend.points.iter().filter_map(|point| point.value);
    let min = values().fold(f64::INFINITY, f64::min);
    let max = values().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: f64| {
        let share = (value - min) / (max - min);
        let step = if share.is_finite() { share * 7.0 } else { 3.0 };
        BARS[(step.round() as usize).min(BARS.len() - 1)]
    };
    let mut text = String::new();
    for (point, at) in trend.points.iter().zip(0u32..) {
        if trend.changes.iter().any(|change| change.at == at) {
            text.push('|');
        }
        text.push(point.value.map_or(' ', bar));
    }
    text
}

/// "throughput in `mesh` fell by 10.1% to 851 Mb/s at run 20261122-... (p 0.001)".
pub(crate) fn change_words(trend: &Trend, change: &ChangePoint) -> String {
    let ratio = change.ratio();
    let word = if ratio < 1.0 { "fell" } else { "rose" };
    format!(
        "{} in `{}` {word} by {} to {} at run {} (p {:.4})",
        trend.metric.name(),
        one_line(&trend.stage),
        words::fine_percent(Some((ratio - 1.0).abs())),
        value(trend.metric, change.after),
        one_line(&change.run_id),
        change.p_value,
    )
}

/// All series, for programs.
///
/// # Errors
/// [`ReportError::Json`], which is a defect.
pub fn trends_json(trends: &[Trend]) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        schema_version: u32,
        trends: &'a [Trend],
    }
    let document = Document {
        schema: "eastwest-trends",
        schema_version: SCHEMA_VERSION,
        trends,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
