//! eastwest qualifies a cluster's network: one binary, one command, one verdict.

use std::process::ExitCode;

mod build;
mod cli;
mod clusters;
mod commands;
mod exit;
mod fleet;
mod full_screen;
mod hosts;
mod kubernetes;
mod metrics;
mod output;
mod predecessor;
mod preflight;
mod push;
mod safety;
mod shorthand;
mod slurm;
mod watch;

fn main() -> ExitCode {
    ew_lab::keeper_main_if_requested();
    cli::run()
}
