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
mod figures;
mod flow_completion;
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
use std::str::FromStr;
use thiserror::Error;
use view::View;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For the terminal.
    Text,
    /// The whole analysis, for programs.
    Json,
    /// The pair matrix: one row per ordered pair.
    Csv,
    /// What the hosts' counters report: one row per host and stage.
    CsvHosts,
    /// For a pull request or a ticket.
    Markdown,
    /// One file that needs no network.
    Html,
    /// JUnit's XML, for CI.
    Junit,
    /// k8s-netperf's result tables; runs with pods only.
    K8sNetperf,
    /// Documents with k8s-netperf's JSON field names; runs with pods only.
    K8sNetperfJson,
}

/// How a text report is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Columns to fit into; taken as at least 40.
    pub width: usize,
    /// Whether to colour. No meaning rests on colour alone.
    pub color: bool,
    /// Whether facts of the run and notes on the tables are shown, too.
    pub details: bool,
}

/// Why a report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The word for the format is not known.
    #[error(
        "`{0}` is not a report format; write one of text, json, csv, csv-hosts, md, html, junit, k8s-netperf, k8s-netperf-json"
    )]
    UnknownFormat(String),
    /// k8s-netperf has words for pods only.
    #[error(
        "`{0}` compares no pods with their nodes, and k8s-netperf's formats show nothing else; run `eastwest run pods --via kubernetes`, or choose another --format"
    )]
    NoPods(String),
    /// k8s-netperf and JUnit have no comparisons of runs.
    #[error("this format has no comparison of two runs; choose another --format")]
    NoComparison,
    /// The analysis could not be written as JSON.
    #[error(
        "the analysis could not be written as JSON: {0}; this is a defect of eastwest, please report it"
    )]
    Json(#[from] serde_json::Error),
    /// The page's template failed.
    #[error(
        "the HTML report could not be made: {0}; this is a defect of eastwest, please report it"
    )]
    Html(#[from] minijinja::Error),
}

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

impl Format {
    /// The words of `--format`, in the order help shows them.
    pub const WORDS: [&'static str; 9] = [
        "text",
        "json",
        "csv",
        "csv-hosts",
        "md",
        "html",
        "junit",
        "k8s-netperf",
        "k8s-netperf-json",
    ];

    /// The word of `--format`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::CsvHosts => "csv-hosts",
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Junit => "junit",
            Self::K8sNetperf => "k8s-netperf",
            Self::K8sNetperfJson => "k8s-netperf-json",
        }
    }

    /// Whether it shows runs with pods and nothing else.
    #[must_use]
    pub fn is_of_pods(self) -> bool {
        matches!(self, Self::K8sNetperf | Self::K8sNetperfJson)
    }

    /// Reads the word of `--format`; `markdown` is taken for `md`.
    ///
    /// # Errors
    /// [`ReportError::UnknownFormat`] for any other word.
    pub fn parse(word: &str) -> Result<Self, ReportError> {
        match word {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "csv-hosts" => Ok(Self::CsvHosts),
            "md" | "markdown" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            "junit" => Ok(Self::Junit),
            "k8s-netperf" => Ok(Self::K8sNetperf),
            "k8s-netperf-json" => Ok(Self::K8sNetperfJson),
            _ => Err(ReportError::UnknownFormat(words::one_line(word))),
        }
    }
}

impl FromStr for Format {
    type Err = ReportError;

    fn from_str(word: &str) -> Result<Self, ReportError> {
        Self::parse(word)
    }
}

impl Default for TextStyle {
    fn default() -> Self {
        Self {
            width: 100,
            color: false,
            details: false,
        }
    }
}
