//! `eastwest run`: the main job.

mod args;
mod command;
pub(crate) mod drive;
pub(super) mod dry_run;
pub(super) mod sequel;

pub(crate) use args::{LiveArgs, RunArgs};
pub(crate) use command::recorded_command;

use crate::commands::{dfsio, fan_in, networks, scenario, simulate};
use crate::exit::{Failure, Outcome};
use crate::fleet::FleetKind;
use crate::input_file::read_text;
use crate::kubernetes;
use crate::output;
use crate::plan_args::draw_seed;
use crate::preflight::{self, PreFlight};
use crate::renamed;
use crate::runtime::block_on;
use crate::watch;
use anyhow::{Context, anyhow};
use drive::drive;
use dry_run::dry_run;
use ew_analyze_storage::job::{SCENARIO, TESTDFSIO};
use ew_controller::{Detours, Job, LaunchOptions};
use ew_model::pods::PodPath;
use ew_model::scenario::Pattern;
use ew_model::{Inventory, Plan, Scenario, Stage, WorkloadKind};
use ew_plan::scenario::ScenarioFile;
use sequel::{Sequel, drive_and_conclude};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn run(args: &RunArgs) -> Outcome {
    args.show.check_file()?;
    if moves_files(args) {
        return dfsio::run(args);
    }
    let file = asked_scenario(args)?;
    if let Some(storage) = &file.storage {
        return dfsio::run_file(args, &file, storage);
    }
    let of_dfsio = args.storage.given().map(|flag| (flag, SCENARIO));
    let of_testdfsio = args.testdfsio.given().map(|flag| (flag, TESTDFSIO));
    if let Some((flag, owner)) = of_dfsio.or(of_testdfsio) {
        return Err(Failure::usage(anyhow!(
            "{flag} is of `run {owner}`, and `{}` moves no files; leave it out",
            args.scenario
        )));
    }
    run_flows(args, file)
}

fn run_flows(args: &RunArgs, file: ScenarioFile) -> Outcome {
    let ScenarioFile {
        mut scenario,
        racks,
        roles,
        ..
    } = file;
    let seed = args.plan.seed.map_or_else(draw_seed, Ok)?;
    if args.fleet.fleet == FleetKind::Sim {
        scenario.roles = args.hosts.roles(None, roles.as_ref())?;
        return simulate::run(args, scenario, seed);
    }
    if args.fleet.fleet == FleetKind::Kubernetes {
        scenario.roles = args.hosts.roles(None, roles.as_ref())?;
        return block_on(run_in_pods(args, scenario, &racks, seed));
    }
    if !kubernetes::paths(&scenario).is_empty() {
        return Err(Failure::usage(anyhow!(
            "`{}` compares pods with their nodes; add --via kubernetes",
            args.scenario
        )));
    }
    let lab = args.fleet.attach_lab()?.map(Arc::new);
    scenario.roles = args.hosts.roles(lab.as_deref(), roles.as_ref())?;
    let known = scenario.roles.as_ref();
    let mut roster = args
        .hosts
        .roster(&args.fleet, lab.as_deref(), &racks, known)?;
    if args.fleet.fleet == FleetKind::Slurm {
        let runs = args.hosts.networks().len().max(1);
        args.fleet
            .slurm
            .fit(&mut scenario, &roster.inventory, seed, runs)?;
    }
    if args.dry_run {
        let network = args.hosts.describe_network(&roster.inventory);
        return dry_run(args, &scenario, &roster.inventory, &network, seed);
    }
    let mut options = launch_options(args, &roster.inventory)?;
    let sequel = Sequel::of(args, &scenario)?;
    let launcher = args.fleet.launcher(lab, &roster)?;
    let endpoint = args.metrics_endpoint()?;
    block_on(args.hosts.resolve(&mut roster, &args.fleet))?;
    options.max_bytes = confirm(args, &scenario, &roster.inventory, seed)?;
    let job = Job {
        scenario,
        inventory: roster.inventory,
        seed,
        launcher,
        options,
        runs_dir: args.runs.runs_dir.clone(),
        command: recorded_command(),
        follow_flows: args.live.follows_flows(),
        // The live page stays until a signal ends it.
        signals_end_analysis: args.web.is_none(),
        detours: Detours::new(),
        node_labels: BTreeMap::new(),
    };
    match args.hosts.networks().len() {
        0 | 1 => Ok(drive_and_conclude(args, &job, sequel, endpoint)?.0),
        _ => networks::run(args, job, sequel, endpoint),
    }
}

/// What is to be run, with every change of it.
fn asked_scenario(args: &RunArgs) -> Result<ScenarioFile, Failure> {
    let overrides = args.all_overrides();
    let mut file = match &args.plan.k8s_netperf {
        Some(path) => load_k8s_netperf(path, &args.plan.paths, &overrides)?,
        None => load_scenario(&args.scenario, &overrides)?,
    };
    args.plan.turn(&mut file.scenario);
    if let Some(test) = args.safety.cannot_limit(&file.scenario) {
        return Err(Failure::usage(anyhow!(
            "--max-rate limits bulk flows and small requests of eastwest's own engine, and test `{test}` has others; leave out one of them"
        )));
    }
    check_pod_loss(&file.scenario)?;
    let is_of_pods = args.show.format().report_format().is_of_pods();
    if is_of_pods && kubernetes::paths(&file.scenario).is_empty() {
        let name = file.scenario.name;
        return Err(Failure::usage(ew_report::ReportError::NoPods(name)));
    }
    Ok(file)
}

/// An allowed loss of pods that nothing is compared with would pass whatever pods lose.
fn check_pod_loss(scenario: &Scenario) -> Result<(), Failure> {
    let carries = |path: PodPath| {
        let of_path =
            |pattern: &Pattern| matches!(pattern, Pattern::Pods { path: other } if *other == path);
        let mut tests = scenario.tests.iter();
        tests.any(|test| test.workload.kind == WorkloadKind::TcpStream && of_path(&test.pattern))
    };
    let compared = [PodPath::OtherNode, PodPath::OtherZone];
    let is_compared = |path: PodPath| carries(path) && path.baseline().is_some_and(carries);
    if scenario.expect.pod_loss.is_none() || compared.into_iter().any(is_compared) {
        return Ok(());
    }
    Err(Failure::usage(anyhow!(
        "--tcp-tolerance (expect.pod-loss) compares tcp-stream of pods on different nodes with hostNetwork, and `{}` has no such tests: run `pods`, \
         or a configuration with TCP_STREAM by --paths host-network,other-node",
        scenario.name
    )))
}

/// Flags that would change nothing in pods.
fn refuse_without_effect(args: &RunArgs, compares: bool) -> Result<(), Failure> {
    args.fleet.check_flags()?;
    if let Some(flag) = args.fleet.flag_of_ssh() {
        return Err(Failure::usage(anyhow!(
            "{flag} is of --via ssh, and pods are entered through the API server; leave it out with --via kubernetes"
        )));
    }
    if let Some(flag) = args.hosts.flag_without_pods() {
        return Err(Failure::usage(anyhow!(
            "{flag} is of hosts with names to look up, and pods get their addresses from the cluster; leave it out, or choose another network \
             of the pods with --network CIDR"
        )));
    }
    match args.hosts.network()? {
        Some(_) if compares => Err(Failure::usage(anyhow!(
            "--network and --interface choose among a pod's own networks, and `{}` compares its pod network with the nodes'; measure a second \
             network with another scenario, such as `run pair`",
            args.scenario
        ))),
        _ => Ok(()),
    }
}

fn launch_options(args: &RunArgs, inventory: &Inventory) -> Result<LaunchOptions, Failure> {
    let watched = args.watch.as_deref();
    let watched = watched.map(|name| watch::find(inventory, name));
    let mut options = args.launch_options();
    options.network = args.hosts.networks().into_iter().next();
    options.watched.extend(watched.transpose()?);
    Ok(options)
}

/// Prints what the run will do to the network, and asks where that is much. Returns what it may
/// move without another question.
fn confirm(
    args: &RunArgs,
    scenario: &Scenario,
    inventory: &Inventory,
    seed: u64,
) -> Result<Option<u64>, Failure> {
    let plan = ew_plan::plan(scenario, inventory, seed).map_err(Failure::usage)?;
    if let Some(words) = preflight::over_budget(&plan, scenario).filter(|_| !args.live.quiet) {
        output::say(&words);
    }
    if args.fleet.fleet == FleetKind::Local {
        say_time(&plan, args.live.quiet);
        return Ok(None);
    }
    let network = args.hosts.describe_network(inventory);
    let ports = args.fleet.data_ports();
    let hosts = inventory.hosts.len();
    let figures = PreFlight::of(&plan, hosts, network, ports, args.safety.max_rate);
    let networks = args.hosts.networks().len();
    let figures = figures.in_networks(networks);
    let is_confirmed = figures.confirm(args.yes, args.live.quiet)?;
    Ok(preflight::max_bytes(is_confirmed, args.yes, networks))
}

/// Nobody should have to wait to learn how long they wait.
fn say_time(plan: &Plan, quiet: bool) {
    if !quiet {
        output::say(&format!("estimated time: {}", preflight::time_of(plan)));
    }
}

/// A fan-in without storage is the network's part of it: flows.
fn moves_files(args: &RunArgs) -> bool {
    let is_storage = match args.scenario.as_str() {
        SCENARIO | TESTDFSIO => true,
        fan_in::SCENARIO => args.storage.has_target(),
        _ => false,
    };
    is_storage && args.plan.k8s_netperf.is_none()
}

/// The same over pods, which are made first and removed after, whatever happens in between.
async fn run_in_pods(args: &RunArgs, scenario: Scenario, racks: &[String], seed: u64) -> Outcome {
    let paths = kubernetes::paths(&scenario);
    refuse_without_effect(args, !paths.is_empty())?;
    let cluster = args.fleet.kubernetes.open().await?;
    let mut inventory = cluster.inventory(&args.hosts, racks, scenario.roles.as_ref())?;
    if !paths.is_empty() {
        inventory = kubernetes::with_pods(&inventory, &paths);
    }
    if args.dry_run {
        let network = args.hosts.describe_network(&inventory);
        return dry_run(args, &scenario, &inventory, &network, seed);
    }
    let plan = ew_plan::plan(&scenario, &inventory, seed).map_err(Failure::usage)?;
    say_time(&plan, args.live.quiet);
    let planned_ns = plan.stages.iter().map(Stage::planned_ns).sum();
    let run = format!("{:08x}", draw_seed()?);
    let data_port = args.fleet.first_data_port();
    let limit = args.fleet.launch_timeout();
    let planned = Duration::from_nanos(planned_ns);
    let objects = cluster.objects(&run, data_port, planned, limit)?;
    let plans = cluster.pod_plans(&inventory, !paths.is_empty())?;
    let services = kubernetes::services(&scenario);
    if args.fleet.kubernetes.print_manifests {
        output::print(&ew_kubernetes::to_yaml(&objects.all(&plans, &services)));
        return Ok(ExitCode::SUCCESS);
    }
    let max_bytes = confirm(args, &scenario, &inventory, seed)?;
    let mut sequel = Sequel::of(args, &scenario)?;
    let mut options = launch_options(args, &inventory)?;
    options.max_bytes = max_bytes;
    let endpoint = args.metrics_endpoint()?;
    let placement = cluster.place(objects, &plans, &services, limit).await?;
    placement.give_addresses(&mut inventory, options.network.is_some());
    let job = Job {
        scenario,
        seed,
        launcher: Arc::clone(&placement.launcher),
        options,
        runs_dir: args.runs.runs_dir.clone(),
        command: recorded_command(),
        follow_flows: args.live.follows_flows(),
        // The pods must not be left behind.
        signals_end_analysis: false,
        detours: placement.detours(&inventory, &paths),
        node_labels: cluster.labels_of(&inventory),
        inventory,
    };
    let color = args.show.color;
    let mut finished = drive(
        &job,
        args.live,
        &args.safety,
        color,
        endpoint,
        &mut |at_ns, event| sequel.take(at_ns, event),
    );
    placement.finish(&mut finished).await;
    sequel.conclude(args, &finished?).await
}

/// A file when its name is like one's, else a built-in.
pub(crate) fn load_scenario(name: &str, overrides: &[String]) -> Result<ScenarioFile, Failure> {
    let name = renamed::scenario(name, output::say);
    let is_file = name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml");
    if is_file {
        let text = read_text(Path::new(name))
            .with_context(|| format!("cannot read the scenario file `{name}`"))
            .map_err(Failure::usage)?;
        return ew_plan::scenario::parse_file(&text, name, overrides).map_err(Failure::usage);
    }
    let text = ew_plan::scenario::builtin(name).ok_or_else(|| scenario::unknown(name))?;
    let file_name = Path::new("built-in").join(name).display().to_string();
    ew_plan::scenario::parse_file(text, &file_name, overrides).map_err(Failure::usage)
}

/// In our own words; what cannot be run is named.
fn load_k8s_netperf(
    path: &Path,
    paths: &[PodPath],
    overrides: &[String],
) -> Result<ScenarioFile, Failure> {
    let name = path.display().to_string();
    let text = read_text(path)
        .with_context(|| format!("cannot read `{name}`"))
        .map_err(Failure::usage)?;
    let translated = ew_plan::scenario::from_k8s_netperf(&text, &name, paths);
    let translated = translated.map_err(Failure::usage)?;
    for skipped in &translated.skipped {
        output::say(&format!("skipped {skipped}"));
    }
    ew_plan::scenario::parse_file(&translated.yaml, &name, overrides).map_err(Failure::usage)
}
