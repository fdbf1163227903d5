//! `eastwest report`: an old run again, analysed again.

use crate::commands::dfsio;
use crate::exit::{Failure, Outcome};
use crate::output::{self, RunsDirArg, ShowArgs};
use clap::Args;
use ew_model::Analysis;
use ew_report::ReportError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A run's directory, its id or the beginning of it, `last`, or `last~1` for the one before
    #[arg(default_value = "last")]
    run: String,
    #[command(flatten)]
    runs: RunsDirArg,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    show_run(&args.runs, &args.run, &args.show)
}

/// The layout of reports in JSON.
pub(crate) fn print_schema() -> ExitCode {
    output::print(&ew_report::json_schema());
    ExitCode::SUCCESS
}

/// Shows a run of the directory, and ends as it did.
pub(crate) fn show_run(runs: &RunsDirArg, name: &str, show_args: &ShowArgs) -> Outcome {
    let dir = ew_store::resolve(&runs.runs_dir, name).map_err(Failure::usage)?;
    let run = ew_store::load(&dir).map_err(Failure::failed)?;
    if let Some(shown) = dfsio::show(&run, show_args) {
        return shown;
    }
    let analysis = ew_analyze::analyze(&run);
    show(&analysis, show_args)?;
    Ok(ExitCode::from(analysis.verdict.status.exit_code()))
}

/// Prints an analysis, or writes it to the file of `--output`.
pub(crate) fn show(analysis: &Analysis, args: &ShowArgs) -> Result<(), Failure> {
    let text = ew_report::render(analysis, args.format().report_format(), &args.style());
    args.put(&text.map_err(unreportable)?)
}

/// What the user asked for, or a defect.
pub(crate) fn unreportable(error: ReportError) -> Failure {
    match error {
        ReportError::NoPods(_) | ReportError::NoComparison => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

/// Writes `report.html` into the run's directory.
pub(crate) fn write_html(analysis: &Analysis, dir: &Path) -> Result<PathBuf, Failure> {
    let style = ew_report::TextStyle::default();
    let page =
        ew_report::render(analysis, ew_report::Format::Html, &style).map_err(Failure::failed)?;
    ew_store::write_file(dir, "report.html", page.as_bytes()).map_err(Failure::failed)
}
