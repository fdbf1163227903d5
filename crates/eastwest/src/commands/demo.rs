//! `eastwest demo`: a small cluster with two things wrong, and the main job finding both.

use crate::commands::run::drive::{conclude, drive};
use crate::commands::run::{LiveArgs, load_scenario, recorded_command};
use crate::exit::{Failure, Outcome};
use crate::fleet::lab_launcher;
use crate::hosts::lab_inventory;
use crate::output::{self, RunsDirArg, ShowArgs};
use crate::run_report;
use crate::safety::SafetyArgs;
use clap::Args;
use ew_controller::{AbortLimits, Job, LaunchOptions, RelayChoice};
use ew_lab::{KeeperCommand, Lab, LabSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Two racks of four hosts, 4:1 uplinks, one slow host.
const LAB: &str = include_str!("demo.yaml");
/// Shorter than on a real cluster, so that the answer is there within 90 s.
const OVERRIDES: [&str; 5] = [
    "duration=800ms",
    "warm-up=200ms",
    "gap=150ms",
    "idle rtt.duration=100ms",
    // A router that does not answer takes half a second.
    "path trace.duration=2s",
];
/// A fixed seed: the demo shows the same plan to everybody.
const SEED: u64 = 1;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    runs: RunsDirArg,
    /// Print the lab's description, to start from, and stop
    #[arg(long)]
    show_lab: bool,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) fn run(args: &DemoArgs) -> Outcome {
    if args.show_lab {
        output::print(LAB);
        return Ok(ExitCode::SUCCESS);
    }
    args.show.check_file()?;
    let spec = LabSpec::parse(LAB, "demo.yaml").map_err(Failure::failed)?;
    let name = format!("demo-{}", std::process::id());
    let spec = spec.renamed(&name).map_err(Failure::failed)?;
    output::say("building a lab: two racks of four hosts at 100 Mb/s, 4:1 uplinks, one slow host");
    let lab = Arc::new(Lab::up(&spec, &KeeperCommand::current_exe()).map_err(Failure::failed)?);
    let overrides: Vec<String> = OVERRIDES.iter().map(ToString::to_string).collect();
    let job = Job {
        scenario: load_scenario("qualify", &overrides)?.scenario,
        inventory: lab_inventory(&lab),
        seed: SEED,
        launcher: lab_launcher(Arc::clone(&lab)),
        options: LaunchOptions {
            build: crate::build::build(),
            data_ports: (5401, 5499),
            tool_ports: (5001, 5399),
            sample_interval_ns: 1_000_000_000,
            offer_iperf3_port: None,
            watched: BTreeSet::new(),
            network: None,
            launch_limit: Duration::from_secs(20),
            require_all: true,
            // The lab is this run's own.
            claimed_by: None,
            force: false,
            abort_command: None,
            max_bytes: None,
            abort_limits: AbortLimits::DEFAULT,
            allow_wan: false,
            max_rate: None,
            syslog: false,
            relay: RelayChoice::default(),
        },
        runs_dir: args.runs.runs_dir.clone(),
        command: recorded_command(),
        detours: ew_controller::Detours::new(),
        node_labels: BTreeMap::new(),
        follow_flows: LiveArgs::DEFAULT.follows_flows(),
        // The lab must not be left behind.
        signals_end_analysis: false,
    };
    let finished = drive(
        &job,
        LiveArgs::DEFAULT,
        &SafetyArgs::default(),
        args.show.color,
        None,
        &mut |_, _| {},
    )?;
    run_report::show(&finished.analysis, &args.show)?;
    drop(lab);
    // The faults are the point of the demo: finding them is success.
    let code = conclude(&finished, false)?;
    Ok(if finished.interrupted {
        code
    } else {
        ExitCode::SUCCESS
    })
}
