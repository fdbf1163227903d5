//! Series of a storage job: the step under way, and what finished steps amount to.

use super::page::{Family, Label, Page};
use ew_model::RunEvent;
use ew_model::storage::{DataNodeState, FileOutcome, HdfsFacts, StorageOperation, StorageStep};
use std::collections::BTreeMap;

/// What the events report about a storage job. Nothing of it is shown in runs of flows.
#[derive(Debug, Default)]
pub(super) struct StorageSeries {
    current: Option<Current>,
    /// Of the step under way, or the last one.
    storage_nodes: Option<u32>,
    clients: Option<u32>,
    by_operation: BTreeMap<StorageOperation, Finished>,
    hdfs: Option<HdfsFacts>,
}

/// The step under way.
#[derive(Debug)]
struct Current {
    operation: StorageOperation,
    files: u32,
    bytes: u64,
}

/// All steps of an operation so far.
#[derive(Debug, Default)]
struct Finished {
    steps: u64,
    /// Whole, failed, with wrong bytes, stopped.
    files: [u64; 4],
    bytes: u64,
    /// Of the last one, bytes per second.
    throughput: Option<f64>,
    /// Of the last one.
    exec_ns: u64,
}

const OUTCOMES: [&str; 4] = ["whole", "failed", "corrupt", "stopped"];

impl StorageSeries {
    pub(super) fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::StorageFacts(facts) => self.hdfs = Some((**facts).clone()),
            RunEvent::StorageStepStarted {
                operation,
                storage_nodes,
                hosts,
                files,
                bytes,
            } => {
                self.storage_nodes = *storage_nodes;
                self.clients = Some(*hosts);
                self.current = Some(Current {
                    operation: *operation,
                    files: *files,
                    bytes: *bytes,
                });
            }
            RunEvent::StorageStepFinished(step) => {
                self.current = None;
                let finished = self.by_operation.entry(step.operation).or_default();
                finished.take(step);
            }
            _ => {}
        }
    }

    /// What was true of a moment is no longer.
    pub(super) fn end(&mut self) {
        self.current = None;
    }
}

impl Finished {
    fn take(&mut self, step: &StorageStep) {
        self.steps += 1;
        self.exec_ns = step.exec_ns;
        let records = || step.reports.iter().flat_map(|(_, report)| &report.files);
        let (mut bytes, mut first_ns, mut last_ns) = (0, u64::MAX, 0);
        for record in records() {
            let outcome = match record.outcome {
                FileOutcome::Done => 0,
                FileOutcome::Failed { .. } => 1,
                FileOutcome::Corrupt { .. } => 2,
                FileOutcome::Cancelled => 3,
            };
            self.files[outcome] += 1;
            if outcome == 0 {
                bytes += record.bytes;
                first_ns = first_ns.min(record.start_ns);
                last_ns = last_ns.max(record.end_ns());
            }
        }
        self.bytes += bytes;
        let time_ns = last_ns.saturating_sub(first_ns);
        self.throughput = (bytes > 0 && time_ns > 0).then(|| bytes as f64 * 1e9 / time_ns as f64);
    }
}

const STEP_INFO: Family = Family::gauge(
    "eastwest_storage_step_info",
    "1 while a storage step is under way: what its workers do.",
);
const STEP_FILES: Family = Family::gauge(
    "eastwest_storage_step_files",
    "Files of the storage step under way.",
);
const STEP_BYTES: Family = Family::gauge(
    "eastwest_storage_step_bytes",
    "Bytes that the storage step under way moves.",
);
const NODES: Family = Family::gauge(
    "eastwest_storage_nodes",
    "Storage nodes in service, or endpoints in use, in the storage step under way or the last one.",
);
const CLIENTS: Family = Family::gauge(
    "eastwest_storage_clients",
    "Hosts with workers in the storage step under way or the last one.",
);
const STEPS: Family = Family::counter(
    "eastwest_storage_steps_finished_total",
    "Storage steps that are over.",
);
const FILES: Family = Family::counter(
    "eastwest_storage_files_finished_total",
    "Files of finished storage steps: whole, failed, corrupt (other bytes than written), stopped.",
);
const BYTES: Family = Family::counter(
    "eastwest_storage_bytes_total",
    "Bytes of whole files of finished storage steps.",
);
const THROUGHPUT: Family = Family::gauge(
    "eastwest_storage_throughput_bytes_per_second",
    "Whole files of the last finished storage step, from the first open to the last close.",
);
const EXEC: Family = Family::gauge(
    "eastwest_storage_execution_seconds",
    "Execution time of the last finished storage step: from the orders to the last report.",
);
const CAPACITY: Family = Family::gauge(
    "eastwest_storage_hdfs_capacity_bytes",
    "Bytes of HDFS's disks, at the run's start.",
);
const REMAINING: Family = Family::gauge(
    "eastwest_storage_hdfs_remaining_bytes",
    "Bytes that HDFS may still use, at the run's start.",
);
const DATA_NODES: Family = Family::gauge(
    "eastwest_storage_hdfs_data_nodes",
    "DataNodes by state, at the run's start.",
);

/// Nothing before the first event of a storage job.
pub(super) fn render(storage: &StorageSeries, page: &mut Page) {
    let plain = |value: Option<f64>| value.map(|value| (Vec::new(), value));
    if let Some(current) = &storage.current {
        let operation = vec![("operation", current.operation.name())];
        page.family(&STEP_INFO, [(operation, 1.0)]);
        page.family(&STEP_FILES, plain(Some(f64::from(current.files))));
        page.family(&STEP_BYTES, plain(Some(current.bytes as f64)));
    }
    page.family(&NODES, plain(storage.storage_nodes.map(f64::from)));
    page.family(&CLIENTS, plain(storage.clients.map(f64::from)));
    let by_operation = |value: fn(&Finished) -> Option<f64>| {
        let all = storage.by_operation.iter();
        all.filter_map(move |(operation, finished)| {
            Some((vec![("operation", operation.name())], value(finished)?))
        })
    };
    page.family(&STEPS, by_operation(|done| Some(done.steps as f64)));
    page.family(&FILES, files(storage));
    page.family(&BYTES, by_operation(|done| Some(done.bytes as f64)));
    page.family(&THROUGHPUT, by_operation(|done| done.throughput));
    page.family(&EXEC, by_operation(|done| Some(done.exec_ns as f64 / 1e9)));
    if let Some(facts) = &storage.hdfs {
        let bytes = |bytes: Option<u64>| plain(bytes.map(|bytes| bytes as f64));
        page.family(&CAPACITY, bytes(facts.capacity_bytes));
        page.family(&REMAINING, bytes(facts.remaining_bytes));
        page.family(&DATA_NODES, data_nodes(facts));
    }
}

fn files(storage: &StorageSeries) -> impl Iterator<Item = (Vec<Label<'_>>, f64)> {
    storage.by_operation.iter().flat_map(|(operation, done)| {
        let counts = OUTCOMES.into_iter().zip(done.files);
        counts.map(|(outcome, count)| {
            let labels = vec![("operation", operation.name()), ("outcome", outcome)];
            (labels, count as f64)
        })
    })
}

/// Empty where the NameNode does not show them.
fn data_nodes(facts: &HdfsFacts) -> Vec<(Vec<Label<'_>>, f64)> {
    let Some(nodes) = &facts.data_nodes else {
        return Vec::new();
    };
    let count = |state| nodes.iter().filter(|node| node.state == state).count();
    let counts = [
        ("in-service", count(DataNodeState::InService)),
        ("decommissioning", count(DataNodeState::Decommissioning)),
        (
            "entering-maintenance",
            count(DataNodeState::EnteringMaintenance),
        ),
        ("in-maintenance", count(DataNodeState::InMaintenance)),
        ("dead", facts.dead.as_ref().map_or(0, Vec::len)),
    ];
    let sample = |(state, count): (&'static str, usize)| (vec![("state", state)], count as f64);
    counts.into_iter().map(sample).collect()
}
