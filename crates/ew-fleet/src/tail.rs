//! The bounded end of what another program printed.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is kept of another program's words.
const KEPT_BYTES: usize = 4096;
/// How many lines of it a message shows.
const SHOWN_LINES: usize = 3;

/// The last 4 KiB of a stream, shared between the task that drains it and whoever asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Tail {
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..excess);
    }

    /// All that is kept, without anything a terminal would obey.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept)
            .chars()
            .filter(|c| *c == '\n' || *c == '\t' || !c.is_control())
            .collect()
    }

    /// The last lines in one, for a message; empty when nothing was printed.
    pub(crate) fn words(&self) -> String {
        let text = self.text();
        let mut lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let first = lines.len().saturating_sub(SHOWN_LINES);
        lines.drain(..first);
        lines.join("; ")
    }

    /// Reads a stream to its end, however much comes.
    pub(crate) async fn drain(self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = [0; 1024];
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            self.push(&buffer[..length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_terminals_are_safe() {
        let tail = Tail::default();
        for line in 0..10_000 {
            tail.push(format!("line {line}\r\n").as_bytes());
        }
        tail.push(b"\x1b[31mPermission denied\x07 (publickey).\xff\r\n\n");
        assert!(tail.text().len() <= KEPT_BYTES + 2);
        assert_eq!(
            tail.words(),
            "line 9998; line 9999; [31mPermission denied (publickey).\u{fffd}"
        );
        assert_eq!(Tail::default().words(), "");
    }
}
