//! `eastwest run dfsio`: what TestDFSIO does, on agents, without a JVM.

mod args;

pub(crate) use args::StorageArgs;

use crate::commands::run::drive::watched_run;
use crate::commands::run::{RunArgs, recorded_command};
use crate::commands::{fan_in, testdfsio};
use crate::exit::{self, Failure, Outcome};
use crate::fleet::FleetKind;
use crate::output::{self, OutputFormat, ShowArgs};
use crate::preflight::PreFlight;
use crate::runtime::block_on;
use crate::watch;
use anyhow::anyhow;
use ew_analyze_storage::job::{self, SCENARIO, TESTDFSIO};
use ew_controller::{Detours, Job, StorageTask, StoredRun};
use ew_model::inventory::{HostId, Inventory};
use ew_model::run::Run;
use ew_model::scenario::{Expect, Roles, Scenario};
use ew_model::storage::StorageOperation;
use ew_model::units;
use ew_plan::inventory::fold;
use ew_plan::scenario::{RoleSets, ScenarioFile, StorageSettings};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

/// `run dfsio`, or a fan-in with a target.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let is_fan_in = args.storage.fan_in || args.scenario == fan_in::SCENARIO;
    let description = match args.scenario.as_str() {
        TESTDFSIO => "Write and read files by Hadoop's own TestDFSIO",
        _ => "Write and read files on storage, as TestDFSIO does",
    };
    let asked = Asked {
        storage: args.storage.clone(),
        is_fan_in,
        roles: None,
        racks: &[],
        description: description.to_owned(),
    };
    carry_out(args, &asked)
}

/// A scenario file with `storage:`; flags override it.
pub(crate) fn run_file(args: &RunArgs, file: &ScenarioFile, job: &StorageSettings) -> Outcome {
    let storage = args.storage.over(job);
    let numbers = storage.storage_nodes.len() + storage.client_counts.len();
    let asked = Asked {
        is_fan_in: storage.fan_in || numbers > 0,
        storage,
        roles: file.roles.as_ref(),
        racks: &file.racks,
        description: format!("{}: {}", file.scenario.name, file.scenario.description),
    };
    carry_out(args, &asked)
}

/// What is to be done, of the command line and of a file.
struct Asked<'a> {
    storage: StorageArgs,
    is_fan_in: bool,
    roles: Option<&'a RoleSets>,
    racks: &'a [String],
    description: String,
}

fn carry_out(args: &RunArgs, asked: &Asked<'_>) -> Outcome {
    refuse_flags_of_flows(args, asked.is_fan_in)?;
    let lab = args.fleet.attach_lab()?.map(Arc::new);
    let roles = args.hosts.roles(lab.as_deref(), asked.roles)?;
    let fleet = &args.fleet;
    let hosts = args
        .hosts
        .joined_by(args.testdfsio.submitter_name(), roles.as_ref());
    let mut roster = hosts.roster(fleet, lab.as_deref(), asked.racks, roles.as_ref())?;
    let task = task(args, asked, &roster.inventory, roles.as_ref())?;
    if args.dry_run {
        return dry_run(&task, &roster.inventory, &args.show);
    }
    let watched = args.watch.as_deref();
    let watched = watched
        .map(|name| watch::find(&roster.inventory, name))
        .transpose()?;
    let launcher = fleet.launcher(lab, &roster)?;
    let endpoint = args.metrics_endpoint()?;
    block_on(args.hosts.resolve(&mut roster, fleet))?;
    confirm(args, &task, &roster.inventory)?;
    let mut options = args.launch_options();
    options.network = args.hosts.network()?;
    options.watched.extend(watched);
    let job = Job {
        scenario: scenario(args, roles, asked.description.clone())?,
        inventory: roster.inventory,
        seed: task.job.seed,
        launcher,
        options,
        runs_dir: args.runs.runs_dir.clone(),
        command: recorded_command(),
        follow_flows: false,
        signals_end_analysis: true,
        detours: Detours::new(),
        node_labels: BTreeMap::new(),
    };
    let stored = watched_run(&job, args.live, args.show.color, endpoint, |listener| {
        let run = || ew_controller::run_storage(&job, &task, listener);
        args.safety.wait_for_hosts(run, output::say)
    })?;
    conclude(&stored, &args.show)
}

/// Prints what the run will do to network and storage, and asks where that is much.
fn confirm(args: &RunArgs, task: &StorageTask, inventory: &Inventory) -> Result<(), Failure> {
    if args.fleet.fleet == FleetKind::Local {
        return Ok(());
    }
    let moving = task
        .operations
        .iter()
        .filter(|operation| **operation != StorageOperation::Clean);
    let bytes = task.job.file_bytes.saturating_mul(u64::from(task.files));
    let bytes = bytes.saturating_mul(moving.count() as u64);
    // A fan-in does all of it once for each of its numbers.
    let numbers = task.fan_in.len() + task.client_counts.len();
    let bytes = bytes.saturating_mul(numbers.max(1) as u64);
    let network = args.hosts.describe_network(inventory);
    let figures = PreFlight::of_files(inventory.hosts.len(), network, bytes, &task.job.target);
    figures.confirm(args.yes, args.live.is_quiet()).map(drop)
}

fn refuse_flags_of_flows(args: &RunArgs, is_fan_in: bool) -> Result<(), Failure> {
    if args.fleet.fleet == FleetKind::Kubernetes {
        return Err(Failure::usage(anyhow!(
            "run dfsio does not work with --via kubernetes yet; give --via ssh, lab or local"
        )));
    }
    if let Some(flag) = args.flag_of_flows() {
        return Err(Failure::usage(anyhow!(
            "{flag} does not work with run dfsio, which has no flows; leave it out"
        )));
    }
    match args.plan.overrides_of_flows().first() {
        Some(change) if !is_fan_in => Err(Failure::usage(anyhow!(
            "--set {change} changes flows, and run dfsio has none; leave it out (a fan-in with --servers has the network's)"
        ))),
        _ => Ok(()),
    }
}

fn task(
    args: &RunArgs,
    asked: &Asked<'_>,
    inventory: &Inventory,
    roles: Option<&Roles>,
) -> Result<StorageTask, Failure> {
    let storage = &asked.storage;
    let is_testdfsio = args.scenario == TESTDFSIO;
    // Its bytes are not eastwest's to verify.
    let seed = args.plan.seed.or(is_testdfsio.then_some(0));
    let mut task = storage.task(workers(inventory, roles), seed)?;
    if is_testdfsio {
        args.testdfsio.prepare(&mut task, storage, inventory)?;
    } else if let Some(flag) = args.testdfsio.given() {
        return Err(Failure::usage(anyhow!(
            "{flag} is of run testdfsio; leave it out"
        )));
    }
    if !asked.is_fan_in {
        return match storage.flag_of_fan_in() {
            None => Ok(task),
            Some(flag) => Err(Failure::usage(anyhow!(
                "{flag} is of a fan-in; add --fan-in, or leave it out"
            ))),
        };
    }
    let wanted = fan_in::Wanted {
        numbers: &storage.storage_nodes,
        clients: &storage.client_counts,
        hosts_file: storage.dfs_hosts.as_deref(),
        disk: storage.disk.as_deref(),
        keep: storage.keep,
        overrides: &args.all_overrides(),
    };
    fan_in::prepare(&mut task, &wanted, inventory, roles)?;
    Ok(task)
}

/// Clients where roles are given, else all hosts.
fn workers(inventory: &Inventory, roles: Option<&Roles>) -> Vec<HostId> {
    let works = |id: &HostId| {
        let name = inventory.name(*id);
        roles.is_none_or(|roles| roles.clients.iter().any(|client| client == name))
    };
    inventory.host_ids().filter(works).collect()
}

/// What the manifest calls the run.
fn scenario(
    args: &RunArgs,
    roles: Option<Roles>,
    description: String,
) -> Result<Scenario, Failure> {
    let name = match args.scenario.as_str() {
        TESTDFSIO => TESTDFSIO,
        _ => SCENARIO,
    };
    Ok(Scenario {
        name: name.to_owned(),
        description,
        expect: Expect {
            nic_bits_per_sec: args.plan.expected_nic_bits_per_sec()?,
            ..Expect::default()
        },
        tests: Vec::new(),
        time_budget_ns: None,
        random_order: false,
        roles,
        thresholds: Vec::new(),
    })
}

fn dry_run(task: &StorageTask, inventory: &Inventory, show: &ShowArgs) -> Outcome {
    let hosts: Vec<&str> = task.workers.iter().map(|id| inventory.name(*id)).collect();
    let words: Vec<&str> = task.operations.iter().map(|o| o.name()).collect();
    let bytes = task.job.file_bytes.saturating_mul(u64::from(task.files));
    if show.format() == OutputFormat::Json {
        let plan = serde_json::json!({
            "job": task.job, "targets": task.endpoints, "operations": words, "files": task.files, "bytes": bytes,
            "hosts": hosts, "keep": task.keep, "read_shift": task.read_shift,
        });
        show.put(&plan.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    show.put(&format!(
        "{}: {} of {}, {} in all, on {} ({}), {} at once on each; operations: {}; seed {}",
        task.endpoints.join(", "),
        counted(task.files as usize, "file"),
        units::format_whole_bytes(task.job.file_bytes),
        units::format_bytes(bytes),
        counted(hosts.len(), "host"),
        fold(&hosts),
        task.job.parallel,
        words.join(", "),
        task.job.seed
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a run of files. `None`: it is a run of flows.
pub(crate) fn show(run: &Run, args: &ShowArgs) -> Option<Outcome> {
    let analysis = job::analyze(run)?;
    let style = args.style();
    let text = match args.format() {
        OutputFormat::Text => Ok(ew_report::storage_text(&analysis, &style)),
        OutputFormat::Json => ew_report::storage_json(&analysis),
        OutputFormat::Csv => Ok(ew_report::storage_csv(run)),
        OutputFormat::Html => ew_report::storage_html(&analysis),
        OutputFormat::CsvHosts
        | OutputFormat::Md
        | OutputFormat::Junit
        | OutputFormat::K8sNetperf
        | OutputFormat::K8sNetperfJson => {
            return Some(Err(Failure::usage(anyhow!(
                "runs of dfsio are shown as text, json, csv or html; give one of these to --format"
            ))));
        }
    };
    let code = ExitCode::from(analysis.status.exit_code());
    let text = text.map_err(Failure::failed);
    Some(text.and_then(|text| args.put(&text)).map(|()| code))
}

fn conclude(stored: &StoredRun, args: &ShowArgs) -> Outcome {
    let Some(analysis) = job::analyze(&stored.run) else {
        return Err(Failure::failed(anyhow!("the run has no storage step")));
    };
    let kept = ew_report::storage_json(&analysis).map_err(Failure::failed)?;
    let kept = ew_store::write_file(&stored.dir, "storage.json", kept.as_bytes());
    let page = ew_report::storage_html(&analysis).map_err(Failure::failed)?;
    let kept = kept.and_then(|_| ew_store::write_file(&stored.dir, "report.html", page.as_bytes()));
    let kept = kept.and_then(|_| testdfsio::keep_logs(&stored.run, &stored.dir));
    let shown = show(&stored.run, args).unwrap_or_else(|| Ok(exit::failed()));
    if let Err(failure) = &shown {
        // The load is over: a verdict that cannot be written to its file is printed.
        output::say(&format!("error: {}", failure.message()));
        let style = output::text_style(args.color);
        output::print(&ew_report::storage_text(&analysis, &style));
    }
    if let Some(error) = stored.unwritten.as_ref().or(kept.as_ref().err()) {
        output::say(&format!(
            "error: the run directory is not whole ({error}): {}",
            stored.dir.display()
        ));
        return Ok(exit::failed());
    }
    let page = stored.dir.join("report.html");
    output::say(&format!("report: {}", page.display()));
    if stored.interrupted {
        return Ok(exit::interrupted());
    }
    Ok(shown.unwrap_or_else(|_| exit::failed()))
}
