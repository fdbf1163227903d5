//! `eastwest runs list|show|repeat|trend|prune`.

mod repeated;

use crate::cli;
use crate::commands::report;
use crate::exit::{self, Failure, Outcome};
use crate::history;
use crate::output::{self, ColorChoice, PlainArgs, RunsDirArg, ShowArgs};
use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use ew_model::comparison::Metric;
use ew_model::units;
use ew_store::{PruneRule, RunSummary};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// More runs make no better trend.
const MAX_RUNS: usize = 1000;

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
    /// Run a stored run's command again with its seed: the same flows between the same hosts
    Repeat {
        /// A run's directory, its id or the beginning of it, `last`, or `last~1` for the one before
        #[arg(default_value = "last")]
        run: String,
        /// Options in place of the run's own, such as `-- --dry-run`; repeatable ones are added
        #[arg(last = true)]
        more: Vec<String>,
    },
    /// Figures over runs, oldest first, with the runs at which their level changed
    Trend(TrendArgs),
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

#[derive(Debug, Args)]
struct TrendArgs {
    /// One metric only [default: all]
    #[arg(value_parser = PossibleValuesParser::new(Metric::ALL.map(Metric::key)))]
    metric: Option<String>,
    /// Of runs of this scenario [default: the newest run's]
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Of one stage only
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// The newest runs only
    #[arg(long, value_name = "N", default_value_t = 30)]
    last: usize,
    /// End with 1 when the newest change of a figure's level is to the worse
    #[arg(long)]
    fail_on_change: bool,
    /// How to show it
    #[arg(long, value_enum, default_value = "text")]
    format: TrendFormat,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    color: ColorChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrendFormat {
    /// A line per figure, with bars.
    Text,
    /// All values and changes, one JSON document.
    Json,
}

pub(crate) fn run(args: &RunsArgs) -> Outcome {
    match &args.command {
        RunsCommand::List { plain } => list(args, *plain),
        RunsCommand::Show { run, show } => report::show_run(&args.runs, run, show),
        RunsCommand::Repeat { run, more } => repeat(args, run, more),
        RunsCommand::Trend(trend) => self::trend(args, trend),
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

/// Becomes the command of a stored run.
fn repeat(args: &RunsArgs, name: &str, more: &[String]) -> Outcome {
    let dir = ew_store::resolve(&args.runs.runs_dir, name).map_err(Failure::usage)?;
    let run = ew_store::load_manifest(&dir).map_err(Failure::failed)?;
    let arguments = run.repeating_arguments();
    if arguments.is_empty() {
        return Err(Failure::usage(anyhow!(
            "{} has no command on record; give its options and --seed {} yourself",
            run.id,
            run.seed
        )));
    }
    let arguments = repeated::with_options(&arguments, more, &cli::definition());
    output::say(&format!("repeating: {}", arguments.join(" ")));
    let program = std::env::current_exe().map_err(Failure::failed)?;
    Err(Failure::failed(
        Command::new(program).args(arguments).exec(),
    ))
}

fn trend(args: &RunsArgs, asked: &TrendArgs) -> Outcome {
    let last = asked.last.min(MAX_RUNS);
    let figures = history::figures(&args.runs.runs_dir, asked.scenario.as_deref(), last)?;
    let mut trends = ew_analyze::trend::trends(&figures, |stage, metric| {
        asked
            .metric
            .as_ref()
            .is_none_or(|wanted| metric.key() == wanted)
            && asked.stage.as_ref().is_none_or(|wanted| stage == wanted)
    });
    if trends.is_empty() {
        let stage = asked.stage.as_deref().unwrap_or("any stage");
        let metric = asked.metric.as_deref().unwrap_or("a figure");
        return Err(Failure::usage(anyhow!(
            "none of {} runs has {metric} of {stage}; `eastwest runs trend --scenario NAME` shows what there is",
            figures.len()
        )));
    }
    trends.sort_by_key(|trend| trend.regression().is_none());
    output::print(&match asked.format {
        TrendFormat::Text => ew_report::trends_text(&trends, &output::text_style(asked.color)),
        TrendFormat::Json => ew_report::trends_json(&trends).map_err(Failure::failed)?,
    });
    let is_worse = trends.iter().any(|trend| trend.regression().is_some());
    Ok(match asked.fail_on_change && is_worse {
        true => ExitCode::from(exit::WORSE),
        false => ExitCode::SUCCESS,
    })
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
