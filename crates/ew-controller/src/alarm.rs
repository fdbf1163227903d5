//! A timer that is set anew only when its time changes.

use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Rings at a time that mostly stays the same from one wait to the next, so that a task woken by
/// something else a hundred times a second sets no hundred timers.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// On the clock of who waits; `None` after it rang.
    set_for_ns: Option<u64>,
    timer: Pin<Box<Sleep>>,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            set_for_ns: None,
            timer: Box::pin(sleep(Duration::ZERO)),
        }
    }
}

impl Alarm {
    /// Waits until `due_ns` of the clock that shows `now_ns`, but no longer than `max_wait`.
    pub(crate) async fn rings(&mut self, due_ns: u64, now_ns: u64, max_wait: Duration) {
        if self.set_for_ns != Some(due_ns) {
            let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns));
            self.timer
                .as_mut()
                .reset(Instant::now() + wait.min(max_wait));
            self.set_for_ns = Some(due_ns);
        }
        self.timer.as_mut().await;
        self.set_for_ns = None;
    }
}
