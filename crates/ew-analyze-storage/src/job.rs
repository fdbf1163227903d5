//! A storage run: what TestDFSIO's block shows, and what it hides.

pub use super::step::{
    ClientFigures, CommonWindow, Corruption, EndpointFigures, Failure, RateSummary, StepAnalysis,
    Straggler,
};

use super::dfsio::{self, Task};
use super::fan_in::{self, FanIn};
use super::file_times::summary;
use super::node_times;
use super::nodes;
use super::testdfsio::{self, log_of};
use ew_model::Run;
use ew_model::finding::VerdictStatus;
use ew_model::inventory::HostId;
use ew_model::latency::{Histogram, LatencySummary};
use ew_model::storage::{
    FileOutcome, FileRecord, HdfsFacts, StorageJob, StorageOperation, StorageStep,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A file is a straggler from this multiple of the median time on ...
const STRAGGLER_FACTOR: f64 = 2.0;
/// ... where there are this many files: the median of fewer shows little.
const STRAGGLER_FILES: usize = 4;

/// The common window is divided into so many parts.
const WINDOW_PARTS: u64 = 8;

/// A storage run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageAnalysis {
    /// Id of the run.
    pub run: String,
    /// Where the files were. `None`: no step took place.
    pub job: Option<StorageJob>,
    /// Nothing wrong: all files whole and right. Worse: wrong bytes. Partial: files or hosts are
    /// missing. Not determined: an operation moved no file at all.
    pub status: VerdictStatus,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// What the NameNode reported before the first step. `None`: not HDFS, or not reached.
    #[serde(default)]
    pub hdfs: Option<HdfsFacts>,
    /// In order.
    pub steps: Vec<StepAnalysis>,
    /// Against the number of storage nodes or clients, where it varied.
    pub fan_in: Vec<FanIn>,
    /// Warnings of the run, in order.
    pub warnings: Vec<String>,
}

/// Analyses a run's storage steps. `None` for a run of flows.
#[must_use]
pub fn analyze(run: &Run) -> Option<StorageAnalysis> {
    let is_storage = [SCENARIO, TESTDFSIO].contains(&run.manifest.scenario.name.as_str());
    if run.storage.is_empty() && !is_storage {
        return None;
    }
    let name = |id: HostId| run.manifest.inventory.name(id).to_owned();
    let steps = run.storage.iter();
    let steps: Vec<StepAnalysis> = steps.map(|one| with_nodes(run, one, &name)).collect();
    let interrupted = run.manifest.outcome == ew_model::Outcome::Interrupted;
    Some(StorageAnalysis {
        run: run.manifest.id.clone(),
        fan_in: fan_in::analyze(run, &steps),
        hdfs: run.hdfs.clone(),
        job: run
            .storage
            .iter()
            .find(|s| !s.is_disk_alone)
            .map(|s| s.job.clone()),
        status: status(&steps, run),
        interrupted,
        steps,
        warnings: run.warnings.clone(),
    })
}

/// The scenario's name in manifests of storage runs.
pub const SCENARIO: &str = "dfsio";
/// The same where Hadoop's own TestDFSIO moves the files.
pub const TESTDFSIO: &str = "testdfsio";

fn status(steps: &[StepAnalysis], run: &Run) -> VerdictStatus {
    if steps.iter().any(|step| !step.corrupt.is_empty()) {
        return VerdictStatus::Worse;
    }
    let moves = |step: &StepAnalysis| step.operation != StorageOperation::Clean;
    let is_empty = |step: &StepAnalysis| moves(step) && step.files_done == 0;
    let is_silent = run.storage.iter().all(|step| step.reports.is_empty());
    if is_silent || steps.iter().any(is_empty) {
        return VerdictStatus::NotDetermined;
    }
    let is_whole = |step: &StepAnalysis| {
        let all = !moves(step) || step.files_done == step.files_ordered;
        all && step.missing.is_empty() && step.failures.is_empty() && step.cancelled == 0
    };
    let is_complete = run.manifest.outcome == ew_model::Outcome::Complete;
    match is_complete && steps.iter().all(is_whole) {
        true => VerdictStatus::NothingWrong,
        false => VerdictStatus::Partial,
    }
}

fn with_nodes(run: &Run, one: &StorageStep, name: &dyn Fn(HostId) -> String) -> StepAnalysis {
    let nodes = nodes::figures(run, one);
    StepAnalysis {
        balance: nodes::balance(&nodes, one.operation),
        nodes,
        ..step(one, name)
    }
}

/// Without what counters report.
fn step(step: &StorageStep, name: &dyn Fn(HostId) -> String) -> StepAnalysis {
    let all = || {
        let reports = step.reports.iter();
        reports.flat_map(|(host, report)| report.files.iter().map(|record| (*host, record)))
    };
    let done: Vec<(HostId, &FileRecord)> = all()
        .filter(|(_, r)| r.outcome == FileOutcome::Done)
        .collect();
    let times =
        |of: fn(&FileRecord) -> Option<u64>| summary(done.iter().filter_map(|(_, r)| of(r)));
    let bytes: u64 = done.iter().map(|(_, record)| record.bytes).sum();
    let wall_ns = wall_ns(done.iter().map(|(_, record)| *record));
    let moves = step.operation != StorageOperation::Clean;
    let tasks: Vec<Task> = done
        .iter()
        .filter_map(|(_, r)| task(r, step.operation))
        .collect();
    let (figures, hadoop) = match log_of(step) {
        Some(log) => {
            let (figures, job) = testdfsio::analyze(log, bytes);
            (figures, Some(job))
        }
        None => (dfsio::figures(&tasks), None),
    };
    let exec_s = hadoop.as_ref().and_then(|job| job.exec_s);
    StepAnalysis {
        operation: step.operation,
        started_unix_ns: step.started_unix_ns,
        exec_s: exec_s.unwrap_or(step.exec_ns as f64 / 1e9),
        dfsio: figures.filter(|_| moves && !done.is_empty()),
        files_ordered: step.files,
        files_done: step.whole_files().len() as u32,
        bytes,
        wall_ns,
        aggregate_bytes_per_sec: per_sec(bytes, wall_ns).filter(|_| moves),
        common: common_window(step),
        open: times(|r| r.open_ns),
        first_byte: times(|r| r.first_byte_ns),
        io: times(|r| r.io_ns),
        close: times(|r| r.close_ns),
        calls: calls(step),
        file_rates: rates(&tasks),
        content_share: content_share(step),
        clients: match hadoop {
            Some(_) => Vec::new(),
            None => clients(step, name),
        },
        endpoints: endpoints(step),
        times_by_node: node_times::analyze(step, name),
        nodes: Vec::new(),
        balance: None,
        storage_nodes: step.storage_nodes.clone(),
        is_disk_alone: step.is_disk_alone,
        hadoop,
        stragglers: stragglers(&done, step.operation, name),
        corrupt: corrupt(all(), name),
        failures: failures(step, name),
        cancelled: all()
            .filter(|(_, r)| r.outcome == FileOutcome::Cancelled)
            .count() as u32,
        missing: step
            .missing
            .iter()
            .map(|(host, why)| (name(*host), why.clone()))
            .collect(),
        notes: notes(step),
    }
}

fn task(record: &FileRecord, operation: StorageOperation) -> Option<Task> {
    Some(Task {
        bytes: record.bytes,
        io_ns: record.dfsio_ns(operation)?,
    })
}

fn wall_ns<'a>(records: impl Iterator<Item = &'a FileRecord>) -> Option<u64> {
    let spans = records.map(|record| (record.start_ns, record.end_ns()));
    let (start, end) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(end.saturating_sub(start))
}

fn per_sec(bytes: u64, time_ns: Option<u64>) -> Option<f64> {
    let time_ns = time_ns.filter(|ns| *ns > 0)?;
    Some(bytes as f64 * 1e9 / time_ns as f64)
}

/// From the last worker's first open to the first worker's last end, of all files: a worker with a
/// failed file was at work, too. Its bytes are in no figure, so the window then has no rate.
fn common_window(step: &StorageStep) -> Option<CommonWindow> {
    if step.operation == StorageOperation::Clean || step.job.testdfsio.is_some() {
        return None;
    }
    let all = || step.reports.iter().flat_map(|(_, report)| &report.files);
    let all_done = all().all(|record| record.outcome == FileOutcome::Done);
    let mut workers: BTreeMap<(HostId, u32), (u64, u64)> = BTreeMap::new();
    for (host, report) in &step.reports {
        for record in &report.files {
            let span = workers
                .entry((*host, record.worker))
                .or_insert((record.start_ns, record.end_ns()));
            *span = (span.0.min(record.start_ns), span.1.max(record.end_ns()));
        }
    }
    let start_ns = workers.values().map(|span| span.0).max()?;
    let end_ns = workers.values().map(|span| span.1).min()?;
    let length_ns = end_ns.saturating_sub(start_ns);
    let wall_ns = wall_ns(all()).filter(|ns| *ns > 0)?;
    let rate = bytes_between(step, start_ns, end_ns).filter(|_| all_done);
    let part = |at: u64| {
        let edge = |at: u64| start_ns + length_ns / WINDOW_PARTS * at;
        bytes_between(step, edge(at), edge(at + 1))
    };
    let parts: Option<Vec<f64>> = (0..WINDOW_PARTS).map(part).collect();
    Some(CommonWindow {
        length_ns,
        overlap: length_ns as f64 / wall_ns as f64,
        bytes_per_sec: rate,
        parts_bytes_per_sec: parts.filter(|_| rate.is_some()).unwrap_or_default(),
    })
}

/// Bytes per second. Reads by the intervals that lie wholly inside, each host by its own. What a
/// write call took may still be in a buffer until the close, so written files count evenly from
/// their open to their close.
fn bytes_between(step: &StorageStep, start_ns: u64, end_ns: u64) -> Option<f64> {
    if step.operation.writes() {
        return written_between(step, start_ns, end_ns);
    }
    let mut total = 0.0;
    for (_, report) in &step.reports {
        let interval_ns = report.interval_ns.max(1);
        let (first, last) = (start_ns.div_ceil(interval_ns), end_ns / interval_ns);
        if last <= first {
            return None;
        }
        let inside = report.interval_bytes.iter();
        let inside = inside.skip(first as usize).take((last - first) as usize);
        total += per_sec(inside.sum(), Some((last - first) * interval_ns))?;
    }
    (!step.reports.is_empty()).then_some(total)
}

fn written_between(step: &StorageStep, start_ns: u64, end_ns: u64) -> Option<f64> {
    let length_ns = end_ns.checked_sub(start_ns).filter(|ns| *ns > 0)?;
    let files = step.reports.iter().flat_map(|(_, report)| &report.files);
    let inside = |file: &FileRecord| {
        let until_ns = file.end_ns().min(end_ns);
        let shared_ns = until_ns.saturating_sub(file.start_ns.max(start_ns));
        let whole_ns = file.end_ns().saturating_sub(file.start_ns).max(1);
        file.bytes as f64 * shared_ns as f64 / whole_ns as f64
    };
    let bytes: f64 = files.map(inside).sum();
    Some(bytes * 1e9 / length_ns as f64)
}

fn calls(step: &StorageStep) -> Option<LatencySummary> {
    let mut all = Histogram::default();
    step.reports
        .iter()
        .for_each(|(_, report)| all.merge(&report.calls));
    all.summary()
}

fn rates(tasks: &[Task]) -> Option<RateSummary> {
    let rates: Vec<f64> = tasks
        .iter()
        .filter_map(|task| per_sec(task.bytes, Some(task.io_ns)))
        .collect();
    let quantile = |share| ew_stats::quantile(&rates, share);
    Some(RateSummary {
        min: quantile(0.0)?,
        p5: quantile(0.05)?,
        p50: quantile(0.5)?,
        p95: quantile(0.95)?,
        p99: quantile(0.99)?,
        max: quantile(1.0)?,
    })
}

fn content_share(step: &StorageStep) -> Option<f64> {
    let reports = || step.reports.iter().map(|(_, report)| report);
    let files = reports().flat_map(|report| &report.files);
    let io_ns: u64 = files.filter_map(|record| record.io_ns).sum();
    let content_ns: u64 = reports().map(|report| report.content_ns).sum();
    let is_moving = step.operation != StorageOperation::Clean && io_ns > 0;
    is_moving.then(|| (content_ns as f64 / io_ns as f64).min(1.0))
}

fn clients(step: &StorageStep, name: &dyn Fn(HostId) -> String) -> Vec<ClientFigures> {
    let figures = step.reports.iter().map(|(host, report)| {
        let records = report.files.iter();
        let done: Vec<_> = records.filter(|r| r.outcome == FileOutcome::Done).collect();
        let bytes = done.iter().map(|record| record.bytes).sum();
        let wall_ns = wall_ns(done.iter().copied());
        let times = done.iter().filter_map(|r| r.dfsio_ns(step.operation));
        ClientFigures {
            host: name(*host),
            files: done.len() as u32,
            bytes,
            wall_ns,
            bytes_per_sec: per_sec(bytes, wall_ns).filter(|_| bytes > 0),
            late_ns: report.late_ns,
            file_times: summary(times),
            calls: report.calls.summary(),
        }
    });
    figures.collect()
}

fn endpoints(step: &StorageStep) -> Vec<EndpointFigures> {
    let mut by_target: BTreeMap<&str, (u32, Vec<&FileRecord>)> = BTreeMap::new();
    for (host, target) in &step.endpoints {
        let (clients, records) = by_target.entry(target).or_default();
        *clients += 1;
        let reports = step.reports.iter().filter(|(id, _)| id == host);
        let files = reports.flat_map(|(_, report)| &report.files);
        records.extend(files.filter(|record| record.outcome == FileOutcome::Done));
    }
    let figures = by_target.into_iter().map(|(target, (clients, records))| {
        let bytes = records.iter().map(|record| record.bytes).sum();
        EndpointFigures {
            target: target.to_owned(),
            clients,
            bytes,
            bytes_per_sec: per_sec(bytes, wall_ns(records.into_iter())).filter(|_| bytes > 0),
        }
    });
    figures.collect()
}

fn stragglers(
    done: &[(HostId, &FileRecord)],
    operation: StorageOperation,
    name: &dyn Fn(HostId) -> String,
) -> Vec<Straggler> {
    let time = |record: &FileRecord| record.dfsio_ns(operation);
    let all = summary(done.iter().filter_map(|(_, record)| time(record)));
    let Some(all) = all.filter(|_| done.len() >= STRAGGLER_FILES) else {
        return Vec::new();
    };
    let mut stragglers: Vec<Straggler> = done
        .iter()
        .filter_map(|(host, record)| {
            let time_ns = time(record)?;
            let times_median = time_ns as f64 / all.p50_ns.max(1) as f64;
            (times_median >= STRAGGLER_FACTOR).then(|| Straggler {
                file: record.file,
                host: name(*host),
                time_ns,
                times_median,
            })
        })
        .collect();
    stragglers.sort_by_key(|straggler| std::cmp::Reverse(straggler.time_ns));
    stragglers
}

fn corrupt<'a>(
    records: impl Iterator<Item = (HostId, &'a FileRecord)>,
    name: &dyn Fn(HostId) -> String,
) -> Vec<Corruption> {
    let wrong = records.filter_map(|(host, record)| match &record.outcome {
        FileOutcome::Corrupt { offset, found } => Some(Corruption {
            file: record.file,
            host: name(host),
            offset: *offset,
            found: found.clone(),
        }),
        _ => None,
    });
    wrong.collect()
}

/// One line per host and first word of an error: a thousand files on a full disk fail alike.
fn failures(step: &StorageStep, name: &dyn Fn(HostId) -> String) -> Vec<Failure> {
    let mut failures: BTreeMap<(HostId, String), Failure> = BTreeMap::new();
    for (host, report) in &step.reports {
        let errors = report.files.iter().filter_map(|r| match &r.outcome {
            FileOutcome::Failed { error } => Some((error, 1)),
            _ => None,
        });
        let errors = errors.chain(report.error.as_ref().map(|error| (error, 0)));
        for (error, count) in errors {
            // `cannot write /mnt/x/test_io_3: no space left ...`: alike but for the name.
            let reason = error
                .split_once(": ")
                .map_or(error.as_str(), |(_, why)| why);
            let entry = failures.entry((*host, reason.to_owned()));
            let failure = entry.or_insert_with(|| Failure {
                host: name(*host),
                files: 0,
                error: error.clone(),
            });
            failure.files += count;
        }
    }
    failures.into_values().collect()
}

fn notes(step: &StorageStep) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in step.reports.iter().flat_map(|(_, report)| &report.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ew_model::storage::StorageReport;

    pub(crate) const MS: u64 = 1_000_000;

    pub(crate) fn record(file: u32, start_ms: u64, io_ms: u64) -> FileRecord {
        FileRecord {
            file,
            worker: 0,
            start_ns: start_ms * MS,
            open_ns: Some(MS),
            first_byte_ns: Some(2 * MS),
            io_ns: Some(io_ms * MS),
            close_ns: Some(0),
            bytes: 1 << 20,
            outcome: FileOutcome::Done,
        }
    }

    pub(crate) fn report(files: Vec<FileRecord>) -> StorageReport {
        StorageReport {
            files,
            interval_ns: 10 * MS,
            interval_bytes: vec![1000; 50],
            ..StorageReport::default()
        }
    }

    pub(crate) fn of(reports: Vec<StorageReport>) -> StorageStep {
        let files = reports.iter().map(|r| r.files.len() as u32).sum();
        StorageStep {
            step: 0,
            operation: StorageOperation::Write,
            job: StorageJob {
                target: "file:///tmp".into(),
                file_bytes: 1 << 20,
                buffer_bytes: 1 << 20,
                parallel: 1,
                direct: false,
                sync: true,
                drop_cache: true,
                verify: true,
                seed: 1,
                replication: None,
                block_bytes: None,
                time_ns: None,
                testdfsio: None,
            },
            files,
            exec_ns: 1_000 * MS,
            started_unix_ns: 0,
            reports: (0..).map(HostId).zip(reports).collect(),
            missing: Vec::new(),
            interrupted: false,
            endpoints: Vec::new(),
            storage_nodes: Vec::new(),
            is_disk_alone: false,
            start_ns: None,
            data_node_of_file: None,
        }
    }

    fn analyzed(reports: Vec<StorageReport>) -> StepAnalysis {
        step(&of(reports), &|id| format!("h{}", id.0))
    }

    /// Host 0 works from 0 to 101 ms, host 1 from 20 to 221 ms: both from 20 to 101.
    #[test]
    fn the_common_window_is_when_all_work() {
        let reports = || {
            vec![
                report(vec![record(0, 0, 100)]),
                report(vec![record(1, 20, 200)]),
            ]
        };
        let found = analyzed(reports());
        let common = found.common.unwrap();
        assert_eq!(common.length_ns, 81 * MS);
        assert_eq!(found.wall_ns, Some(221 * MS));
        assert!((common.overlap - 81.0 / 221.0).abs() < 1e-9);
        // Whenever a write call took them: 1 MiB in 101 ms and 1 MiB in 201 ms.
        let written = f64::from(1 << 20) / 0.101 + f64::from(1 << 20) / 0.201;
        assert!((common.bytes_per_sec.unwrap() - written).abs() < 1.0);
        let mut read = of(reports());
        read.operation = StorageOperation::Read;
        let read = common_window(&read).unwrap();
        // 1000 bytes in 10 ms on each of two hosts.
        assert!((read.bytes_per_sec.unwrap() - 200_000.0).abs() < 1e-6);
        let dfsio = found.dfsio.unwrap();
        assert!((dfsio.throughput_mb_per_sec - 2.0 / 0.3).abs() < 1e-9);
        assert!((found.aggregate_bytes_per_sec.unwrap() - f64::from(2 << 20) / 0.221).abs() < 1.0);
    }

    /// TestDFSIO's three rates and the aggregate that none of them is: 4 files of 1000 MB in 10,
    /// 20, 20 and 40 s.
    #[test]
    fn the_worked_vector_has_its_aggregate() {
        let file = |file: u32, seconds: u64| FileRecord {
            open_ns: Some(0),
            bytes: 1000 << 20,
            ..record(file, 0, seconds * 1000)
        };
        let files = [10, 20, 20, 40].into_iter().zip(0..);
        let reports = files.map(|(seconds, at)| report(vec![file(at, seconds)]));
        let found = analyzed(reports.collect());
        let hundredths = |value: f64| (value * 100.0).round() as u64;
        let dfsio = found.dfsio.unwrap();
        assert_eq!(hundredths(dfsio.throughput_mb_per_sec), 4444);
        assert_eq!(hundredths(dfsio.average_io_rate_mb_per_sec), 5625);
        assert_eq!(hundredths(dfsio.io_rate_std_deviation), 2724);
        let aggregate = found.aggregate_bytes_per_sec.unwrap();
        assert_eq!(hundredths(aggregate / f64::from(1 << 20)), 10_000);
    }

    #[test]
    fn failed_files_are_in_no_figure() {
        let full = |file| FileRecord {
            outcome: FileOutcome::Failed {
                error: format!("cannot write /x/test_io_{file}: no space left"),
            },
            close_ns: None,
            ..record(file, 0, 900)
        };
        let wrong = FileRecord {
            outcome: FileOutcome::Corrupt {
                offset: 7,
                found: "1 byte differs".into(),
            },
            ..record(3, 0, 10)
        };
        let found = analyzed(vec![report(vec![
            record(0, 0, 100),
            full(1),
            full(2),
            wrong,
        ])]);
        assert_eq!((found.files_ordered, found.files_done), (4, 1));
        assert_eq!(found.bytes, 1 << 20);
        assert_eq!(found.dfsio.unwrap().files, 1);
        assert_eq!(found.failures.len(), 1);
        assert_eq!(found.failures[0].files, 2);
        assert_eq!(found.corrupt[0].offset, 7);
        let common = found.common.unwrap();
        assert!(common.overlap <= 1.0 && common.bytes_per_sec.is_none());
    }

    #[test]
    fn a_straggler_is_named() {
        let files = (0..5).map(|file| record(file, 0, if file == 3 { 300 } else { 100 }));
        let found = analyzed(vec![report(files.collect())]);
        assert_eq!(found.stragglers.len(), 1);
        assert_eq!(
            (found.stragglers[0].file, found.stragglers[0].host.as_str()),
            (3, "h0")
        );
        assert!((found.stragglers[0].times_median - 3.0).abs() < 1e-9);
    }

    /// Each client has the percentiles of its own files and calls.
    #[test]
    fn a_client_has_percentiles_of_its_files_and_calls() {
        let of_host = |host: u64| StorageReport {
            calls: Histogram::of((host + 1) * MS, 7),
            ..report(
                (0..100)
                    .map(|file| record(file, 0, (host + 1) * u64::from(file + 1)))
                    .collect(),
            )
        };
        let found = analyzed(vec![of_host(0), of_host(1)]);
        for (client, factor) in found.clients.iter().zip([1, 2]) {
            let files = client.file_times.unwrap();
            let in_ms = |ns: u64| ns.div_ceil(MS) / factor;
            assert_eq!(files.count, 100);
            assert_eq!(
                (
                    in_ms(files.p50_ns),
                    in_ms(files.p90_ns),
                    in_ms(files.p99_ns)
                ),
                (50, 90, 99)
            );
            let calls = client.calls.unwrap();
            assert_eq!((calls.count, calls.p99_ns), (7, factor * MS));
        }
    }

    #[test]
    fn nothing_is_no_figure() {
        let found = analyzed(Vec::new());
        assert!(found.dfsio.is_none() && found.common.is_none() && found.calls.is_none());
        assert!(found.aggregate_bytes_per_sec.is_none());
    }
}
