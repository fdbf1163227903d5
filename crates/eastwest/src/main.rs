//! eastwest qualifies a cluster's network: one binary, one command, one verdict.

use std::process::ExitCode;

mod build;
mod cli;
mod clusters;
mod commands;
mod examples;
mod exit;
mod flag_values;
mod fleet;
mod full_screen;
mod history;
mod hosts;
mod http;
mod input_file;
mod kubernetes;
mod metrics;
mod output;
mod plan_args;
mod predecessor;
mod preflight;
mod push;
mod renamed;
mod run_report;
mod runtime;
mod safety;
mod shorthand;
mod signals;
mod sinks;
mod slurm;
mod watch;
mod web;

fn main() -> ExitCode {
    ew_lab::keeper_main_if_requested();
    let code = cli::run();
    if std::process::id() == 1 {
        output::wait_until_read();
    }
    code
}
