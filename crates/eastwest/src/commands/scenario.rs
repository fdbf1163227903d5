//! `eastwest scenario list|show`.

use crate::exit::{Failure, Outcome};
use crate::output::{self, PlainArgs};
use crate::renamed;
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
    /// List the built-in scenarios
    List {
        #[command(flatten)]
        plain: PlainArgs,
    },
    /// Print a built-in scenario as YAML, to start from
    Show {
        /// For example `qualify`
        name: String,
    },
}

pub(crate) fn run(args: &ScenarioArgs) -> Outcome {
    match &args.command {
        ScenarioCommand::List { plain } if plain.is_json() => {
            let described = |builtin: scenario::Builtin| serde_json::json!({ "name": builtin.name, "description": builtin.description });
            let scenarios: Vec<_> = scenario::builtins().into_iter().map(described).collect();
            output::print_json(&serde_json::json!({ "scenarios": scenarios }))?;
        }
        ScenarioCommand::List { .. } => {
            for builtin in scenario::builtins() {
                output::print(&format!("{:20} {}", builtin.name, builtin.description));
            }
        }
        ScenarioCommand::Show { name } => {
            let name = renamed::scenario(name, output::say);
            output::print(scenario::builtin(name).ok_or_else(|| unknown(name))?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A name that is neither a file nor built in.
pub(crate) fn unknown(name: &str) -> Failure {
    if let Some(near) = scenario::nearest_builtin(name) {
        return Failure::usage(anyhow!(
            "there is no scenario `{name}` (did you mean `{near}`?); all: `eastwest scenario list`"
        ));
    }
    let known: Vec<&str> = scenario::builtins()
        .into_iter()
        .map(|builtin| builtin.name)
        .collect();
    Failure::usage(anyhow!(
        "there is no scenario `{name}`; the built-in ones are {}; a file is recognised by a `/` or `.yaml` in its name; \
         hosts come after the scenario or with --hosts",
        known.join(", ")
    ))
}
