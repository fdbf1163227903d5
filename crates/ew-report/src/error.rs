//! Why a report could not be made.

use thiserror::Error;

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
