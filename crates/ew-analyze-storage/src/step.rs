//! What is reported of one step of a storage run.

use super::dfsio::DfsioFigures;
use super::node_times::TimesByNode;
use super::nodes::{Balance, NodeFigures};
use super::testdfsio::HadoopJob;
use ew_model::latency::LatencySummary;
use ew_model::storage::StorageOperation;
use serde::{Deserialize, Serialize};

/// One step. Rates are of whole files only; a file that failed is in no figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepAnalysis {
    /// What was done.
    pub operation: StorageOperation,
    /// Wall clock at the common start, ns since 1970.
    pub started_unix_ns: u64,
    /// From sending the orders to the last report, seconds: TestDFSIO's `Test exec time sec`.
    pub exec_s: f64,
    /// TestDFSIO's block. `None`: no file is whole, or nothing was read or written.
    pub dfsio: Option<DfsioFigures>,
    /// Files ordered.
    pub files_ordered: u32,
    /// Files that are whole.
    pub files_done: u32,
    /// Bytes of whole files.
    pub bytes: u64,
    /// From the first open to the last close, ns.
    pub wall_ns: Option<u64>,
    /// All bytes over that time.
    pub aggregate_bytes_per_sec: Option<f64>,
    /// The time in which every worker was at work.
    pub common: Option<CommonWindow>,
    /// Open or create calls.
    pub open: Option<LatencySummary>,
    /// From the end of the open to the end of the first call.
    pub first_byte: Option<LatencySummary>,
    /// From the end of the open to before the close.
    pub io: Option<LatencySummary>,
    /// Close calls, with fsync if asked for.
    pub close: Option<LatencySummary>,
    /// Single read or write calls, those of files that failed later included.
    pub calls: Option<LatencySummary>,
    /// Rates of files as TestDFSIO counts them, bytes per second.
    pub file_rates: Option<RateSummary>,
    /// Share of the workers' time that making or comparing content took.
    pub content_share: Option<f64>,
    /// By host.
    pub clients: Vec<ClientFigures>,
    /// By endpoint, where there are several targets.
    pub endpoints: Vec<EndpointFigures>,
    /// By the storage node that stores a file. `None`: nobody knows which one does.
    #[serde(default)]
    pub times_by_node: Option<TimesByNode>,
    /// Counters of clients and storage nodes.
    #[serde(default)]
    pub nodes: Vec<NodeFigures>,
    /// Between the storage nodes in service.
    #[serde(default)]
    pub balance: Option<Balance>,
    /// Storage nodes in service, where the NameNode reports them.
    #[serde(default)]
    pub storage_nodes: Vec<String>,
    /// Whether the workers were the storage nodes themselves, on their own disks.
    #[serde(default)]
    pub is_disk_alone: bool,
    /// The job of Hadoop's that moved the files. `None`: the workers did.
    #[serde(default)]
    pub hadoop: Option<HadoopJob>,
    /// Slowest first.
    pub stragglers: Vec<Straggler>,
    /// Files whose bytes are wrong.
    pub corrupt: Vec<Corruption>,
    /// Failed files, by host and words.
    pub failures: Vec<Failure>,
    /// Files that were stopped.
    pub cancelled: u32,
    /// Hosts without a report, with the reason.
    pub missing: Vec<(String, String)>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
}

/// The time from the last worker's start to the first worker's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommonWindow {
    /// Its length, ns.
    pub length_ns: u64,
    /// Its share of the whole wall time.
    pub overlap: f64,
    /// Bytes of all workers in it over its length. `None`: it is shorter than the intervals in
    /// which bytes were counted, or some of the bytes are of files that failed.
    pub bytes_per_sec: Option<f64>,
    /// The same of its equal parts, one after the other. Empty where the window has no rate.
    #[serde(default)]
    pub parts_bytes_per_sec: Vec<f64>,
}

/// Rates, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSummary {
    /// Min.
    pub min: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Max.
    pub max: f64,
}

/// One host's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Its name.
    pub host: String,
    /// Whole files.
    pub files: u32,
    /// Their bytes.
    pub bytes: u64,
    /// From its first open to its last close, ns.
    pub wall_ns: Option<u64>,
    /// Its bytes over that time.
    pub bytes_per_sec: Option<f64>,
    /// How much later than the common start its first worker began, ns.
    pub late_ns: u64,
    /// Of a file, as TestDFSIO counts it.
    pub file_times: Option<LatencySummary>,
    /// Of single read or write calls, those of files that failed later included.
    pub calls: Option<LatencySummary>,
}

/// One target's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointFigures {
    /// Its URL.
    pub target: String,
    /// Hosts that used it.
    pub clients: u32,
    /// Bytes of whole files.
    pub bytes: u64,
    /// Those from the first open to the last close there.
    pub bytes_per_sec: Option<f64>,
}

/// A file that took much longer than the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Straggler {
    /// Number of the file.
    pub file: u32,
    /// Whose.
    pub host: String,
    /// Its time as TestDFSIO counts it, ns.
    pub time_ns: u64,
    /// That over the median of all files.
    pub times_median: f64,
}

/// A file whose bytes are wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corruption {
    /// Number of the file.
    pub file: u32,
    /// Who read it.
    pub host: String,
    /// First wrong byte.
    pub offset: u64,
    /// What was there instead, in words.
    pub found: String,
}

/// Files that failed for the same reason on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Whose.
    pub host: String,
    /// How many; 0 when no worker started.
    pub files: u32,
    /// Of the first of them, in words.
    pub error: String,
}
