//! The command line: one variant per subcommand, one file per variant in `commands`.

use crate::clusters;
use crate::commands;
use crate::examples;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::renamed;
use crate::shorthand;
use anyhow::anyhow;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Find slow links, slow hosts and oversubscribed racks: one binary drives synchronised load
/// between hosts and reports what limits it
#[derive(Debug, Parser)]
#[command(name = "eastwest", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The command line with examples in every help, and with the scenarios that are commands.
pub(crate) fn definition() -> clap::Command {
    examples::add_to(shorthand::dress(Cli::command()))
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Emulate a small cluster with two faults on this machine, and find both
    Demo(commands::demo::DemoArgs),
    /// Measure throughput between two hosts, in both directions
    Pair(Box<commands::run::RunArgs>),
    /// Measure round-trip times between two hosts over ICMP, UDP and TCP
    Latency(Box<commands::run::RunArgs>),
    /// Measure every pair of hosts
    Mesh(Box<commands::run::RunArgs>),
    /// Measure what background load costs round trips and flows
    Congestion(Box<commands::run::RunArgs>),
    /// Qualify a set of hosts, or run another scenario
    Run(Box<commands::run::RunArgs>),
    /// List or show the built-in scenarios
    #[command(alias = "scenarios")]
    Scenario(commands::scenario::ScenarioArgs),
    /// Expand, fold or count a node set
    #[command(visible_alias = "nodeset")]
    Hosts(commands::hosts::HostsArgs),
    /// Check hosts, ports and clocks before a run
    Doctor(commands::doctor::DoctorArgs),
    /// List the benchmark tools on each host, and install missing ones
    Tools(commands::tools::ToolsArgs),
    /// Show a run again, in any format
    Report(commands::report::ReportArgs),
    /// Print the JSON Schema of reports in JSON
    Schema,
    /// Compare two states of a network, each by one run or several
    Compare(commands::compare::CompareArgs),
    /// List, show or remove runs, or show figures over runs
    Runs(commands::runs::RunsArgs),
    /// Show stored runs in a browser: reports, trends, comparisons
    Serve(commands::serve::ServeArgs),
    /// Calculate a link's maximum goodput, packet rate, BDP and socket buffers
    #[command(name = "line-rate")]
    LineRate(commands::line_rate::LineRateArgs),
    /// Calculate the storage nodes that move an amount of data by a deadline
    Size(Box<commands::size::SizeArgs>),
    /// Restore what an interrupted storage run changed
    Storage(commands::storage::StorageCommandArgs),
    /// Stop all agents on this host
    Stop(commands::stop::StopArgs),
    /// Show this host's bottleneck and the processes responsible
    Top(commands::top::TopArgs),
    /// Emulate a cluster in network namespaces on this machine
    Lab(commands::lab::LabArgs),
    /// Write this binary as a container image, for --via kubernetes
    Image(commands::image::ImageArgs),
    /// Print the rights, Jobs and CronJobs of runs in Kubernetes
    Kubernetes(commands::kubernetes::KubernetesCommandArgs),
    /// iperf3-compatible client and multi-client server
    #[command(disable_version_flag = true)]
    Iperf3(Box<commands::iperf3::Iperf3Args>),
    /// Print a shell's completion script
    Completions(commands::completions::CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(commands::completions::ManArgs),
    /// Be one host's part of a run; started by launchers
    #[command(hide = true)]
    Agent(eastwest_agent::AgentArgs),
}

/// Parses, runs, and turns a failure into a message and its exit code.
pub(crate) fn run() -> ExitCode {
    let definition = definition();
    let words = renamed::in_new_words(std::env::args_os().collect(), output::say);
    let words = shorthand::spelled_out(words);
    let words = match clusters::with_saved_options(words, &definition) {
        Ok(words) => words,
        Err(failure) => return fail(&failure),
    };
    let parsed = definition.try_get_matches_from(words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match dispatch(cli.command).and_then(printed) {
        Ok(code) => code,
        Err(failure) => fail(&failure),
    }
}

/// A result that could not be printed is none.
fn printed(code: ExitCode) -> Outcome {
    match output::unprinted() {
        None => Ok(code),
        Some(error) => Err(Failure::failed(anyhow!(
            "cannot write to stdout: {error}; what was printed is not whole"
        ))),
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

/// Found in the arguments themselves, because a command line that does not parse must be answered
/// in JSON, too.
fn wants_json() -> bool {
    let words = words();
    words
        .iter()
        .any(|word| word == "--format=json" || word == "--json")
        || words.windows(2).any(|pair| pair == ["--format", "json"])
}

fn words() -> Vec<String> {
    let words = std::env::args_os();
    words.map(|word| word.to_string_lossy().into()).collect()
}

fn print_json_error(message: &str, exit_code: u8) {
    let error = serde_json::json!({ "error": { "message": message, "exit_code": exit_code } });
    output::print(&error.to_string());
}

fn dispatch(command: Command) -> Outcome {
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Pair(args) => commands::run::run(&args.settled_pair()),
        Command::Run(args)
        | Command::Latency(args)
        | Command::Mesh(args)
        | Command::Congestion(args) => commands::run::run(&args.settled()),
        Command::Scenario(args) => commands::scenario::run(&args),
        Command::Hosts(args) => commands::hosts::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Tools(args) => commands::tools::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Schema => Ok(commands::report::print_schema()),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Runs(args) => commands::runs::run(&args),
        Command::LineRate(args) => commands::line_rate::run(&args),
        Command::Size(args) => commands::size::run(&args),
        Command::Storage(args) => commands::storage::run(&args),
        Command::Stop(args) => commands::stop::run(&args),
        Command::Top(args) => commands::top::run(args),
        Command::Lab(args) => commands::lab::run(&args),
        Command::Image(args) => commands::image::run(&args),
        Command::Kubernetes(args) => commands::kubernetes::run(&args),
        Command::Iperf3(args) => commands::iperf3::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::completions::man(&args),
        Command::Agent(args) => match eastwest_agent::run(&args) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Failure::Failed(error)),
        },
    }
}
