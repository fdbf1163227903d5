//! `eastwest run`: the main job.

use crate::commands::dfsio::{self, StorageArgs};
use crate::commands::testdfsio::TestDfsioArgs;
use crate::commands::{fan_in, networks, report, scenario, simulate};
use crate::exit::{self, Failure, Outcome};
use crate::fleet::{FleetArgs, FleetKind};
use crate::hosts::HostArgs;
use crate::http::{self, Endpoint};
use crate::kubernetes;
use crate::metrics;
use crate::output::{self, ColorChoice, OutputFormat, RunsDirArg, ShowArgs};
use crate::plan_args::PlanArgs;
use crate::predecessor::{Predecessor, PredecessorArgs};
use crate::preflight::{self, PreFlight};
use crate::push::{self, Pusher, Pushgateway};
use crate::renamed;
use crate::safety::SafetyArgs;
use crate::sinks::{self, Sinks};
use crate::watch::{self, Log, Watch};
use crate::web::LivePage;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use ew_analyze::storage::job::{SCENARIO, TESTDFSIO};
use ew_controller::{Detours, Finished, Job, LaunchOptions, RunError};
use ew_model::pods::PodPath;
use ew_model::scenario::Pattern;
use ew_model::{Inventory, Plan, RunEvent, Scenario, Stage, WorkloadKind};
use ew_plan::estimate::{estimate_stage, fills_links};
use ew_plan::scenario::ScenarioFile;
use ew_report::live::Live;
use ew_report::prometheus::Exposition;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A built-in scenario (see `eastwest scenario list`), a YAML file, `dfsio` for files on
    /// storage, or `testdfsio` for Hadoop's own job
    #[arg(index = 1, default_value = "qualify")]
    pub(crate) scenario: String,
    /// Hosts, in addition to those of --hosts
    #[arg(index = 2, value_name = "HOST")]
    more_hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) safety: SafetyArgs,
    /// Print stages, rounds, flows, expected duration and bytes, and stop
    #[arg(long, help_heading = "Safety")]
    pub(crate) dry_run: bool,
    /// Start without the question that a terminal gets above 32 hosts or 1 TiB
    #[arg(short, long, help_heading = "Safety")]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
    #[command(flatten)]
    pub(crate) testdfsio: TestDfsioArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) runs: RunsDirArg,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) live: LiveArgs,
    /// Serve Prometheus metrics of the run at this address, to whoever may connect; for example
    /// 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = http::parse_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Show the run as it goes in a browser, at this address with a random token in its path, until
    /// Ctrl-C [default address: 127.0.0.1 and any free port]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = http::parse_address)]
    web: Option<SocketAddr>,
    /// Push the run's metrics and results to a Prometheus Pushgateway afterwards, for example
    /// http://pushgateway:9091
    #[arg(long, value_name = "URL", value_parser = push::parse_gateway)]
    push: Option<Pushgateway>,
    /// Send progress every 5 s, and then the verdict with its findings, as JSON by POST
    #[arg(long, value_name = "URL", value_parser = sinks::parse_url)]
    webhook: Option<sinks::Url>,
    /// Send the run's metrics every 5 s, and then its results, by Prometheus remote write, for
    /// example http://prometheus:9090/api/v1/write
    #[arg(long, value_name = "URL", value_parser = sinks::parse_url)]
    remote_write: Option<sinks::Url>,
    /// PEM file of the certificates that --push, --webhook and --remote-write trust by https
    /// [default: the system's]
    #[arg(long, value_name = "FILE")]
    push_ca: Option<PathBuf>,
    #[command(flatten)]
    predecessor: PredecessorArgs,
    /// Show this host as `eastwest top` does while the run goes on: full screen on a terminal, else
    /// text every 5 s
    #[arg(long, value_name = "HOST")]
    pub(crate) watch: Option<String>,
}

impl RunArgs {
    /// All named hosts together.
    pub(crate) fn settled(mut self) -> Self {
        let more = std::mem::take(&mut self.more_hosts);
        self.hosts.add(more);
        self
    }

    /// Of `eastwest pair`, whose `-l` was a user's name before it was a message size.
    pub(crate) fn settled_pair(mut self) -> Self {
        if let Some(user) = self.plan.user_in_length() {
            output::say(
                "note: -l is the message size here, as in iperf3; name the user with --ssh-user",
            );
            self.fleet.log_in_as(user);
        }
        self.settled()
    }

    /// All changes of the scenario, in its own keys.
    pub(crate) fn all_overrides(&self) -> Vec<String> {
        let polite = self.safety.polite.then(|| "dscp=le".to_owned());
        polite
            .into_iter()
            .chain(self.plan.all_overrides())
            .collect()
    }

    /// A flag that was given and that only runs with agents know.
    pub(super) fn flag_of_agents(&self) -> Option<&'static str> {
        let flags = [
            ("--metrics", self.metrics.is_some()),
            ("--watch", self.watch.is_some()),
            ("--web", self.web.is_some()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// Where metrics are served, taken before anything starts.
    pub(crate) fn metrics_endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let bind = |address| Endpoint::bind(address, "metrics", "--metrics");
        self.metrics.map(bind).transpose()
    }

    /// Options of this run's agents.
    pub(crate) fn launch_options(&self) -> LaunchOptions {
        let is_local = self.fleet.fleet == FleetKind::Local;
        self.safety.apply(self.fleet.options(), is_local)
    }

    /// A flag that was given and that only runs with flows know.
    pub(crate) fn flag_of_flows(&self) -> Option<&'static str> {
        let flags = [
            ("--push", self.push.is_some()),
            ("--webhook", self.webhook.is_some()),
            ("--remote-write", self.remote_write.is_some()),
            ("--web", self.web.is_some()),
            ("--compare-with", self.predecessor.is_given()),
            ("--max-rate", self.safety.max_rate.is_some()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }
}

/// What is reported on stderr while a run goes on.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LiveArgs {
    /// How to show progress on stderr
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    live: LiveChoice,
    /// Show no progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

/// `--live`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LiveChoice {
    /// Bars on a terminal, lines elsewhere
    Auto,
    /// Lines: for up to 4 flows at once in windows of 2 s or more, one per flow and second
    Lines,
}

impl LiveArgs {
    /// As on a command line without the options.
    pub(crate) const DEFAULT: Self = Self {
        live: LiveChoice::Auto,
        quiet: false,
    };

    pub(super) fn is_quiet(self) -> bool {
        self.quiet
    }

    fn draws_bars(self) -> bool {
        self.live == LiveChoice::Auto
            && !self.quiet
            && std::io::stderr().is_terminal()
            && output::can_move_cursor()
    }

    /// Lines have space for single flows.
    pub(crate) fn follows_flows(self) -> bool {
        !self.draws_bars() && !self.quiet
    }
}

pub(crate) fn run(args: &RunArgs) -> Outcome {
    if moves_files(args) {
        return dfsio::run(args);
    }
    let file = asked_scenario(args)?;
    if let Some(storage) = &file.storage {
        return dfsio::run_file(args, &file, storage);
    }
    if let Some(flag) = args.storage.given().or(args.testdfsio.given()) {
        return Err(Failure::usage(anyhow!(
            "{flag} is of `run dfsio`, and `{}` moves no files; leave it out",
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
        command: std::env::args().collect(),
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

/// A run with all that follows it.
pub(super) fn drive_and_conclude(
    args: &RunArgs,
    job: &Job,
    mut sequel: Sequel,
    endpoint: Option<Endpoint>,
) -> Result<(ExitCode, Finished), Failure> {
    let (live, color) = (args.live, args.show.color);
    let finished = drive(
        job,
        live,
        &args.safety,
        color,
        endpoint,
        &mut |at_ns, event| sequel.take(at_ns, event),
    )?;
    let code = block_on(sequel.conclude(args, &finished))?;
    Ok((code, finished))
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
    let objects = cluster.objects(&run, data_port, Duration::from_nanos(planned_ns))?;
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
    let limit = args.fleet.launch_timeout();
    let placement = cluster.place(objects, &plans, &services, limit).await?;
    placement.give_addresses(&mut inventory, options.network.is_some());
    let job = Job {
        scenario,
        seed,
        launcher: Arc::clone(&placement.launcher),
        options,
        runs_dir: args.runs.runs_dir.clone(),
        command: std::env::args().collect(),
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

/// What goes with a run and follows it, next to its report.
pub(super) struct Sequel {
    predecessor: Option<Predecessor>,
    pusher: Option<Pusher>,
    /// What is pushed.
    exposition: Option<Exposition>,
    sinks: Sinks,
    page: Option<LivePage>,
}

impl Sequel {
    /// Before the run: afterwards it would be the last one itself.
    pub(super) fn of(args: &RunArgs, scenario: &Scenario) -> Result<Self, Failure> {
        let predecessor = args.predecessor.find(&args.runs.runs_dir, &scenario.name)?;
        let began = ew_sys::clock::realtime_ns();
        let pusher = |gateway| Pusher::new(gateway, args.push_ca.as_deref());
        let pusher = args.push.as_ref().map(pusher).transpose();
        let pusher = pusher.map_err(Failure::usage)?;
        let build = args.fleet.options().build;
        let exposition = |_: &Pusher| Exposition::new(&build, began);
        let (webhook, remote_write) = (args.webhook.as_ref(), args.remote_write.as_ref());
        let ca = args.push_ca.as_deref();
        let sinks = Sinks::new(webhook, remote_write, &scenario.name, &build, ca);
        let page = |address| {
            let endpoint = Endpoint::bind(address, "the live page", "--web")?;
            LivePage::serve(endpoint, &args.runs.runs_dir)
        };
        Ok(Self {
            predecessor,
            exposition: pusher.as_ref().map(exposition),
            pusher,
            sinks: sinks.map_err(Failure::usage)?,
            page: args.web.map(page).transpose()?,
        })
    }

    /// Takes one event; `at_ns` is the time since the run began.
    pub(super) fn take(&mut self, at_ns: u64, event: &RunEvent) {
        if let Some(exposition) = &mut self.exposition {
            exposition.take(at_ns, event);
        }
        self.sinks.take(at_ns, event);
        if let Some(page) = &self.page {
            page.take(at_ns, event);
        }
    }

    /// Shows the report, pushes the metrics, compares, and stays while a page is shown.
    pub(super) async fn conclude(mut self, args: &RunArgs, finished: &Finished) -> Outcome {
        report::show(&finished.analysis, &args.show)?;
        self.push(finished).await;
        std::mem::take(&mut self.sinks).finish(&finished.analysis);
        let page = self.page.take();
        let code = self.verdict(args, finished)?;
        if let Some(page) = page.filter(|_| !finished.interrupted) {
            page.stay(args.live.quiet).await?;
        }
        Ok(code)
    }

    async fn push(&mut self, finished: &Finished) {
        if let (Some(pusher), Some(exposition)) = (&self.pusher, &mut self.exposition) {
            let metrics = exposition.render_final(&finished.analysis);
            let scenario = &finished.analysis.run.scenario.name;
            if let Err(error) = pusher.push(scenario, metrics).await {
                output::say(&format!("warning: the metrics were not pushed: {error:#}"));
            }
        }
    }

    /// A verdict's exit code other than 0 is kept.
    fn verdict(self, args: &RunArgs, finished: &Finished) -> Outcome {
        let code = conclude(finished, args.live.quiet)?;
        match self.predecessor {
            Some(predecessor) if finished.unwritten.is_none() && !finished.interrupted => {
                let regression = predecessor.judge(&finished.dir)?;
                Ok(regression
                    .filter(|_| code == ExitCode::SUCCESS)
                    .unwrap_or(code))
            }
            _ => Ok(code),
        }
    }
}

/// Runs a job with the live view on stderr, its metrics at the endpoint and its events also to
/// `also`, and writes the HTML report next to the data.
pub(crate) fn drive(
    job: &Job,
    args: LiveArgs,
    safety: &SafetyArgs,
    color: ColorChoice,
    endpoint: Option<Endpoint>,
    also: &mut dyn FnMut(u64, &RunEvent),
) -> Result<Finished, Failure> {
    let finished = watched_run(job, args, color, endpoint, |listener| {
        let run = || {
            ew_controller::run(job, &mut |at_ns, event| {
                also(at_ns, event);
                listener(at_ns, event);
            })
        };
        safety.wait_for_hosts(run, output::say)
    })?;
    let written = report::write_html(&finished.analysis, &finished.dir);
    // A disk that is full has cost enough: the verdict is shown all the same.
    if finished.unwritten.is_none() {
        written?;
    }
    Ok(finished)
}

/// Carries a job out with the live view on stderr and its metrics at the endpoint.
pub(crate) fn watched_run<T>(
    job: &Job,
    args: LiveArgs,
    color: ColorChoice,
    endpoint: Option<Endpoint>,
    carry_out: impl FnOnce(&mut dyn FnMut(u64, &RunEvent)) -> Result<T, RunError>,
) -> Result<T, Failure> {
    let color = color.enabled(std::io::stderr().is_terminal());
    let metrics = endpoint
        .map(|endpoint| {
            if !args.quiet {
                output::say(&format!("metrics: http://{}/metrics", endpoint.address()));
            }
            metrics::serve(endpoint, &job.options.build)
        })
        .transpose()?;
    let log = Log::default();
    let mut watch = job.options.watched.first().map(|host| {
        let name = job.inventory.name(*host).to_owned();
        Watch::start(*host, name, log.clone(), args.draws_bars())
    });
    // Where a watched host is shown, there is no space for bars.
    let draws_bars = args.draws_bars() && watch.is_none();
    let mut live = Live::new(log, draws_bars, color, args.quiet);
    let finished = carry_out(&mut |at_ns, event| {
        if let Some(metrics) = &metrics {
            metrics.take(at_ns, event);
        }
        live.handle(at_ns, event);
        if let Some(watch) = &mut watch {
            watch.handle(at_ns, event);
        }
    });
    drop(metrics);
    live.finish();
    if let Some(watch) = watch {
        watch.finish();
    }
    finished.map_err(|error| match error {
        RunError::Interrupted => Failure::Interrupted,
        RunError::Plan(_) => Failure::usage(error),
        _ => Failure::failed(error),
    })
}

/// Prints where everything is unless it is to be quiet, and turns the verdict into the exit code.
pub(crate) fn conclude(finished: &Finished, quiet: bool) -> Outcome {
    if let Some(error) = &finished.unwritten {
        output::say(&format!(
            "error: the run directory is not whole ({error}): the verdict is of what could be written to {}",
            finished.dir.display()
        ));
        return Ok(exit::failed());
    }
    if !quiet {
        output::say(&format!(
            "report: {}",
            finished.dir.join("report.html").display()
        ));
    }
    if finished.interrupted {
        return Ok(exit::interrupted());
    }
    Ok(ExitCode::from(finished.analysis.verdict.status.exit_code()))
}

/// One thread is enough for control, and children that must die with us are tied to it.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    runtime.block_on(work)
}

/// A file when its name is like one's, else a built-in.
pub(crate) fn load_scenario(name: &str, overrides: &[String]) -> Result<ScenarioFile, Failure> {
    let name = renamed::scenario(name, output::say);
    let is_file = name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml");
    if is_file {
        let text = std::fs::read_to_string(name)
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
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{name}`"))
        .map_err(Failure::usage)?;
    let translated = ew_plan::scenario::from_k8s_netperf(&text, &name, paths);
    let translated = translated.map_err(Failure::usage)?;
    for skipped in &translated.skipped {
        output::say(&format!("skipped {skipped}"));
    }
    ew_plan::scenario::parse_file(&translated.yaml, &name, overrides).map_err(Failure::usage)
}

/// Short enough to be typed again.
pub(crate) fn draw_seed() -> Result<u64, Failure> {
    getrandom::u32()
        .map(u64::from)
        .map_err(|error| Failure::failed(anyhow::anyhow!("no random seed: {error}")))
}

pub(super) fn dry_run(
    args: &RunArgs,
    scenario: &Scenario,
    inventory: &Inventory,
    network: &str,
    seed: u64,
) -> Outcome {
    let plan = ew_plan::plan(scenario, inventory, seed).map_err(Failure::usage)?;
    if args.show.format() == OutputFormat::Json {
        let text = serde_json::to_string_pretty(&plan).map_err(Failure::failed)?;
        args.show.put(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let nic = scenario.expect.nic_bits_per_sec;
    let bytes: Vec<Option<u64>> = plan
        .stages
        .iter()
        .map(|stage| estimate_stage(stage, nic).bytes)
        .collect();
    let style = args.show.style();
    args.show.put(&ew_report::dry_run(
        &plan, inventory, network, &bytes, &style,
    ))?;
    let is_unknown = |(stage, bytes): (&Stage, &Option<u64>)| fills_links(stage) && bytes.is_none();
    if plan.stages.iter().zip(&bytes).any(is_unknown) {
        output::say("bytes are unknown without a line rate; state it with --expect-nic 10G");
    }
    Ok(ExitCode::SUCCESS)
}
