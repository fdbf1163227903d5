//! Stamps every event with the run's time and hands it to the recorder and the listener.

use ew_model::event::{RecordedEvent, RunEvent};
use ew_store::{RunWriter, StoreError};
use ew_sys::clock;

/// Who watches a run live.
pub(crate) type Listener<'a> = &'a mut dyn FnMut(u64, &RunEvent);

/// The one way out of the controller.
pub(crate) struct Journal<'a> {
    began_ns: u64,
    recorder: RunWriter,
    listener: Listener<'a>,
    failure: Option<StoreError>,
}

impl<'a> Journal<'a> {
    pub(crate) fn new(recorder: RunWriter, listener: Listener<'a>) -> Self {
        Self {
            began_ns: clock::monotonic_ns(),
            recorder,
            listener,
            failure: None,
        }
    }

    /// Records and shows an event. A full disk must not stop a measurement under way: the failure is kept for the end.
    pub(crate) fn emit(&mut self, event: RunEvent) {
        let at_ns = clock::monotonic_ns() - self.began_ns;
        (self.listener)(at_ns, &event);
        if !event.is_live_only()
            && let Err(error) = self.recorder.record(&RecordedEvent { at_ns, event })
        {
            self.failure.get_or_insert(error);
        }
    }

    /// A warning in words.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.emit(RunEvent::Warning {
            message: message.into(),
        });
    }

    /// The recorder, or the first failure to record.
    pub(crate) fn close(self) -> Result<RunWriter, StoreError> {
        match self.failure {
            Some(error) => Err(error),
            None => Ok(self.recorder),
        }
    }
}
