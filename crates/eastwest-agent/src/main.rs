//! The agent alone. It takes the words that the launcher gives `eastwest`, in whose place it is
//! copied to hosts.

#![expect(
    clippy::print_stderr,
    reason = "its last words, which the controller shows"
)]

use clap::{Parser, Subcommand};
use eastwest_agent::{AgentArgs, HoldArgs};
use std::process::ExitCode;

/// Exit code of work that could not be done, as of `eastwest`.
const FAILED: u8 = 4;

/// eastwest's agent: one host's part of a run, started by the controller
#[derive(Debug, Parser)]
#[command(name = "eastwest-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve one run
    Agent(AgentArgs),
    /// In pods of an image that has the agent in eastwest's place
    #[command(subcommand, hide = true)]
    Kubernetes(PodCommand),
}

#[derive(Debug, Subcommand)]
enum PodCommand {
    /// Hold a pod until it is ordered to end
    Hold(HoldArgs),
    /// Print the routes of the pod's network
    Routes,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Agent(args) => eastwest_agent::run(&args),
        Command::Kubernetes(PodCommand::Hold(args)) => eastwest_agent::hold(&args),
        Command::Kubernetes(PodCommand::Routes) => eastwest_agent::print_routes(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}
