//! The command line: one variant per subcommand, one file per variant in `commands`.

use crate::clusters;
use crate::commands;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::shorthand;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Short for `run SCENARIO --hosts ...`: eastwest pair A B; latency A B; mesh SET; congestion SET

Examples:
  eastwest demo                                       two faults in an emulated cluster, found
  eastwest pair web1 web2 -t 5 -P 4                   throughput of two hosts, both directions
  eastwest run --racks '@rack[1-3]'                   qualify the network between racks

Exit codes: 0 as expected; 1 findings worse than stated, or a host worse than its peers; \
2 wrong usage or input; 3 partial (hosts or pairs missing); 4 failed; 130 interrupted.";

/// Qualifies a cluster's network: drives synchronised load between its hosts and says what limits
/// what.
#[derive(Debug, Parser)]
#[command(name = "eastwest", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build a small cluster on this machine, run the main job in it, and show the verdict
    Demo(commands::demo::DemoArgs),
    /// Run a scenario over a set of hosts
    Run(Box<commands::run::RunArgs>),
    /// List or show the built-in scenarios
    Scenario(commands::scenario::ScenarioArgs),
    /// Expand, fold or count a node set
    Hosts(commands::hosts::HostsArgs),
    /// Find what would stop a run, before it does
    Doctor(commands::doctor::DoctorArgs),
    /// Which external tools are on which host, and how the missing ones get there
    Tools(commands::tools::ToolsArgs),
    /// Show a run again, in any format
    Report(commands::report::ReportArgs),
    /// Compare two states of a network, each by one run or several
    Compare(commands::compare::CompareArgs),
    /// List, show or prune runs, or show figures over runs
    Runs(commands::runs::RunsArgs),
    /// Show stored runs in a browser: reports, trends, comparisons
    Serve(commands::serve::ServeArgs),
    /// Calculate a link's maximum goodput, packet rate, BDP and socket buffers
    Limit(commands::limit::LimitArgs),
    /// Calculate the storage nodes that move an amount of data by a deadline
    Size(Box<commands::size::SizeArgs>),
    /// Put back what a storage run left changed
    Storage(commands::storage::StorageCommandArgs),
    /// Stop all agents on this host
    Stop(commands::stop::StopArgs),
    /// Show this host's bottleneck and the processes responsible
    Top(commands::top::TopArgs),
    /// An emulated cluster in network namespaces on this machine
    Lab(commands::lab::LabArgs),
    /// Write this binary as a container image, for --fleet kubernetes
    Image(commands::image::ImageArgs),
    /// Rights and parts of runs in Kubernetes
    Kubernetes(commands::kubernetes::KubernetesCommandArgs),
    /// iperf3-compatible client and multi-client server
    #[command(disable_version_flag = true)]
    Iperf3(Box<commands::iperf3::Iperf3Args>),
    /// Print a shell's completion script
    Completions(commands::completions::CompletionsArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man(commands::completions::ManArgs),
    /// One host's part of a run; started by launchers
    #[command(hide = true)]
    Agent(commands::agent::AgentArgs),
}

/// Parses, runs, and turns a failure into a message and its exit code.
pub(crate) fn run() -> ExitCode {
    let words = shorthand::spelled_out(std::env::args_os());
    let words = match clusters::with_saved_options(words, &Cli::command()) {
        Ok(words) => words,
        Err(failure) => return fail(&failure),
    };
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match dispatch(cli.command) {
        Ok(code) => code,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    let message = failure.message();
    if wants_json() {
        print_json_error(&message, failure.code());
    }
    output::say(&format!("error: {message}"));
    ExitCode::from(failure.code())
}

/// Help and version are answers, everything else is a usage error.
fn refuse(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(u8::MAX);
    if error.use_stderr() && commands::iperf3::wants_json(&words()) {
        let message = error.to_string();
        let message = message.trim().trim_start_matches("error: ");
        output::print(&commands::iperf3::error_document(message));
    } else if error.use_stderr() && wants_json() {
        print_json_error(error.to_string().trim(), code);
    }
    // A closed stderr leaves the exit code.
    let _ = error.print();
    ExitCode::from(code)
}

/// Looked up in the words themselves, because a command line that does not parse must be answered
/// in JSON, too.
fn wants_json() -> bool {
    let words = words();
    words
        .iter()
        .any(|word| word == "--format=json" || word == "--json")
        || words.windows(2).any(|pair| pair == ["--format", "json"])
}

fn words() -> Vec<String> {
    std::env::args().collect()
}

fn print_json_error(message: &str, exit_code: u8) {
    let error = serde_json::json!({ "error": { "message": message, "exit_code": exit_code } });
    output::print(&error.to_string());
}

fn dispatch(command: Command) -> Outcome {
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Scenario(args) => commands::scenario::run(&args),
        Command::Hosts(args) => commands::hosts::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Tools(args) => commands::tools::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Runs(args) => commands::runs::run(&args),
        Command::Limit(args) => commands::limit::run(&args),
        Command::Size(args) => commands::size::run(&args),
        Command::Storage(args) => commands::storage::run(&args),
        Command::Stop(args) => commands::stop::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Lab(args) => commands::lab::run(&args),
        Command::Image(args) => commands::image::run(&args),
        Command::Kubernetes(args) => commands::kubernetes::run(&args),
        Command::Iperf3(args) => commands::iperf3::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::completions::man(&args),
        Command::Agent(args) => commands::agent::run(&args),
    }
}
