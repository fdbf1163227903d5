//! A step of a storage job, on threads of its own.

use crate::inbox::Input;
use ew_model::storage::{StorageJob, StorageOrder, StorageReport};
use ew_storage::{HdfsTarget, NameNode, Problem, StorageError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a step is polled for its end.
const END_CHECK: Duration = Duration::from_millis(10);

/// A step under way.
#[derive(Debug)]
pub(crate) struct RunningStep {
    cancelled: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl RunningStep {
    /// Starts the workers; their end is an [`Input::StorageDone`].
    pub(crate) fn start(
        order: StorageOrder,
        inbox: SyncSender<Input>,
    ) -> Result<Self, Box<StorageReport>> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (flag, step) = (Arc::clone(&cancelled), order.step);
        let work = move || {
            let report = Box::new(match &order.job.testdfsio {
                Some(_) => run_testdfsio(&order, &flag, &inbox),
                None => ew_storage::run(&order, &flag),
            });
            // The loop may have ended the agent meanwhile.
            let _ = inbox.send(Input::StorageDone(report));
        };
        let spawned = thread::Builder::new().name("storage".into()).spawn(work);
        let thread = spawned.map_err(|error| {
            Box::new(StorageReport {
                step,
                error: Some(format!("cannot start a thread: {error}")),
                ..StorageReport::default()
            })
        })?;
        Ok(Self { cancelled, thread })
    }

    /// Ends the step: each worker stops after its call at hand, and removes what it has written in
    /// part.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Waits for the workers, at most `limit`: a call to a server that is gone may never return.
    pub(crate) fn wait(&self, limit: Duration) {
        let began = Instant::now();
        while !self.thread.is_finished() && began.elapsed() < limit {
            thread::sleep(END_CHECK);
        }
    }
}

/// By Hadoop's job. Its progress is an [`Input::StorageProgress`].
fn run_testdfsio(
    order: &StorageOrder,
    cancelled: &AtomicBool,
    inbox: &SyncSender<Input>,
) -> StorageReport {
    if let Err(error) = check_name_node(&order.job) {
        return StorageReport {
            step: order.step,
            error: Some(error.to_string()),
            ..StorageReport::default()
        };
    }
    let step = order.step;
    ew_tools::run_testdfsio(order, cancelled, &mut |words| {
        let _ = inbox.send(Input::StorageProgress { step, words });
    })
}

/// A wrong address is named at once: Hadoop's client tries for long first. One that wants Kerberos
/// is a NameNode, too.
fn check_name_node(job: &StorageJob) -> Result<(), StorageError> {
    let target = job.target.strip_prefix("hdfs://");
    let target = target.and_then(|rest| HdfsTarget::parse(rest).ok());
    let Some(address) = target.as_ref().and_then(HdfsTarget::name_node) else {
        return Ok(());
    };
    match NameNode::new(address)?.default_replication() {
        Err(error) if !matches!(error.problem, Problem::Kerberos | Problem::Denied(_)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
