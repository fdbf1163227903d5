//! What the thread of a stream works with.

use super::counters::Counters;
use super::work::Work;
use socket2::Socket;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a stream's thread has in its hands.
pub(super) struct Mover {
    pub(super) socket: Arc<Socket>,
    pub(super) counters: Arc<Counters>,
    pub(super) work: Work,
    pub(super) index: usize,
}

impl Mover {
    pub(super) fn stopped(&self, sends: bool) -> bool {
        let flag = if sends {
            &self.work.stop_senders
        } else {
            &self.work.stop_receivers
        };
        flag.load(Ordering::Relaxed)
    }
}

/// Whether a call only waited too long, or was disturbed: to be tried again.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
