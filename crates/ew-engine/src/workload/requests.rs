//! What request and response have in common, whatever carries them: how many, when, and how they
//! are timed.

use super::machine::{Io, Slot};
use ew_model::workload::{Limit, Workload};

/// Open loop: requests in flight on a stream; more are sent when answers came, and count from their
/// times all the same.
const MAX_IN_FLIGHT: usize = 1024;

/// What a stream asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) request_bytes: usize,
    pub(super) response_bytes: usize,
    /// Requests in flight at most.
    pub(super) most_in_flight: usize,
    /// Requests from the window's start on.
    pub(super) limit: Option<u64>,
    /// Time between the requests of a stream, ns.
    open_loop_gap_ns: Option<f64>,
}

/// The times of an open loop's requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    first_ns: u64,
    gap_ns: f64,
}

impl Asking {
    pub(super) fn new(workload: &Workload) -> Self {
        let request_bytes = workload.message_bytes as usize;
        let rate = workload.pace.requests_per_sec;
        Self {
            request_bytes,
            response_bytes: workload.answer_bytes() as usize,
            most_in_flight: match rate {
                Some(_) => MAX_IN_FLIGHT,
                None => workload.outstanding.max(1) as usize,
            },
            limit: workload.limit.map(|limit| match limit {
                Limit::Bytes(bytes) => bytes.div_ceil(request_bytes as u64),
                Limit::Messages(messages) => messages,
            }),
            open_loop_gap_ns: rate.map(|rate| 1e9 * f64::from(workload.streams) / rate),
        }
    }

    /// Whether requests have times of their own, whenever answers come.
    pub(super) fn is_open_loop(&self) -> bool {
        self.open_loop_gap_ns.is_some()
    }

    /// A stream's times in an open loop. The streams of a flow send in turn.
    pub(super) fn schedule(&self, slot: &Slot<'_>) -> Option<Schedule> {
        let share = f64::from(slot.stream.key.stream) / f64::from(slot.shared.workload.streams);
        self.open_loop_gap_ns.map(|gap_ns| Schedule {
            first_ns: slot.shared.start_ns + (gap_ns * share) as u64,
            gap_ns,
        })
    }

    /// Before the first answer, so that recording it does not allocate.
    pub(super) fn allocate(&self, io: &mut Io<'_>) {
        io.tally.times.allocate();
        if self.is_open_loop() {
            io.tally.uncorrected.allocate();
        }
    }
}

impl Schedule {
    /// Of a request, counted from 0.
    pub(super) fn due_ns(&self, request: u64) -> u64 {
        self.first_ns + (request as f64 * self.gap_ns) as u64
    }
}

/// Counts and times a request that was answered. In a closed loop it was due when it was sent.
pub(super) fn record(io: &mut Io<'_>, due_ns: Option<u64>, sent_ns: u64, now_ns: u64) {
    io.counters.add_transactions(1);
    if !io.in_window(now_ns) {
        return;
    }
    let time_ns = now_ns.saturating_sub(due_ns.unwrap_or(sent_ns));
    io.tally.times.record(time_ns);
    if due_ns.is_some() {
        io.tally.uncorrected.record(now_ns.saturating_sub(sent_ns));
    }
}
