//! `eastwest runs list|show|prune`.

use crate::commands::report;
use crate::exit::{Failure, Outcome};
use crate::output::{self, RunsDirArg, ShowArgs};
use clap::{Args, Subcommand};
use ew_model::units;
use ew_store::PruneRule;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: RunsCommand,
    #[command(flatten)]
    runs: RunsDirArg,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// All runs, newest first
    List,
    /// One run's report
    Show {
        /// A run's id or the beginning of it, or `latest`
        #[arg(default_value = "latest")]
        run: String,
        #[command(flatten)]
        show: ShowArgs,
    },
    /// Remove old runs
    Prune {
        /// Remove all but this many newest
        #[arg(long, value_name = "N", required_unless_present = "older_than")]
        keep: Option<usize>,
        /// Remove those that started longer ago than this, for example 30d
        #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
        older_than: Option<u64>,
    },
}

pub(crate) fn run(args: &RunsArgs) -> Outcome {
    match &args.command {
        RunsCommand::List => list(args),
        RunsCommand::Show { run, show } => {
            let dir = ew_store::resolve(&args.runs.runs_dir, run).map_err(Failure::usage)?;
            let run = ew_store::load(&dir).map_err(Failure::failed)?;
            report::show(&ew_analyze::analyze(&run), show)?;
            Ok(ExitCode::SUCCESS)
        }
        RunsCommand::Prune { keep, older_than } => {
            let rule = PruneRule {
                keep: *keep,
                started_before_unix_ns: older_than
                    .map(|age_ns| ew_sys::clock::realtime_ns().saturating_sub(age_ns)),
            };
            for removed in ew_store::prune(&args.runs.runs_dir, &rule).map_err(Failure::failed)? {
                output::print(&format!("removed {}", removed.display()));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(args: &RunsArgs) -> Outcome {
    let listing = ew_store::list(&args.runs.runs_dir).map_err(Failure::failed)?;
    if listing.runs.is_empty() {
        output::say(&format!("no runs in {}", args.runs.runs_dir.display()));
    }
    for run in listing.runs {
        let outcome = match (run.outcome, run.being_written) {
            (_, true) => "running",
            (ew_model::Outcome::Unfinished, _) => "cut short",
            (ew_model::Outcome::Complete, _) => "complete",
            (ew_model::Outcome::Partial, _) => "partial",
            (ew_model::Outcome::Interrupted, _) => "interrupted",
            (ew_model::Outcome::Failed, _) => "failed",
        };
        output::print(&format!(
            "{:46} {:5} {:4} hosts  {outcome}",
            output::plain(&run.id),
            output::plain(&run.fleet),
            run.hosts
        ));
    }
    for problem in listing.unreadable {
        output::say(&format!("warning: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
}
