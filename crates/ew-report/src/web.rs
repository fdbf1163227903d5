//! Pages that only a server shows: a run as it goes, the list of stored runs, and their trends.
//! Plain HTML and one script without a build step; see docs/decisions/0023.

use crate::compare::value;
use crate::error::ReportError;
use crate::html::render_page;
use crate::trend::change_words;
use crate::view::Tone;
use crate::words::{MISSING, one_line, utc};
use ew_model::comparison::Change;
use ew_model::finding::VerdictStatus;
use ew_model::trend::Trend;
use serde::Serialize;
use std::fmt::Write as _;

const STYLE: &str = concat!(include_str!("html/report.css"), include_str!("web/web.css"));
/// Of a trend's drawing, in CSS pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 8.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 10.0;

/// The page that shows a run as it goes. Its figures come from `state` next to it.
#[must_use]
pub fn live_page() -> String {
    #[derive(Serialize)]
    struct Page {
        title: &'static str,
        style: &'static str,
        script: &'static str,
        live: bool,
        version: &'static str,
    }
    let page = Page {
        title: "eastwest: a run as it goes",
        style: STYLE,
        script: include_str!("web/live.js"),
        live: true,
        version: env!("CARGO_PKG_VERSION"),
    };
    let made = render_page("live.html", include_str!("web/live.html"), &page);
    made.unwrap_or_else(|error| notice_page(&error.to_string()))
}

/// A page of one sentence.
#[must_use]
pub fn notice_page(words: &str) -> String {
    let words = escaped(words);
    format!("<!doctype html><meta charset=\"utf-8\"><title>eastwest</title><p>{words}</p>\n")
}

/// A stored run in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLine {
    /// Its id.
    pub id: String,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// Its scenario's name.
    pub scenario: String,
    /// ssh, lab, ...
    pub fleet: String,
    /// Number of hosts.
    pub hosts: u32,
    /// How it ended, in a word.
    pub outcome: String,
    /// Its verdict. `None` where it was never analysed.
    pub status: Option<VerdictStatus>,
}

/// The list of stored runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsPage {
    /// Newest first.
    pub runs: Vec<RunLine>,
    /// Runs that are not listed, because there are too many.
    pub left_out: usize,
    /// The run to compare with, once it was chosen.
    pub base: Option<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// All stored runs, with links to reports, trends and comparisons.
///
/// # Errors
/// [`ReportError::Html`], which is a defect.
pub fn runs_page(page: &RunsPage) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Row {
        id: String,
        link: String,
        started: String,
        scenario: String,
        scenario_link: String,
        fleet: String,
        hosts: u32,
        outcome: String,
        status: &'static str,
        class: &'static str,
        is_base: bool,
    }
    #[derive(Serialize)]
    struct View {
        title: &'static str,
        style: &'static str,
        version: &'static str,
        runs: Vec<Row>,
        left_out: usize,
        base: Option<String>,
        base_link: Option<String>,
        problems: Vec<String>,
    }
    let row = |run: &RunLine| {
        let tone = run.status.map_or(Tone::Open, Tone::of_status);
        Row {
            id: one_line(&run.id),
            link: encoded(&run.id),
            started: utc(Some(run.started_unix_ns)),
            scenario: one_line(&run.scenario),
            scenario_link: encoded(&run.scenario),
            fleet: one_line(&run.fleet),
            hosts: run.hosts,
            outcome: one_line(&run.outcome),
            status: run.status.map_or(MISSING, status),
            class: tone.class(),
            is_base: page.base.as_ref() == Some(&run.id),
        }
    };
    let view = View {
        title: "eastwest: stored runs",
        style: STYLE,
        version: env!("CARGO_PKG_VERSION"),
        runs: page.runs.iter().map(row).collect(),
        left_out: page.left_out,
        base: page.base.as_deref().map(one_line),
        base_link: page.base.as_deref().map(encoded),
        problems: page.problems.iter().map(|p| one_line(p)).collect(),
    };
    render_page("runs.html", include_str!("web/runs.html"), &view)
}

/// The word of a status by itself.
fn status(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::NothingWrong => "PASS",
        VerdictStatus::AsExpected => "WARN",
        VerdictStatus::Worse => "FAIL",
        VerdictStatus::Partial => "INCOMPLETE",
        VerdictStatus::NotDetermined => "NO DATA",
    }
}

/// The figures of a scenario's runs over time, each with its changes of level.
///
/// # Errors
/// [`ReportError::Html`], which is a defect.
pub fn trends_page(scenario: &str, trends: &[Trend]) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Figure {
        title: String,
        newest: String,
        class: &'static str,
        drawing: String,
        changes: Vec<(String, String)>,
    }
    #[derive(Serialize)]
    struct View {
        title: String,
        style: &'static str,
        version: &'static str,
        scenario: String,
        runs: usize,
        figures: Vec<Figure>,
    }
    let figure = |trend: &Trend| {
        let newest = trend.points.iter().rev().find_map(|point| point.value);
        let change = |change: &ew_model::trend::ChangePoint| {
            (
                change_words(trend, change).replace('`', ""),
                encoded(&change.run_id),
            )
        };
        Figure {
            title: format!("{} {}", one_line(&trend.stage), trend.metric.name()),
            newest: newest.map_or_else(|| MISSING.to_owned(), |v| value(trend.metric, v)),
            class: if trend.regression().is_some() {
                "bad"
            } else {
                "open"
            },
            drawing: drawing(trend),
            changes: trend.changes.iter().map(change).collect(),
        }
    };
    let view = View {
        title: format!("eastwest: {} over runs", one_line(scenario)),
        style: STYLE,
        version: env!("CARGO_PKG_VERSION"),
        scenario: one_line(scenario),
        runs: trends.first().map_or(0, |trend| trend.points.len()),
        figures: trends.iter().map(figure).collect(),
    };
    render_page("trends.html", include_str!("web/trends.html"), &view)
}

/// A point per run, each a link to its report; the level as a line, and a stroke where it changes.
/// All that goes in is escaped here.
fn drawing(trend: &Trend) -> String {
    let values: Vec<f64> = trend
        .points
        .iter()
        .filter_map(|point| point.value)
        .collect();
    let max = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let steps = trend.points.len().saturating_sub(1).max(1) as f64;
    let x = |index: usize| LEFT + (WIDTH - 2.0 * LEFT) * index as f64 / steps;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value / max).clamp(0.0, 1.0));
    let name = escaped(&format!(
        "{} of {} over {} runs, {} changes of level",
        trend.metric.name(),
        one_line(&trend.stage),
        trend.points.len(),
        trend.changes.len()
    ));
    let mut svg = format!(
        "<svg class=\"trend\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"group\" aria-label=\"{name}\">"
    );
    for change in &trend.changes {
        let at = x(change.at as usize);
        let class = if change.change == Change::Worse {
            "worse"
        } else {
            "better"
        };
        let run = escaped(&one_line(&change.run_id));
        let _ = write!(
            svg,
            "<path class=\"change {class}\" data-run=\"{run}\" d=\"M{at:.1} {TOP}V{:.1}\"/>",
            HEIGHT - BOTTOM
        );
    }
    for (begin, end, level) in levels(trend) {
        let (from, to, level) = (x(begin), x(end), y(level));
        let _ = write!(
            svg,
            "<path class=\"level\" d=\"M{from:.1} {level:.1}H{to:.1}\"/>"
        );
    }
    for (index, point) in trend.points.iter().enumerate() {
        let Some(figure) = point.value else {
            continue;
        };
        let words = escaped(&format!(
            "{}: {} ({})",
            one_line(&point.run_id),
            value(trend.metric, figure),
            utc(Some(point.started_unix_ns))
        ));
        let link = encoded(&point.run_id);
        let _ = write!(
            svg,
            "<a href=\"run/{link}\" aria-label=\"{words}\"><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{words}</title></circle></a>",
            x(index),
            y(figure)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// From which run to which, and how high: before the first change, between changes, after the last.
fn levels(trend: &Trend) -> Vec<(usize, usize, f64)> {
    let last = trend.points.len().saturating_sub(1);
    let mut levels = Vec::new();
    let mut begin = 0;
    for change in &trend.changes {
        let at = change.at as usize;
        levels.push((begin, at.saturating_sub(1), change.before));
        begin = at;
    }
    levels.extend(
        trend
            .changes
            .last()
            .map(|change| (begin, last, change.after)),
    );
    levels
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// A part of an address.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
