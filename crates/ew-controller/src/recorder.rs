//! Writes the run directory on a thread of its own, so that a disk that hesitates or is full stops
//! nothing else.

use crate::queue::{EventReceiver, EventSender};
use ew_model::event::{RecordedEvent, RunEvent};
use ew_store::{EventWriter, StoreError};
use std::sync::Arc;

/// What a run may write, unless it is all needed: beyond it samples are skipped. Ten times what a
/// thousand hosts write in ten minutes.
const MAX_EVENTS_BYTES: u64 = 8 << 30;

/// Writes every event that comes, until there are no more; failures are reported at once, through
/// `shown`. Returns the first.
pub(crate) fn record(
    events: EventReceiver,
    writer: &mut EventWriter,
    shown: EventSender,
) -> Option<StoreError> {
    let mut recorder = Recorder::new(writer, shown);
    events.for_each(|event| recorder.take(&event));
    recorder.close()
}

/// Between the events and the disk.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    writer: &'a mut EventWriter,
    shown: EventSender,
    failure: Option<StoreError>,
    /// Not written since the last event that was.
    lost: u64,
    /// When the last event was.
    last_ns: u64,
    limit_bytes: u64,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(writer: &'a mut EventWriter, shown: EventSender) -> Self {
        Self {
            writer,
            shown,
            failure: None,
            lost: 0,
            last_ns: 0,
            limit_bytes: MAX_EVENTS_BYTES,
        }
    }

    pub(crate) fn take(&mut self, event: &RecordedEvent) {
        self.last_ns = event.at_ns;
        let is_sample = matches!(event.event, RunEvent::HostSampled { .. });
        if is_sample && self.writer.written_bytes() >= self.limit_bytes {
            self.lost += 1;
            return;
        }
        if self.lost > 0 && !is_sample {
            self.mark_lost(event.at_ns);
        }
        if let Err(error) = self.writer.append(event) {
            self.lost += 1;
            self.complain(event.at_ns, error);
        }
    }

    /// So that who reads the run knows that something is missing. Where even this cannot be
    /// written, later.
    fn mark_lost(&mut self, at_ns: u64) {
        let count = self.lost;
        let event = RunEvent::EventsLost { count };
        if self.writer.append(&RecordedEvent { at_ns, event }).is_ok() {
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

    /// After the last event. The first failure to write.
    pub(crate) fn close(mut self) -> Option<StoreError> {
        if self.lost > 0 {
            self.mark_lost(self.last_ns);
        }
        self.failure
    }
}
