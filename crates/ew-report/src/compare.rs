//! A comparison of two states, in every form.

mod html;
mod lines;
mod tables;

use crate::catalogue::comparison::{WordedComparison, comparison_sentence, worded_comparison};
use crate::csv_line::push_line;
use crate::error::ReportError;
use crate::format::{Format, TextStyle};
use crate::markdown::{escaped, prose, section};
use crate::table::{table, wrap};
use crate::text::Ink;
use crate::words::{MISSING, one_line};
use ew_model::comparison::{
    Comparison, ComparisonVerdict, HostComparison, MetricComparison, PairComparison, RoleComparison,
};
use lines::{notes, sides, status};
use serde::Serialize;
pub(crate) use tables::value;
use tables::{Table, change, tables};

/// Version of the JSON document's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
const SCHEMA_VERSION: u32 = 2;
const CSV_HEADER: &str = "level,stage,metric,src,dst,base,other,ratio,ratio_low,ratio_high,q_value,change,base_samples,other_samples\n";

/// Makes a report of a comparison. The result ends with a newline.
///
/// # Errors
/// [`ReportError::NoComparison`] for a format of k8s-netperf, and JUnit. [`ReportError`] when the
/// JSON writer or the page's template fails; both are defects.
pub fn render_comparison(
    comparison: &Comparison,
    format: Format,
    style: &TextStyle,
) -> Result<String, ReportError> {
    match format {
        Format::Text => Ok(text(comparison, style)),
        Format::Json => json(comparison),
        Format::Csv | Format::CsvHosts => Ok(csv(comparison)),
        Format::Markdown => Ok(markdown(comparison)),
        Format::Html => html::render(comparison),
        Format::Junit | Format::K8sNetperf | Format::K8sNetperfJson => {
            Err(ReportError::NoComparison)
        }
    }
}

fn text(comparison: &Comparison, style: &TextStyle) -> String {
    let width = style.width.max(40);
    let ink = Ink { color: style.color };
    let sentence = wrap(&one_line(&comparison_sentence(comparison)), width, "");
    let word = match (comparison.verdict, comparison.threshold) {
        (ComparisonVerdict::Worse | ComparisonVerdict::Different, _) => ink.red(status(comparison)),
        (ComparisonVerdict::NotWorse, Some(_)) => ink.green(status(comparison)),
        (ComparisonVerdict::NotWorse, None) => status(comparison).to_owned(),
    };
    let mut out = format!("{}\n{word}\n\n", ink.bold(sentence.trim_end()));
    for side in sides(comparison) {
        out.push_str(&wrap(&side, width, ""));
    }
    out.push('\n');
    for one in tables(comparison) {
        out.push_str(&format!("{}\n", ink.bold(&one.title)));
        out.push_str(&table(&one.header, &one.rows, one.left, width));
        for note in &one.notes {
            out.truncate(out.trim_end().len() + 1);
            out.push_str(&wrap(note, width, "  "));
            out.push('\n');
        }
    }
    for note in notes(comparison) {
        out.push_str(&wrap(&note, width, "- "));
    }
    out
}

fn markdown(comparison: &Comparison) -> String {
    let mut out = format!(
        "## {}\n\n**{}**\n\n",
        prose(&comparison_sentence(comparison)),
        status(comparison)
    );
    for side in sides(comparison) {
        out.push_str(&format!("- {}\n", escaped(&side)));
    }
    for (index, one) in tables(comparison).into_iter().enumerate() {
        let Table {
            title,
            header,
            rows,
            left,
            notes,
        } = one;
        // What is behind the first table is there for those who ask.
        if index > 0 {
            out.push_str(&format!(
                "\n<details><summary>{}</summary>\n",
                escaped(&title)
            ));
        }
        section(&mut out, &title, &header, &rows, left);
        for note in notes {
            out.push_str(&format!("\n{}\n", escaped(&note)));
        }
        if index > 0 {
            out.push_str("\n</details>\n");
        }
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        out.push_str(&format!("- {}\n", prose(&note)));
    }
    out
}

fn json(comparison: &Comparison) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        schema_version: u32,
        #[serde(flatten)]
        comparison: WordedComparison<'a>,
    }
    let document = Document {
        schema: "eastwest-comparison",
        schema_version: SCHEMA_VERSION,
        comparison: worded_comparison(comparison),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// One row per metric of a stage (`stage`), then one per flow that both runs have (`flow`), then
/// one per host and end (`host`, in the column of that end). Rates are bits per second, times ns,
/// shares of 1.
fn csv(comparison: &Comparison) -> String {
    let mut out = CSV_HEADER.to_owned();
    for stage in &comparison.stages {
        for metric in &stage.metrics {
            push_line(&mut out, stage_row(&stage.name, metric).into_iter());
            for pair in &metric.pairs {
                push_line(&mut out, flow_row(&stage.name, metric, pair).into_iter());
            }
            for row in metric
                .hosts
                .iter()
                .flat_map(|h| host_rows(&stage.name, metric, h))
            {
                push_line(&mut out, row.into_iter());
            }
        }
    }
    out
}

fn stage_row(stage: &str, metric: &MetricComparison) -> Vec<String> {
    let ratio = metric.ratio;
    vec![
        "stage".into(),
        one_line(stage),
        metric.metric.name().into(),
        MISSING.into(),
        MISSING.into(),
        figure(Some(metric.base.median.value)),
        figure(Some(metric.other.median.value)),
        figure(ratio.map(|r| r.value)),
        figure(ratio.and_then(|r| r.low)),
        figure(ratio.and_then(|r| r.high)),
        figure(metric.q_value),
        change(metric.change).into(),
        metric.base.median.samples.to_string(),
        metric.other.median.samples.to_string(),
    ]
}

fn flow_row(stage: &str, metric: &MetricComparison, pair: &PairComparison) -> Vec<String> {
    vec![
        "flow".into(),
        one_line(stage),
        metric.metric.name().into(),
        one_line(&pair.src),
        one_line(&pair.dst),
        figure(Some(pair.base)),
        figure(Some(pair.other)),
        figure(Some(pair.ratio)),
        MISSING.into(),
        MISSING.into(),
        figure(pair.q_value),
        MISSING.into(),
        pair.base_rounds.to_string(),
        pair.other_rounds.to_string(),
    ]
}

/// One as sender and one as receiver, where it was that.
fn host_rows(
    stage: &str,
    metric: &MetricComparison,
    host: &HostComparison,
) -> impl Iterator<Item = Vec<String>> {
    let name = one_line(&host.name);
    let row = |src: &str, dst: &str, role: RoleComparison| {
        vec![
            "host".into(),
            one_line(stage),
            metric.metric.name().into(),
            src.into(),
            dst.into(),
            MISSING.into(),
            MISSING.into(),
            figure(Some(role.ratio)),
            MISSING.into(),
            MISSING.into(),
            figure(role.q_value),
            MISSING.into(),
            MISSING.into(),
            MISSING.into(),
        ]
    };
    let rows = [
        host.sending.map(|role| row(&name, MISSING, role)),
        host.receiving.map(|role| row(MISSING, &name, role)),
    ];
    rows.into_iter().flatten()
}

/// Rates and times whole, shares to six digits.
fn figure(value: Option<f64>) -> String {
    match value.filter(|v| v.is_finite()) {
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.6}"),
        None => MISSING.into(),
    }
}
