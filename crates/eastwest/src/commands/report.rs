//! `eastwest report`: an old run again, analysed again.

use crate::commands::dfsio;
use crate::exit::{Failure, Outcome};
use crate::output::{self, RunsDirArg, ShowArgs};
use crate::run_report;
use clap::Args;
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
    run_report::show(&analysis, show_args)?;
    Ok(ExitCode::from(analysis.verdict.status.exit_code()))
}
