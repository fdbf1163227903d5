//! Terminal, HTML, JSON, CSV and Markdown views of an analysis, the live view of a run, and a run
//! as Prometheus metrics.
//!
//! Reads [`Analysis`] for reports and `RunEvent` for the live views, and nothing else: no file, no
//! Parquet, no clock. It decides nothing: every number was made by `ew-analyze`. Every sentence
//! about a finding or a figure is made in `catalogue`. What was not measured is shown as "-", never
//! as 0. Host names and the words of other programs are untrusted: control characters never reach
//! a terminal, and nothing unescaped reaches HTML, Markdown or CSV.

mod catalogue;
mod compact;
mod compare;
mod congestion;
mod convergence;
mod csv;
mod csv_hosts;
mod csv_line;
mod error;
mod figures;
mod flow_completion;
mod format;
mod host_figures;
mod html;
mod json;
mod junit;
mod k8s_netperf;
mod limit;
pub mod live;
mod markdown;
mod plan;
mod pods;
pub mod prometheus;
mod storage;
mod sweep;
mod table;
mod text;
mod tools;
mod trend;
mod view;
mod web;
mod words;

pub use catalogue::{
    WordedBasis, WordedCompletion, WordedHalfPerformance, WordedImpact, WordedPodCause,
    WordedPodComparison, WordedRackPair, WordedStageAnalysis, WordedStanding, WordedStep,
    WordedSweep, WordedToolComparison, WordedToolFigure, comparison_sentence, conntrack_words,
    in_words, worded, worded_basis, worded_completion, worded_impact, worded_pods,
    worded_rack_pair, worded_stage, worded_step, worded_sweep, worded_tools,
};
pub use compare::render_comparison;
pub use error::ReportError;
pub use format::{Format, TextStyle};
pub use html::storage::storage_html;
pub use json::{SCHEMA_VERSION, findings_json, schema as json_schema};
pub use limit::{limit_json, limit_text};
pub use plan::dry_run;
pub use storage::{
    sizing_bound_json, sizing_json, sizing_text, storage_csv, storage_json, storage_text,
};

pub use trend::{trends_json, trends_text};
pub use web::{RunLine, RunsPage, live_page, notice_page, runs_page, trends_page};

use ew_model::Analysis;
use view::View;

/// Makes a report of an analysis. The result ends with a newline.
///
/// # Errors
/// [`ReportError::NoPods`] for a format of k8s-netperf and a run without pods. [`ReportError`] when
/// the JSON writer or the page's template fails; both are defects, not the user's doing.
pub fn render(
    analysis: &Analysis,
    format: Format,
    style: &TextStyle,
) -> Result<String, ReportError> {
    match format {
        Format::Text => Ok(text::render(&View::of(analysis), style)),
        Format::Json => json::render(analysis),
        Format::Csv => Ok(csv::render(analysis)),
        Format::CsvHosts => Ok(csv_hosts::render(analysis)),
        Format::Markdown => Ok(markdown::render(&View::of(analysis))),
        Format::Html => html::render(analysis),
        Format::Junit => Ok(junit::render(analysis)),
        Format::K8sNetperf => k8s_netperf::table(analysis),
        Format::K8sNetperfJson => k8s_netperf::json(analysis),
    }
}
