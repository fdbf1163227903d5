//! The form of a report, and how a text report is laid out.

use crate::error::ReportError;
use crate::words;
use std::str::FromStr;

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
