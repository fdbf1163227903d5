//! `eastwest scenario list|show`.

use crate::exit::{Failure, Outcome};
use crate::output;
use anyhow::anyhow;
use clap::{Args, Subcommand};
use ew_plan::scenario;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    #[command(subcommand)]
    command: ScenarioCommand,
}

#[derive(Debug, Subcommand)]
enum ScenarioCommand {
    /// Names and descriptions of the built-in scenarios
    List,
    /// A built-in scenario as YAML, to start from
    Show {
        /// For example `qualify`
        name: String,
    },
}

pub(crate) fn run(args: &ScenarioArgs) -> Outcome {
    match &args.command {
        ScenarioCommand::List => {
            for builtin in scenario::builtins() {
                output::print(&format!("{:20} {}", builtin.name, builtin.description));
            }
        }
        ScenarioCommand::Show { name } => {
            output::print(scenario::builtin(name).ok_or_else(|| unknown(name))?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A name that is neither a file nor built in.
pub(crate) fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = scenario::builtins()
        .into_iter()
        .map(|builtin| builtin.name)
        .collect();
    Failure::usage(anyhow!(
        "there is no scenario `{name}`; the built-in ones are {}; a file is recognised by a `/` or `.yaml` in its name",
        known.join(", ")
    ))
}
