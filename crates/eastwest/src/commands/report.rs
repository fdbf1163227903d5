//! `eastwest report`: an old run again, analysed anew.

use crate::exit::{Failure, Outcome};
use crate::output::{self, ColorChoice, OutputFormat};
use clap::Args;
use ew_model::Analysis;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A run's directory, its id or the beginning of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// How to show it
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Where runs are
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs",
        env = "EASTWEST_RUNS"
    )]
    runs_dir: PathBuf,
    /// Colours in text
    #[arg(long, value_enum, default_value = "auto")]
    color: ColorChoice,
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let dir = ew_store::resolve(&args.runs_dir, &args.run).map_err(Failure::usage)?;
    let analysis = ew_analyze::analyze(&ew_store::load(&dir).map_err(Failure::failed)?);
    show(&analysis, args.format, args.color)?;
    Ok(ExitCode::from(analysis.verdict.status.exit_code()))
}

/// Prints an analysis.
pub(crate) fn show(
    analysis: &Analysis,
    format: OutputFormat,
    color: ColorChoice,
) -> Result<(), Failure> {
    let style = output::text_style(color);
    let text = ew_report::render(analysis, format.report_format(), &style);
    output::print(&text.map_err(Failure::failed)?);
    Ok(())
}

/// Writes `report.html` into the run's directory.
pub(crate) fn write_html(analysis: &Analysis, dir: &Path) -> Result<PathBuf, Failure> {
    let style = ew_report::TextStyle {
        width: 100,
        color: false,
    };
    let page =
        ew_report::render(analysis, ew_report::Format::Html, &style).map_err(Failure::failed)?;
    ew_store::write_file(dir, "report.html", page.as_bytes()).map_err(Failure::failed)
}
