//! Bytes waiting to be written, bounded, and why a command was not taken.

use crate::contradiction::Contradiction;
use crate::frame::{FrameError, encode_within};
use crate::limits::MAX_FRAME_BYTES;
use crate::limits::Message;
use ew_model::plan::StageIndex;
use std::collections::VecDeque;
use thiserror::Error;

/// What may wait to be written; space for a few of the largest messages.
pub(crate) const MAX_WAITING_BYTES: usize = 4 * MAX_FRAME_BYTES;

/// What may wait to be read by the caller. Above what one 64 KiB read can hold, so a caller that
/// drains the events after each read never meets it.
pub(crate) const MAX_WAITING_EVENTS: usize = 16_384;

/// Why a command was not taken. The session itself is unharmed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The session is over.
    #[error("`{command}` came after the session had ended")]
    Closed {
        /// Which command.
        command: &'static str,
    },
    /// Not in this state.
    #[error("`{command}` is not possible while {state}")]
    OutOfOrder {
        /// Which command.
        command: &'static str,
        /// What the session is doing.
        state: &'static str,
    },
    /// The stage was aborted, refused or done before. After an abort this is no fault: drop what
    /// belonged to it.
    #[error("stage {} is not the stage at hand; it was aborted or is over", stage.0)]
    StageOver {
        /// Which.
        stage: StageIndex,
    },
    /// What is to be sent contradicts the stage's order.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The message does not fit a frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer does not read.
    #[error("{waiting_bytes} bytes wait to be written: the peer does not read")]
    QueueFull {
        /// How many.
        waiting_bytes: usize,
    },
}

/// Frames in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    frames: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
}

impl Outbox {
    pub(crate) fn send<T: Message>(&mut self, message: &T) -> Result<(), CommandError> {
        self.send_within(message, MAX_FRAME_BYTES)
    }

    /// As [`Outbox::send`], of at most `limit` bytes.
    pub(crate) fn send_within<T: Message>(
        &mut self,
        message: &T,
        limit: usize,
    ) -> Result<(), CommandError> {
        let frame = encode_within(message, limit)?;
        if self.waiting_bytes + frame.len() > MAX_WAITING_BYTES {
            return Err(CommandError::QueueFull {
                waiting_bytes: self.waiting_bytes,
            });
        }
        self.push_bytes(frame);
        Ok(())
    }

    pub(crate) fn push_bytes(&mut self, bytes: Vec<u8>) {
        self.waiting_bytes += bytes.len();
        self.frames.push_back(bytes);
    }

    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.waiting_bytes -= frame.len();
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToController;

    #[test]
    fn what_waits_is_bounded() {
        let mut outbox = Outbox::default();
        let message = ToController::Fault {
            message: "x".repeat(63 << 10),
        };
        for _ in 0..1040 {
            outbox.send(&message).unwrap();
        }
        assert!(matches!(
            outbox.send(&message),
            Err(CommandError::QueueFull { .. })
        ));
        assert!(outbox.pop().is_some());
        outbox.send(&message).unwrap();
    }
}
