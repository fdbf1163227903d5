//! The one place that prints: data to stdout, progress and errors to stderr.

use clap::{Args, ValueEnum};
use ew_report::{Format, TextStyle};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// How a result is shown.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// How to show the result
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: OutputFormat,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// Where run directories are.
#[derive(Debug, Args)]
pub(crate) struct RunsDirArg {
    /// Where run directories are
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "runs",
        env = "EASTWEST_RUNS",
        hide_env_values = true
    )]
    pub(crate) runs_dir: PathBuf,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// The whole analysis, one valid JSON document, also on failure.
    Json,
    /// One row per ordered pair.
    Csv,
    /// What the hosts' counters say: one row per host and stage.
    CsvHosts,
    /// For a pull request or a ticket.
    Md,
    /// One self-contained page.
    Html,
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl OutputFormat {
    pub(crate) fn report_format(self) -> Format {
        match self {
            Self::Text => Format::Text,
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            Self::CsvHosts => Format::CsvHosts,
            Self::Md => Format::Markdown,
            Self::Html => Format::Html,
        }
    }
}

impl ColorChoice {
    pub(crate) fn enabled(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How text goes to this stdout.
pub(crate) fn text_style(color: ColorChoice) -> TextStyle {
    const USUAL_WIDTH: usize = 100;
    let is_terminal = std::io::stdout().is_terminal();
    let width = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    TextStyle {
        width: width.unwrap_or(USUAL_WIDTH),
        color: color.enabled(is_terminal),
    }
}

/// Data. A reader that has gone away (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// A line for the person, not for a pipe.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
