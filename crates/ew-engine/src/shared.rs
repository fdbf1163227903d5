//! What a round and all its threads share.

use crate::clock_wait::Cancel;
use crate::data_ports::DataPorts;
use crate::settings::Settings;
use crate::tally::Tally;
use ew_model::workload::Workload;
use ew_proto::message::RunToken;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Within this time after the start all senders make their first send, and none loads the network.
const FIRST_SENDS_NS: u64 = 2_000_000;

/// What a round and all its threads share.
pub(crate) struct RoundShared {
    pub(crate) address: IpAddr,
    pub(crate) ports: DataPorts,
    /// The ports that a Service leads to, where it leads to this end.
    pub(crate) served_ports: Option<DataPorts>,
    pub(crate) token: RunToken,
    pub(crate) workload: Workload,
    pub(crate) settings: Settings,
    /// Whether the connection's `TCP_INFO` is the data's.
    pub(crate) data_is_on_the_connection: bool,
    /// Whether receivers' bytes count as they come, read or not: see [`Stream::arrived_bytes`].
    ///
    /// [`Stream::arrived_bytes`]: crate::stream::Stream::arrived_bytes
    pub(crate) counts_what_comes: bool,
    /// Threads that drive streams.
    pub(crate) thread_count: usize,
    /// Whether these leave the other half of the CPUs at least to the kernel and to others.
    pub(crate) leaves_cpus: bool,
    /// When senders begin.
    pub(crate) start_ns: u64,
    pub(crate) window_ns: Range<u64>,
    /// Indexes of the round's flows that this host sends, ascending.
    pub(crate) sent_flows: Vec<usize>,
    /// The round is given up.
    pub(crate) cancel: Arc<Cancel>,
    /// The counters at the window's first edge have been read: limited streams begin to count.
    pub(crate) window_open: AtomicBool,
    /// The window is over.
    pub(crate) stopping: AtomicBool,
    /// Threads that still run.
    pub(crate) running: AtomicUsize,
    /// CPU time of the threads that drive streams.
    pub(crate) threads: Mutex<ThreadTimes>,
    /// By flow, from threads that have ended.
    pub(crate) tallies: Mutex<Vec<(usize, Tally)>>,
}

/// Where the threads' CPU time is to be read.
#[derive(Debug, Default)]
pub(crate) struct ThreadTimes {
    /// The kernel's numbers.
    running: Vec<i32>,
    ended_ns: u64,
    /// Of those that have ended, waiting for a CPU.
    ended_wait_ns: u64,
}

impl RoundShared {
    /// Whether machines shall stop. A round that is given up stops, too, a moment later.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether what is moved from now on counts.
    pub(crate) fn is_window_open(&self) -> bool {
        self.window_open.load(Ordering::Acquire)
    }

    /// Whether the round is stopped or given up. Takes a lock: not for every message.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopping() || self.cancel.is_raised()
    }

    /// Bulk senders hold their load until all senders have begun. On hosts that share CPUs (a lab)
    /// the kernel handles the first one's packets before it lets the next one send its first byte.
    pub(crate) fn load_from_ns(&self) -> u64 {
        let warm_up_ns = self.window_ns.start.saturating_sub(self.start_ns);
        self.start_ns + FIRST_SENDS_NS.min(warm_up_ns / 2)
    }

    /// The calling thread drives streams from now on.
    pub(crate) fn enter_thread(&self) {
        self.times().running.push(ew_sys::thread::current_id());
    }

    /// The calling thread has driven its streams.
    pub(crate) fn leave_thread(&self) {
        let own = ew_sys::thread::current_id();
        let mut times = self.times();
        times.running.retain(|id| *id != own);
        times.ended_ns += ew_sys::thread::cpu_ns_of(own).unwrap_or(0);
        times.ended_wait_ns += run_queue_ns(own).unwrap_or(0);
    }

    /// CPU time of all threads that drive or drove streams.
    pub(crate) fn engine_cpu_ns(&self) -> u64 {
        let times = self.times();
        let running = times.running.iter();
        let running_ns: u64 = running
            .filter_map(|id| ew_sys::thread::cpu_ns_of(*id))
            .sum();
        running_ns + times.ended_ns
    }

    /// Time the threads that drive or drove streams waited for a CPU. `None` where the kernel does
    /// not count it.
    pub(crate) fn engine_wait_ns(&self) -> Option<u64> {
        let times = self.times();
        let running = times.running.iter().copied();
        let running_ns: Option<u64> = running.map(run_queue_ns).sum();
        Some(running_ns? + times.ended_wait_ns)
    }

    fn times(&self) -> MutexGuard<'_, ThreadTimes> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that needs a second try may come late, as long as half of the warm-up is left
    /// to it: its lateness is in its start skew.
    pub(crate) fn connect_by_ns(&self) -> u64 {
        self.start_ns + self.window_ns.start.saturating_sub(self.start_ns) / 2
    }
}

/// Time a thread of this process has been ready to run and waited: the second number of its
/// `schedstat` (Documentation/scheduler/sched-stats.rst).
fn run_queue_ns(thread: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
