//! One host's part of a step: workers that take files from a queue.

use crate::backend::Backend;
use crate::buffer::{AlignedBuffer, BufferPool};
use crate::call_times::CallTimes;
use crate::error::StorageError;
use crate::passage::{NAME_PREFIX, Tally, Worker, short};
use crate::progress::Progress;
use crate::target::open_backend;
use ew_model::latency::Histogram;
use ew_model::storage::{
    FileOutcome, FileRecord, MAX_FILES_PER_HOST, StorageOperation, StorageOrder, StorageReport,
};
use ew_sys::clock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Threads of a host at most, whatever is ordered.
const MAX_WORKERS: usize = 1024;
/// A buffer at most, whatever is ordered.
const MAX_BUFFER_BYTES: u64 = 1 << 30;
/// A cancelled step is noticed within this before its start.
const CANCEL_CHECK_NS: u64 = 50_000_000;

/// Does a host's part of a step and returns what its workers saw. Blocks until the last worker is
/// done; after `cancelled` is set, until each worker's call at hand returns. Files that are then
/// written in part are removed.
#[must_use]
pub fn run(order: &StorageOrder, cancelled: &AtomicBool) -> StorageReport {
    let prepared = open_backend(&order.job).and_then(|backend| prepare(order, backend));
    match prepared {
        Ok((backend, files)) => work(order, backend.as_ref(), &files, cancelled),
        Err(error) => StorageReport {
            step: order.step,
            error: Some(short(&error.to_string())),
            ..StorageReport::default()
        },
    }
}

/// The back end, and the files to pass: those ordered, or for a clean without any all that are
/// there.
fn prepare(
    order: &StorageOrder,
    backend: Box<dyn Backend>,
) -> Result<(Box<dyn Backend>, Vec<u32>), StorageError> {
    if order.operation == StorageOperation::Write {
        backend.prepare()?;
    }
    if order.operation != StorageOperation::Clean || !order.files.is_empty() {
        return Ok((backend, order.files.clone()));
    }
    let number = |name: String| name.strip_prefix(NAME_PREFIX)?.parse::<u32>().ok();
    let mut files: Vec<u32> = backend.list()?.into_iter().filter_map(number).collect();
    files.sort_unstable();
    Ok((backend, files))
}

fn work(
    order: &StorageOrder,
    backend: &dyn Backend,
    files: &[u32],
    cancelled: &AtomicBool,
) -> StorageReport {
    let next = AtomicUsize::new(0);
    let time_ns = order.job.time_ns.filter(|_| order.operation.repeats());
    let workers = (order.job.parallel as usize)
        .min(files.len())
        .clamp(1, MAX_WORKERS);
    let buffer_bytes = order.job.buffer_bytes.clamp(1, MAX_BUFFER_BYTES) as usize;
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let running: Vec<_> = (0..workers)
            .map(|number| {
                let next = &next;
                scope.spawn(move || {
                    let mut worker = Worker {
                        number: number as u32,
                        order,
                        backend,
                        cancelled,
                        buffer: AlignedBuffer::new(buffer_bytes),
                        pool: BufferPool::new(buffer_bytes),
                        tally: Tally::new(),
                    };
                    wait_for_start(order.start_ns, cancelled);
                    match time_ns {
                        None => worker.take_turns(files, next),
                        Some(time_ns) => worker.take_again(files, workers, time_ns),
                    }
                    worker.tally
                })
            })
            .collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|tally| tally.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    if order.operation == StorageOperation::Clean {
        backend.remove_folder();
    }
    report(order, backend, tallies)
}

impl Worker<'_> {
    /// Whichever file is next.
    fn take_turns(&mut self, files: &[u32], next: &AtomicUsize) {
        while !self.cancelled.load(Ordering::Relaxed) {
            let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            self.pass(*file);
        }
    }

    /// Its share of the files: all of them once, then again until the time is over. No two workers
    /// have the same file at hand. After a failure nothing is repeated.
    fn take_again(&mut self, files: &[u32], workers: usize, time_ns: u64) {
        let own = files.iter().skip(self.number as usize).step_by(workers);
        let own: Vec<u32> = own.copied().collect();
        let over_ns = self.order.start_ns.saturating_add(time_ns);
        let most = MAX_FILES_PER_HOST / workers;
        for (passed, file) in own.iter().cycle().enumerate() {
            let again = passed >= own.len();
            let is_over = clock::monotonic_ns() >= over_ns || passed >= most;
            let is_done = again && (is_over || self.has_failed());
            if is_done || self.cancelled.load(Ordering::Relaxed) {
                break;
            }
            self.pass(*file);
        }
    }

    fn has_failed(&self) -> bool {
        let mut records = self.tally.files.iter();
        records.any(|record| record.outcome != FileOutcome::Done)
    }
}

fn wait_for_start(start_ns: u64, cancelled: &AtomicBool) {
    loop {
        let now_ns = clock::monotonic_ns();
        if now_ns >= start_ns || cancelled.load(Ordering::Relaxed) {
            return;
        }
        clock::sleep_until_ns(start_ns.min(now_ns + CANCEL_CHECK_NS));
    }
}

fn report(order: &StorageOrder, backend: &dyn Backend, tallies: Vec<Tally>) -> StorageReport {
    let mut report = StorageReport {
        step: order.step,
        notes: backend.notes(),
        ..StorageReport::default()
    };
    let mut rewrites = 0;
    let mut progress = Progress::new();
    let mut calls = Histogram::default();
    for tally in tallies {
        report.files.extend(tally.files);
        report.content_ns += tally.content_ns;
        rewrites += tally.rewrites;
        progress.merge(tally.progress);
        calls.merge(&tally.calls.histogram());
    }
    if rewrites > 0 {
        report.notes.push(format!(
            "files written again from their start: a block was not reported to the NameNode in time (NotReplicatedYetException), {rewrites} times on one host; choose a larger --block-size"
        ));
    }
    list_what_fits(&mut report);
    report.files.sort_by_key(|record| record.start_ns);
    report.late_ns = report.files.first().map_or(0, |first| first.start_ns);
    (report.interval_ns, report.interval_bytes) = progress.into_parts();
    report.calls = calls;
    report
}

/// A clean of whatever is there may pass more files than fit into a report: those that stay come
/// first.
fn list_what_fits(report: &mut StorageReport) {
    let passed = report.files.len();
    if passed <= MAX_FILES_PER_HOST {
        return;
    }
    let is_done = |record: &FileRecord| record.outcome == FileOutcome::Done;
    report.files.sort_by_key(is_done);
    report.files.truncate(MAX_FILES_PER_HOST);
    report.notes.push(format!(
        "{passed} files on one host, of which the report lists {MAX_FILES_PER_HOST}"
    ));
}

impl Tally {
    fn new() -> Self {
        Self {
            files: Vec::new(),
            calls: CallTimes::default(),
            progress: Progress::new(),
            content_ns: 0,
            rewrites: 0,
        }
    }
}
