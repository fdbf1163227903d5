//! eastwest qualifies a cluster's network: one binary, one command, one verdict.

use std::process::ExitCode;

mod build;
mod cli;
mod clusters;
mod commands;
mod examples;
mod exit;
mod fleet;
mod full_screen;
mod hosts;
mod kubernetes;
mod metrics;
mod output;
mod plan_args;
mod predecessor;
mod preflight;
mod push;
mod renamed;
mod safety;
mod shorthand;
mod watch;

fn main() -> ExitCode {
    ew_lab::keeper_main_if_requested();
    cli::run()
}
