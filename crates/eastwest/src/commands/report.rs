//! `eastwest report`: an old run again, analysed anew.

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
    /// A run's directory, its id or the beginning of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    #[command(flatten)]
    runs: RunsDirArg,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let dir = ew_store::resolve(&args.runs.runs_dir, &args.run).map_err(Failure::usage)?;
    let run = ew_store::load(&dir).map_err(Failure::failed)?;
    if let Some(shown) = dfsio::show(&run, &args.show) {
        return shown;
    }
    let analysis = ew_analyze::analyze(&run);
    show(&analysis, &args.show)?;
    Ok(ExitCode::from(analysis.verdict.status.exit_code()))
}

/// Prints an analysis.
pub(crate) fn show(analysis: &Analysis, args: &ShowArgs) -> Result<(), Failure> {
    let style = output::text_style(args.color);
    let text = ew_report::render(analysis, args.format.report_format(), &style);
    output::print(&text.map_err(unreportable)?);
    Ok(())
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
    let style = ew_report::TextStyle {
        width: 100,
        color: false,
    };
    let page =
        ew_report::render(analysis, ew_report::Format::Html, &style).map_err(Failure::failed)?;
    ew_store::write_file(dir, "report.html", page.as_bytes()).map_err(Failure::failed)
}
