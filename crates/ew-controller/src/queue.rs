//! Events on their way to a thread that may be slow: a disk or a terminal. Whoever sends never
//! waits.

use ew_model::event::{RecordedEvent, RunEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// What an event without lists takes, about.
const PLAIN_BYTES: usize = 512;
/// A record of a flow with its streams, intervals and histograms, about.
pub(crate) const RECORD_BYTES: usize = 4096;
/// A CPU, interface or counter of a sample, about.
const COUNTER_BYTES: usize = 128;
/// A watched host's reading, about.
const READING_BYTES: usize = 256 * 1024;

/// The sending end; knows how much waits.
#[derive(Clone, Debug)]
pub(crate) struct EventSender {
    events: Sender<Arc<RecordedEvent>>,
    waiting_bytes: Arc<AtomicUsize>,
    limit_bytes: usize,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct EventReceiver {
    events: Receiver<Arc<RecordedEvent>>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// A queue in which about `limit_bytes` may wait.
pub(crate) fn event_queue(limit_bytes: usize) -> (EventSender, EventReceiver) {
    let (sender, events) = channel();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let sender = EventSender {
        events: sender,
        waiting_bytes: Arc::clone(&waiting_bytes),
        limit_bytes,
    };
    let receiver = EventReceiver {
        events,
        waiting_bytes,
    };
    (sender, receiver)
}

impl EventSender {
    /// Queues an event while there is space. Whether it was.
    pub(crate) fn offer(&self, event: &Arc<RecordedEvent>) -> bool {
        let waiting_bytes = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting_bytes + held_bytes(&event.event) > self.limit_bytes {
            return false;
        }
        self.send(event);
        true
    }

    /// Queues an event whatever waits: for those whose number follows from the plan.
    pub(crate) fn send(&self, event: &Arc<RecordedEvent>) {
        let bytes = held_bytes(&event.event);
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        // A consumer that is gone has panicked, which its join shows.
        let _ = self.events.send(Arc::clone(event));
    }
}

impl EventReceiver {
    /// What waits now, or that every sender is gone.
    pub(crate) fn poll(&mut self) -> Result<Arc<RecordedEvent>, TryRecvError> {
        self.events.try_recv().map(|event| self.taken(event))
    }

    /// So many bytes wait, about.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    fn taken(&self, event: Arc<RecordedEvent>) -> Arc<RecordedEvent> {
        let bytes = held_bytes(&event.event);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        event
    }
}

impl Iterator for EventReceiver {
    type Item = Arc<RecordedEvent>;

    /// Waits; `None` when every sender is gone.
    fn next(&mut self) -> Option<Self::Item> {
        self.events.recv().ok().map(|event| self.taken(event))
    }
}

/// What an event takes in memory, roughly.
fn held_bytes(event: &RunEvent) -> usize {
    match event {
        RunEvent::RoundFinished { records, .. } => PLAIN_BYTES + records.len() * RECORD_BYTES,
        RunEvent::HostSampled { sample, .. } => {
            let causes = sample.causes.as_ref().map_or(0, |causes| {
                causes.driver_counters.len() + causes.softnet.len() + 16 * causes.traffic.len()
            });
            let counters = sample.cpus.len() + sample.interfaces.len() + causes;
            PLAIN_BYTES + counters * COUNTER_BYTES
        }
        RunEvent::HostRead { .. } => READING_BYTES,
        RunEvent::StorageStepFinished(step) => {
            let held = step.reports.iter();
            let counters = held.map(|(_, r)| r.files.len() + r.interval_bytes.len());
            PLAIN_BYTES + counters.sum::<usize>() * COUNTER_BYTES
        }
        _ => PLAIN_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::facts::HostSample;
    use ew_model::inventory::HostId;

    fn sample() -> Arc<RecordedEvent> {
        Arc::new(RecordedEvent {
            at_ns: 0,
            event: RunEvent::HostSampled {
                host: HostId(0),
                sample: HostSample::default(),
            },
        })
    }

    #[test]
    fn what_waits_is_bounded_and_nothing_blocks() {
        let (sender, mut receiver) = event_queue(4 * PLAIN_BYTES);
        let taken = (0..1000).filter(|_| sender.offer(&sample())).count();
        assert_eq!(taken, 4);
        sender.send(&sample());
        assert!(receiver.next().is_some() && receiver.next().is_some());
        assert!(sender.offer(&sample()));
        drop(sender);
        assert_eq!(receiver.count(), 4);
    }
}
