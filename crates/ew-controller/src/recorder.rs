//! Writes the run directory on a thread of its own, so that a disk that hesitates or is full stops
//! nothing else.

use crate::queue::{EventReceiver, EventSender};
use ew_model::event::{RecordedEvent, RunEvent};
use ew_store::{RunWriter, StoreError};
use std::sync::Arc;

/// What a run may write, unless it is all needed: beyond it samples are skipped. Ten times what a
/// thousand hosts write in ten minutes.
const MAX_EVENTS_BYTES: u64 = 8 << 30;

/// What became of a run's events.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) writer: RunWriter,
    /// The first failure to write.
    pub(crate) failure: Option<StoreError>,
}

/// Writes every event that comes, until there are no more; failures are reported at once, through
/// `shown`.
pub(crate) fn record(events: EventReceiver, writer: RunWriter, shown: EventSender) -> Recorded {
    let mut recorder = Recorder {
        writer,
        shown,
        failure: None,
        lost: 0,
        limit_bytes: MAX_EVENTS_BYTES,
    };
    events.for_each(|event| recorder.take(&event));
    recorder.close();
    Recorded {
        writer: recorder.writer,
        failure: recorder.failure,
    }
}

struct Recorder {
    writer: RunWriter,
    shown: EventSender,
    failure: Option<StoreError>,
    /// Not written since the last event that was.
    lost: u64,
    limit_bytes: u64,
}

impl Recorder {
    fn take(&mut self, event: &RecordedEvent) {
        let is_sample = matches!(event.event, RunEvent::HostSampled { .. });
        if is_sample && self.writer.events_bytes() >= self.limit_bytes {
            self.lost += 1;
            return;
        }
        if self.lost > 0 && !is_sample {
            self.mark_lost(event.at_ns);
        }
        if let Err(error) = self.writer.record(event) {
            self.lost += 1;
            self.complain(event.at_ns, error);
        }
    }

    /// So that who reads the run knows that something is missing. Where even this cannot be
    /// written, later.
    fn mark_lost(&mut self, at_ns: u64) {
        let count = self.lost;
        let event = RunEvent::EventsLost { count };
        if self.writer.record(&RecordedEvent { at_ns, event }).is_ok() {
            self.lost = 0;
        }
    }

    fn complain(&mut self, at_ns: u64, error: StoreError) {
        if self.failure.is_some() {
            return;
        }
        let message = format!(
            "the run goes on, but what it finds cannot be written: {error}; free some space, and what comes from then on is kept"
        );
        let event = RunEvent::Warning { message };
        self.shown.send(&Arc::new(RecordedEvent { at_ns, event }));
        self.failure = Some(error);
    }

    fn close(&mut self) {
        if self.lost > 0 {
            self.mark_lost(0);
        }
    }
}
