//! Storage jobs: what workers do with files, and what they saw.

use crate::inventory::HostId;
use crate::latency::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Files of one host in one step, at most: its report must fit a frame.
pub const MAX_FILES_PER_HOST: usize = 10_000;

/// What workers do with their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageOperation {
    /// Create and fill.
    Write,
    /// Read from start to end.
    Read,
    /// Read as many bytes as the file has, buffers at random offsets.
    RandomRead,
    /// Write as many bytes again at the end.
    Append,
    /// Remove.
    Clean,
}

/// How files are written and read; the same in all steps of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageJob {
    /// Where, as a URL: `file:///mnt/share`, `hdfs://nn:8020/benchmarks`, `s3://bucket/prefix`.
    pub target: String,
    /// Bytes that a write or an append puts into a file.
    pub file_bytes: u64,
    /// Bytes per read or write call.
    pub buffer_bytes: u64,
    /// Files that a host works on at once.
    pub parallel: u32,
    /// Past the client's page cache (`O_DIRECT`); `file://` only.
    pub direct: bool,
    /// fsync before close; `file://` only.
    pub sync: bool,
    /// The client's page cache is dropped before each file is read (`posix_fadvise`); `file://`
    /// only.
    pub drop_cache: bool,
    /// Every byte read is compared with what was written.
    pub verify: bool,
    /// Of the content.
    pub seed: u64,
    /// Copies of each block; `hdfs://` only. `None`: the NameNode's default.
    #[serde(default)]
    pub replication: Option<u32>,
    /// Bytes of each block; `hdfs://` only. `None`: the NameNode's default.
    #[serde(default)]
    pub block_bytes: Option<u64>,
    /// Writes and reads go on for this long at least: each worker passes its files again and again,
    /// and all of them once. `None`: once.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Hadoop's own TestDFSIO moves the files, as a job on its cluster. `None`: the workers do.
    #[serde(default)]
    pub testdfsio: Option<TestDfsio>,
}

/// How Hadoop's TestDFSIO is started on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestDfsio {
    /// `yarn` or `hadoop`, or the directory that has it below `bin`. `None`: that of HADOOP_HOME,
    /// else of PATH, else the default directories.
    pub hadoop: Option<String>,
    /// `hadoop-mapreduce-client-jobclient-*-tests.jar`. `None`: the one below that directory.
    pub jar: Option<String>,
    /// `KEY=VALUE` of Hadoop's configuration, each passed with `-D`.
    pub settings: Vec<String>,
}

/// What a job of TestDFSIO printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestDfsioLog {
    /// The command line.
    pub command: Vec<String>,
    /// Its log, line by line, in order. Of a long one the middle is missing.
    pub lines: Vec<LogLine>,
    /// Lines missing there.
    pub skipped_lines: u64,
    /// What it appended to its result file.
    pub result: String,
    /// From the common start to the process's start.
    pub started_ns: u64,
    /// From there to its end.
    pub length_ns: u64,
}

/// A line, and when it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Since the process's start.
    pub at_ns: u64,
    /// Without its end.
    pub text: String,
}

/// A step of one host. Crosses the control link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageOrder {
    /// Number of the step in the run, from 0.
    pub step: u32,
    /// What to do.
    pub operation: StorageOperation,
    /// How.
    pub job: StorageJob,
    /// Numbers of the files. Clean: empty for every test file that is there.
    pub files: Vec<u32>,
    /// Bytes each file has before the step.
    pub present_bytes: u64,
    /// When the workers start: this host's CLOCK_MONOTONIC.
    pub start_ns: u64,
}

/// How a file's part of a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOutcome {
    /// Whole.
    Done,
    /// Not: in words, with the call, the name and the system's own message.
    Failed {
        /// In words.
        error: String,
    },
    /// A read returned other bytes than were written.
    Corrupt {
        /// First wrong byte.
        offset: u64,
        /// What was there instead, in words.
        found: String,
    },
    /// The run was stopped meanwhile.
    Cancelled,
}

/// One file in one step. Times that were not reached are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Number of the file.
    pub file: u32,
    /// Which of the host's workers, from 0.
    pub worker: u32,
    /// From the common start to the open call.
    pub start_ns: u64,
    /// Of the open or create call.
    pub open_ns: Option<u64>,
    /// From after the open to the end of the first read or write call.
    pub first_byte_ns: Option<u64>,
    /// From after the open to before the close. Clean: of the removal.
    pub io_ns: Option<u64>,
    /// Of fsync, if asked for, and close.
    pub close_ns: Option<u64>,
    /// Bytes read or written.
    pub bytes: u64,
    /// How it ended.
    pub outcome: FileOutcome,
}

/// What one host's workers saw in one step. Crosses the control link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageReport {
    /// Of the order.
    pub step: u32,
    /// In the order in which workers took them.
    pub files: Vec<FileRecord>,
    /// Length of the intervals below.
    pub interval_ns: u64,
    /// Bytes moved per interval since the common start, all workers.
    pub interval_bytes: Vec<u64>,
    /// Times of single read or write calls.
    pub calls: Histogram,
    /// Time the workers spent making and comparing content, summed over them. Part of the I/O
    /// times.
    pub content_ns: u64,
    /// How much later than ordered the first worker started.
    pub late_ns: u64,
    /// Why no worker started. `None`: they did.
    pub error: Option<String>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
    /// Of the job that moved the files, where that was Hadoop's.
    #[serde(default)]
    pub testdfsio: Option<Box<TestDfsioLog>>,
}

/// One step of a run, all hosts. One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageStep {
    /// Number of the step, from 0.
    pub step: u32,
    /// What was done.
    pub operation: StorageOperation,
    /// How.
    pub job: StorageJob,
    /// Files ordered, all hosts.
    pub files: u32,
    /// From sending the orders to the last report.
    pub exec_ns: u64,
    /// Wall clock at the common start, ns since 1970.
    pub started_unix_ns: u64,
    /// By host.
    pub reports: Vec<(HostId, StorageReport)>,
    /// Hosts without a report, with the reason.
    pub missing: Vec<(HostId, String)>,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Where each host's files were, where a job has several targets. Empty: the job's target.
    #[serde(default)]
    pub endpoints: Vec<(HostId, String)>,
    /// Storage nodes in service, where the run takes them out. Empty: it does not.
    #[serde(default)]
    pub storage_nodes: Vec<String>,
    /// Whether the workers are the storage nodes themselves, on their own disks: what those do
    /// without a network.
    #[serde(default)]
    pub is_disk_alone: bool,
    /// The common start on the controller's CLOCK_MONOTONIC. `None`: the step did not start, or the
    /// run is of before it was kept.
    #[serde(default)]
    pub start_ns: Option<u64>,
    /// Files whose blocks are all on one DataNode and nowhere else, and that node, as the NameNode
    /// showed it after the step. `None`: not HDFS, or not known.
    #[serde(default)]
    pub data_node_of_file: Option<Vec<(u32, String)>>,
}

/// What a NameNode reports about its HDFS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HdfsFacts {
    /// `HOST:PORT` of its RPC server.
    pub name_node: String,
    /// Copies of each block where a file asks for none.
    pub replication: Option<u32>,
    /// Bytes of a block where a file asks for none.
    pub block_bytes: Option<u64>,
    /// Bytes of all disks.
    pub capacity_bytes: Option<u64>,
    /// Bytes that HDFS may still use.
    pub remaining_bytes: Option<u64>,
    /// DataNodes that are alive, by name. `None`: the NameNode shows them to superusers only.
    pub data_nodes: Option<Vec<DataNode>>,
    /// DataNodes that no longer report, by name. `None` as above.
    pub dead: Option<Vec<String>>,
}

/// A DataNode as the NameNode sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataNode {
    /// Its host name.
    pub host: String,
    /// Its address, where clients find its blocks.
    pub address: String,
    /// Whether it takes part.
    pub state: DataNodeState,
    /// Bytes of its disks.
    pub capacity_bytes: u64,
    /// Bytes that HDFS may still use.
    pub remaining_bytes: u64,
}

/// `AdminStates` of DatanodeInfo.java.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataNodeState {
    /// Takes blocks and gives them.
    InService,
    /// Is being emptied, or is empty.
    Decommissioning,
    /// Takes no more blocks; its last ones are being copied.
    EnteringMaintenance,
    /// Is left alone.
    InMaintenance,
}

impl HdfsFacts {
    /// DataNodes that take blocks.
    pub fn in_service(&self) -> impl Iterator<Item = &DataNode> {
        let all = self.data_nodes.iter().flatten();
        all.filter(|node| node.state == DataNodeState::InService)
    }
}

impl StorageOperation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Write,
        Self::Read,
        Self::RandomRead,
        Self::Append,
        Self::Clean,
    ];

    /// The word on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::RandomRead => "random-read",
            Self::Append => "append",
            Self::Clean => "clean",
        }
    }

    /// The word of TestDFSIO's block (`TestType` of TestDFSIO.java).
    #[must_use]
    pub fn dfsio_name(self) -> &'static str {
        match self {
            Self::RandomRead => "random read",
            other => other.name(),
        }
    }

    /// Whether a job's time bounds it from below.
    #[must_use]
    pub fn repeats(self) -> bool {
        matches!(self, Self::Write | Self::Read | Self::RandomRead)
    }

    /// Whether bytes go to storage.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Append)
    }

    /// Whether bytes come from storage.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }
}

impl StorageStep {
    /// Files that are whole: done at least once, and never failed.
    #[must_use]
    pub fn whole_files(&self) -> BTreeSet<u32> {
        let records = || self.reports.iter().flat_map(|(_, report)| &report.files);
        let of = |done: bool| {
            let wanted =
                records().filter(move |record| (record.outcome == FileOutcome::Done) == done);
            wanted.map(|record| record.file)
        };
        let failed: BTreeSet<u32> = of(false).collect();
        of(true).filter(|file| !failed.contains(file)).collect()
    }
}

impl FileRecord {
    /// From the common start to the end of the last call that is known.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        [self.open_ns, self.io_ns, self.close_ns]
            .into_iter()
            .flatten()
            .fold(self.start_ns, u64::saturating_add)
    }

    /// The time that TestDFSIO counts: without the open; with the close where bytes are written,
    /// because only then are they with the storage. (It counts the close of a read, too, which asks
    /// nothing of the storage.)
    #[must_use]
    pub fn dfsio_ns(&self, operation: StorageOperation) -> Option<u64> {
        let close_ns = if operation.writes() {
            self.close_ns?
        } else {
            0
        };
        Some(self.io_ns? + close_ns)
    }
}
