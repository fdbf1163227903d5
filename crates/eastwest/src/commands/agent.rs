//! `eastwest agent`: one host's part of a run.

use crate::build::build;
use crate::exit::{Failure, Outcome};
use clap::Args;
use ew_agent::{AgentOptions, Ending};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Remove the running executable and its private directory at once
    #[arg(long)]
    remove_self: bool,
}

pub(crate) fn run(args: &AgentArgs) -> Outcome {
    match ew_agent::run(&AgentOptions {
        build: build(),
        remove_self: args.remove_self,
    }) {
        Ending::Goodbye => Ok(ExitCode::SUCCESS),
        Ending::Stopped { user } => Err(Failure::failed(anyhow::anyhow!(
            "the agent was stopped on its host by user {user}"
        ))),
        Ending::Lost(reason) => Err(Failure::failed(anyhow::anyhow!(
            "the agent ended itself: {reason}"
        ))),
    }
}
