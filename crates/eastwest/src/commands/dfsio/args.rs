//! The flags of `eastwest run dfsio`, and the task that they describe.

use crate::exit::Failure;
use crate::plan_args::draw_seed;
use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};
use ew_controller::StorageTask;
use ew_model::inventory::HostId;
use ew_model::storage::{MAX_FILES_PER_HOST, StorageJob, StorageOperation};
use ew_model::units;
use ew_plan::scenario::StorageSettings;
use std::path::PathBuf;

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
    pub(super) fan_in: bool,
    /// Numbers of storage nodes or targets of a fan-in [default: all, then one less each time, down
    /// to one]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value_parser!(u32).range(1..))]
    pub(super) storage_nodes: Vec<u32>,
    /// Numbers of clients of a fan-in, with the storage as it is; each client has as many files as
    /// with all of them [default: all clients]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value_parser!(u32).range(1..))]
    pub(super) client_counts: Vec<u32>,
    /// The NameNode's hosts file (dfs.hosts, JSON) on this host: a fan-in on hdfs:// takes
    /// DataNodes out of service with it
    #[arg(long, value_name = "FILE")]
    pub(super) dfs_hosts: Option<PathBuf>,
    /// Directory on the servers' disks, for what they do without the network; fan-in only
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) disk: Option<PathBuf>,
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
    pub(super) keep: bool,
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
    pub(super) fn over(&self, file: &StorageSettings) -> Self {
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
    pub(super) fn task(
        &self,
        workers: Vec<HostId>,
        seed: Option<u64>,
    ) -> Result<StorageTask, Failure> {
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
    pub(super) fn flag_of_fan_in(&self) -> Option<&'static str> {
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
