//! `eastwest run dfsio`: what TestDFSIO does, on agents, without a JVM.

use crate::commands::run::{RunArgs, block_on, draw_seed, watched_run};
use crate::commands::{fan_in, testdfsio};
use crate::exit::{self, Failure, Outcome};
use crate::fleet::FleetKind;
use crate::output::{self, OutputFormat, ShowArgs};
use crate::preflight::PreFlight;
use crate::watch;
use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};
use ew_analyze::storage::job::{self, SCENARIO, TESTDFSIO};
use ew_controller::{Detours, Job, StorageTask, StoredRun};
use ew_model::inventory::{HostId, Inventory};
use ew_model::run::Run;
use ew_model::scenario::{Expect, Roles, Scenario};
use ew_model::storage::{MAX_FILES_PER_HOST, StorageJob, StorageOperation};
use ew_model::units;
use ew_plan::scenario::{RoleSets, ScenarioFile, StorageSettings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const DEFAULT_FILE_BYTES: u64 = 128 << 20;
const DEFAULT_BUFFER_BYTES: u64 = 1 << 20;
/// What every disk's logical block divides.
const DIRECT_BYTES: u64 = 4096;

/// Flags of `run dfsio`; none has a default of its own, so that it is known which were given.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Storage (run dfsio)")]
pub(crate) struct StorageArgs {
    /// Where the files go: file:///MOUNT, hdfs://NAMENODE:PORT/DIRECTORY or
    /// s3://BUCKET/PREFIX?endpoint=URL; required. Several: host N uses target N modulo their number
    #[arg(long, value_name = "URL,...", value_delimiter = ',')]
    target: Vec<String>,
    /// Repeat with one target less each time, down to one; as `run fan-in --target`
    #[arg(long, conflicts_with = "keep")]
    fan_in: bool,
    /// Numbers of storage nodes or targets of a fan-in [default: all, then one less each time, down
    /// to one]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value_parser!(u32).range(1..))]
    storage_nodes: Vec<u32>,
    /// Numbers of clients of a fan-in, with the storage as it is; each client has as many files as
    /// with all of them [default: all clients]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value_parser!(u32).range(1..))]
    client_counts: Vec<u32>,
    /// The NameNode's hosts file (dfs.hosts, JSON) on this host: a fan-in on hdfs:// takes
    /// DataNodes out of service with it
    #[arg(long, value_name = "FILE")]
    dfs_hosts: Option<PathBuf>,
    /// Directory on the servers' disks, for what they do without the network; fan-in only
    #[arg(long, value_name = "DIRECTORY")]
    disk: Option<PathBuf>,
    /// What is done with them, in this order [default: write,read]
    #[arg(long, value_name = "OPERATION,...", value_delimiter = ',', value_parser = PossibleValuesParser::new(StorageOperation::ALL.map(StorageOperation::name)))]
    operations: Vec<String>,
    /// Files of all hosts together [default: one per host and --parallel]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    files: Option<u32>,
    /// Size of each file, binary units [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    file_size: Option<u64>,
    /// Bytes per read or write call [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    buffer_size: Option<u64>,
    /// Files that each host works on at once [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1024))]
    parallel: Option<u32>,
    /// Go on with writes and reads for this long: each worker passes its files again and again
    /// [default: each file once]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
    time: Option<u64>,
    /// Copies of each block, hdfs:// only [default: the NameNode's]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    replication: Option<u32>,
    /// Bytes of each block, hdfs:// only [default: the NameNode's]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    block_size: Option<u64>,
    /// Bypass the clients' page cache (O_DIRECT)
    #[arg(long)]
    direct: bool,
    /// Close without fsync: writes may end in the clients' page cache
    #[arg(long)]
    no_fsync: bool,
    /// Read with the clients' page cache as it is, instead of dropping it
    #[arg(long, conflicts_with = "direct")]
    warm: bool,
    /// Do not compare what is read with what was written
    #[arg(long)]
    no_verify: bool,
    /// Each host reads the files of the Nth host after it, whose bytes it has not cached; shared
    /// storage only [default: 0]
    #[arg(long, value_name = "N")]
    read_shift: Option<u32>,
    /// Leave the files at the end
    #[arg(long)]
    keep: bool,
}

impl StorageArgs {
    /// Whether there is storage to measure.
    pub(crate) fn has_target(&self) -> bool {
        !self.target.is_empty()
    }

    /// A flag of these that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--target", !self.target.is_empty()),
            ("--fan-in", self.fan_in),
            ("--storage-nodes", !self.storage_nodes.is_empty()),
            ("--client-counts", !self.client_counts.is_empty()),
            ("--dfs-hosts", self.dfs_hosts.is_some()),
            ("--disk", self.disk.is_some()),
            ("--operations", !self.operations.is_empty()),
            ("--files", self.files.is_some()),
            ("--file-size", self.file_size.is_some()),
            ("--buffer-size", self.buffer_size.is_some()),
            ("--parallel", self.parallel.is_some()),
            ("--time", self.time.is_some()),
            ("--replication", self.replication.is_some()),
            ("--block-size", self.block_size.is_some()),
            ("--direct", self.direct),
            ("--no-fsync", self.no_fsync),
            ("--warm", self.warm),
            ("--no-verify", self.no_verify),
            ("--read-shift", self.read_shift.is_some()),
            ("--keep", self.keep),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// With what a scenario file specifies where no flag does.
    fn over(&self, file: &StorageSettings) -> Self {
        let list = |given: &[u32], of_file: &[u32]| match given.is_empty() {
            true => of_file.to_vec(),
            false => given.to_vec(),
        };
        let words = |given: &[String], of_file: Vec<String>| match given.is_empty() {
            true => of_file,
            false => given.to_vec(),
        };
        let operations = file.operations.iter().map(|o| o.name().to_owned());
        let path = |given: &Option<PathBuf>, of_file: &Option<String>| {
            let of_file = of_file.as_ref().map(PathBuf::from);
            given.clone().or(of_file)
        };
        Self {
            target: words(&self.target, file.target.clone()),
            fan_in: self.fan_in || file.fan_in == Some(true),
            storage_nodes: list(&self.storage_nodes, &file.storage_nodes),
            client_counts: list(&self.client_counts, &file.client_counts),
            dfs_hosts: path(&self.dfs_hosts, &file.dfs_hosts),
            disk: path(&self.disk, &file.disk),
            operations: words(&self.operations, operations.collect()),
            files: self.files.or(file.files),
            file_size: self.file_size.or(file.file_bytes),
            buffer_size: self.buffer_size.or(file.buffer_bytes),
            parallel: self.parallel.or(file.parallel),
            time: self.time.or(file.time_ns),
            replication: self.replication.or(file.replication),
            block_size: self.block_size.or(file.block_bytes),
            direct: self.direct || file.direct == Some(true),
            no_fsync: self.no_fsync || file.fsync == Some(false),
            warm: self.warm || file.warm == Some(true),
            no_verify: self.no_verify || file.verify == Some(false),
            read_shift: self.read_shift.or(file.read_shift),
            keep: self.keep || file.keep == Some(true),
        }
    }

    /// A flag that was given, and that only agents' own workers know.
    pub(crate) fn flag_of_workers(&self) -> Option<&'static str> {
        let flags = [
            ("--client-counts", !self.client_counts.is_empty()),
            ("--parallel", self.parallel.is_some()),
            ("--time", self.time.is_some()),
            ("--direct", self.direct),
            ("--no-fsync", self.no_fsync),
            ("--warm", self.warm),
            ("--read-shift", self.read_shift.is_some()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    fn operations(&self) -> Vec<StorageOperation> {
        if self.operations.is_empty() {
            return vec![StorageOperation::Write, StorageOperation::Read];
        }
        let words = self.operations.iter();
        let known = words.filter_map(|word| {
            let mut all = StorageOperation::ALL.into_iter();
            all.find(|operation| operation.name() == word)
        });
        known.collect()
    }

    /// The task, for these workers; `seed` as given on the command line.
    fn task(&self, workers: Vec<HostId>, seed: Option<u64>) -> Result<StorageTask, Failure> {
        let operations = self.operations();
        let endpoints = self.target.iter();
        let endpoints: Vec<String> = endpoints
            .map(|target| target.trim_end_matches('/').to_owned())
            .collect();
        let Some(target) = endpoints.first().cloned() else {
            return Err(Failure::usage(anyhow!(
                "run dfsio needs to know where the files go; give --target file:///MOUNT, hdfs://NAMENODE:PORT/DIRECTORY or s3://BUCKET/PREFIX"
            )));
        };
        let parallel = self.parallel.unwrap_or(1);
        let job = StorageJob {
            target,
            file_bytes: self.file_size.unwrap_or(DEFAULT_FILE_BYTES),
            buffer_bytes: self.buffer_size.unwrap_or(DEFAULT_BUFFER_BYTES),
            parallel,
            direct: self.direct,
            sync: !self.no_fsync,
            drop_cache: !self.warm && !self.direct,
            verify: !self.no_verify,
            seed: self.seed(&operations, seed)?,
            replication: self.replication,
            block_bytes: self.block_size,
            time_ns: self.time,
            testdfsio: None,
        };
        let files = self.files.unwrap_or(workers.len() as u32 * parallel);
        check(&job, files, workers.len())?;
        self.check_endpoints(&job, &endpoints, workers.len())?;
        Ok(StorageTask {
            operations,
            job,
            files,
            workers,
            read_shift: self.read_shift.unwrap_or(0),
            endpoints,
            fan_in: Vec::new(),
            client_counts: Vec::new(),
            maintenance: None,
            network: None,
            disks: None,
            keep: self.keep,
        })
    }

    fn check_endpoints(
        &self,
        job: &StorageJob,
        endpoints: &[String],
        hosts: usize,
    ) -> Result<(), Failure> {
        for target in endpoints {
            let job = StorageJob {
                target: target.clone(),
                ..job.clone()
            };
            ew_storage::check_target(&job).map_err(Failure::usage)?;
        }
        if endpoints.len() > hosts {
            return Err(Failure::usage(anyhow!(
                "{} targets and {hosts} host(s): each host uses one target; give as many hosts, or fewer targets",
                endpoints.len()
            )));
        }
        Ok(())
    }

    /// Flags that only a fan-in has.
    fn flag_of_fan_in(&self) -> Option<&'static str> {
        let flags = [
            ("--storage-nodes", !self.storage_nodes.is_empty()),
            ("--client-counts", !self.client_counts.is_empty()),
            ("--dfs-hosts", self.dfs_hosts.is_some()),
            ("--disk", self.disk.is_some()),
        ];
        flags
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| flag)
    }

    /// What was written by another run can only be compared with that run's seed.
    fn seed(&self, operations: &[StorageOperation], given: Option<u64>) -> Result<u64, Failure> {
        if let Some(seed) = given {
            return Ok(seed);
        }
        let reads_first = operations.iter().find_map(|operation| match operation {
            StorageOperation::Write => Some(false),
            StorageOperation::Clean => None,
            _ => Some(true),
        });
        if reads_first == Some(true) && !self.no_verify {
            return Err(Failure::usage(anyhow!(
                "these files were written by another run: give its --seed (its report shows it), or --no-verify"
            )));
        }
        draw_seed()
    }
}

fn check(job: &StorageJob, files: u32, hosts: usize) -> Result<(), Failure> {
    if let Err(error) = ew_storage::check_target(job) {
        return Err(Failure::usage(error));
    }
    let is_hdfs = job.target.starts_with("hdfs://");
    if !is_hdfs && (job.replication.is_some() || job.block_bytes.is_some()) {
        return Err(Failure::usage(anyhow!(
            "--replication and --block-size are of HDFS, and {} is not; leave them out",
            job.target
        )));
    }
    if job.direct && !job.buffer_bytes.is_multiple_of(DIRECT_BYTES) {
        return Err(Failure::usage(anyhow!(
            "--direct with --buffer-size {}: O_DIRECT needs a multiple of {DIRECT_BYTES} bytes; give for example 1MiB",
            job.buffer_bytes
        )));
    }
    if job.buffer_bytes > 1 << 30 {
        return Err(Failure::usage(anyhow!(
            "--buffer-size {} is more than each worker may have; give at most 1GiB",
            units::format_bytes(job.buffer_bytes)
        )));
    }
    let per_host = (files as usize).div_ceil(hosts.max(1));
    if per_host > MAX_FILES_PER_HOST {
        return Err(Failure::usage(anyhow!(
            "--files {files} is {per_host} files per host; give at most {MAX_FILES_PER_HOST} per host, or larger files"
        )));
    }
    Ok(())
}

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
        return dry_run(&task, &roster.inventory, args.show.format());
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
        command: std::env::args().collect(),
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

fn dry_run(task: &StorageTask, inventory: &Inventory, format: OutputFormat) -> Outcome {
    let hosts: Vec<&str> = task.workers.iter().map(|id| inventory.name(*id)).collect();
    let words: Vec<&str> = task.operations.iter().map(|o| o.name()).collect();
    let bytes = task.job.file_bytes.saturating_mul(u64::from(task.files));
    if format == OutputFormat::Json {
        let plan = serde_json::json!({
            "job": task.job, "operations": words, "files": task.files, "bytes": bytes,
            "hosts": hosts, "keep": task.keep, "read_shift": task.read_shift,
        });
        output::print(&plan.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    output::print(&format!(
        "{}: {} files of {}, {} in all, on {} host(s) ({}), {} at once on each; operations: {}; seed {}",
        task.job.target,
        task.files,
        units::format_whole_bytes(task.job.file_bytes),
        units::format_bytes(bytes),
        hosts.len(),
        hosts.join(","),
        task.job.parallel,
        words.join(", "),
        task.job.seed
    ));
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
    let shown = show(&stored.run, args).unwrap_or_else(|| Ok(exit::failed()))?;
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
    Ok(shown)
}
