//! The agent alone. It takes the words that the launcher gives `eastwest`, in whose place it is
//! copied to hosts.

#![expect(
    clippy::print_stderr,
    reason = "its last words, which the controller shows"
)]

use clap::{Parser, Subcommand};
use eastwest_agent::AgentArgs;
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
}

fn main() -> ExitCode {
    let Command::Agent(args) = Cli::parse().command;
    match eastwest_agent::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}
