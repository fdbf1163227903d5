//! A thread that drives streams of a round.

use crate::arrivals::{Arrival, Arrivals};
use crate::drive::{Scratch, blocking, polled};
use crate::placement;
use crate::shared::RoundShared;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::workload::machine::Prepared;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};

/// Deep enough for a driver and an error message; there may be many threads.
const STACK_BYTES: usize = 128 * 1024;

/// One thread of a round before it runs.
pub(crate) struct Worker {
    pub(crate) prepared: Arc<dyn Prepared>,
    pub(crate) shared: Arc<RoundShared>,
    /// From 0.
    pub(crate) number: usize,
    pub(crate) streams: Vec<Arc<Stream>>,
    pub(crate) arrivals: Receiver<Arrival>,
}

impl Worker {
    /// Starts the thread. A failure to start it is its streams' error.
    pub(crate) fn spawn(self) {
        let streams = self.streams.clone();
        let shared = Arc::clone(&self.shared);
        let started = start_thread("streams", &shared, move || self.run());
        if let Err(error) = started {
            fail_all(&streams, &error);
        }
    }

    fn run(self) {
        let Self {
            prepared,
            shared,
            number,
            streams,
            arrivals,
        } = self;
        ew_sys::thread::use_exact_timers();
        if let Err(error) = placement::place(&shared, number, &streams) {
            return fail_all(&streams, &error);
        }
        shared.enter_thread();
        let mut scratch = Scratch::new(&*prepared, streams.iter().map(|s| &**s));
        let mut arrivals = Arrivals::new(prepared, streams, arrivals);
        drive(&shared, &mut arrivals, &mut scratch);
        shared.leave_thread();
        let mut tallies = shared
            .tallies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        tallies.extend(scratch.tallies);
    }
}

fn drive(shared: &RoundShared, arrivals: &mut Arrivals, scratch: &mut Scratch) {
    let mut members = Vec::with_capacity(arrivals.streams.len());
    let is_alone = arrivals.streams.len() == 1 && arrivals.prepared.may_block();
    // A stream that is alone can wait beyond the start without keeping others from it.
    let gather_until_ns = match is_alone {
        true => u64::MAX,
        false => shared.start_ns,
    };
    if arrivals
        .gather(shared, gather_until_ns, &mut members)
        .is_err()
    {
        return;
    }
    placement::follow_queue(shared, &members);
    if is_alone {
        if let Some(member) = members.pop() {
            blocking::drive(shared, member, scratch);
        }
        return;
    }
    if let Err(error) = polled::drive(shared, arrivals, members, scratch) {
        fail_all(&arrivals.streams, &StreamError::Watch(error));
    }
}

fn fail_all(streams: &[Arc<Stream>], error: &StreamError) {
    for stream in streams {
        stream.fail(error);
    }
}

/// Starts a thread of the round, which the round's end waits for.
pub(crate) fn start_thread(
    name: &str,
    shared: &Arc<RoundShared>,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), StreamError> {
    shared.running.fetch_add(1, Ordering::AcqRel);
    let leaving = Leaving(Arc::clone(shared));
    let spawned = std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let _leaving = leaving;
            work();
        });
    spawned.map(drop).map_err(StreamError::Thread)
}

/// Counts a thread out, however it ends, or if it never began.
struct Leaving(Arc<RoundShared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}
