//! `eastwest runs list|show|prune`.

use crate::commands::report;
use crate::exit::{Failure, Outcome};
use crate::output::{self, PlainArgs, RunsDirArg, ShowArgs};
use clap::{ArgGroup, Args, Subcommand};
use ew_model::units;
use ew_store::{PruneRule, RunSummary};
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
    /// List all runs, newest first
    List {
        #[command(flatten)]
        plain: PlainArgs,
    },
    /// Show a run's report, as `eastwest report` does
    Show {
        /// A run's directory, its id or the beginning of it, `last`, or `last~1` for the one before
        #[arg(default_value = "last")]
        run: String,
        #[command(flatten)]
        show: ShowArgs,
    },
    /// Remove old runs
    #[command(group(ArgGroup::new("which").required(true).multiple(true)))]
    Prune {
        /// Remove all but the newest N
        #[arg(long, value_name = "N", group = "which")]
        keep: Option<usize>,
        /// Remove those that started longer ago than this, for example 30d
        #[arg(long, group = "which", value_name = "TIME", value_parser = units::parse_duration_ns)]
        older_than: Option<u64>,
    },
}

pub(crate) fn run(args: &RunsArgs) -> Outcome {
    match &args.command {
        RunsCommand::List { plain } => list(args, *plain),
        RunsCommand::Show { run, show } => report::show_run(&args.runs, run, show),
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

fn list(args: &RunsArgs, plain: PlainArgs) -> Outcome {
    let listing = ew_store::list(&args.runs.runs_dir).map_err(Failure::failed)?;
    if listing.runs.is_empty() {
        output::say(&format!("no runs in {}", args.runs.runs_dir.display()));
    }
    if plain.is_json() {
        let runs: Vec<_> = listing.runs.iter().map(in_json).collect();
        output::print_json(&serde_json::json!({ "runs": runs }))?;
    } else {
        for run in &listing.runs {
            output::print(&format!(
                "{:46} {:5} {:4} hosts  {}",
                output::plain(&run.id),
                output::plain(&run.fleet),
                run.hosts,
                state(run)
            ));
        }
    }
    for problem in listing.unreadable {
        output::say(&format!("warning: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn state(run: &RunSummary) -> &'static str {
    match (run.outcome, run.being_written) {
        (_, true) => "running",
        (ew_model::Outcome::Unfinished, _) => "cut short",
        (ew_model::Outcome::Complete, _) => "complete",
        (ew_model::Outcome::Partial, _) => "partial",
        (ew_model::Outcome::Interrupted, _) => "interrupted",
        (ew_model::Outcome::Failed, _) => "failed",
    }
}

fn in_json(run: &RunSummary) -> serde_json::Value {
    serde_json::json!({
        "id": run.id,
        "path": run.path,
        "scenario": run.scenario,
        "fleet": run.fleet,
        "hosts": run.hosts,
        "state": state(run),
    })
}
