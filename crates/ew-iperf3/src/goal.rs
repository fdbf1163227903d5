//! A test that ends after so many bytes or blocks: shared by all streams of one end.

use crate::wire::params::{End, Params, Protocol};
use ew_sys::clock::monotonic_ns;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Blocks,
}

/// What the streams work towards, and how they wake the thread that watches them.
#[derive(Debug)]
pub(crate) struct Goal {
    limit: Option<(Unit, u64)>,
    /// The omitted time counts for nothing.
    armed: AtomicBool,
    reserved: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Senders that have nothing more to send.
    ended_sources: AtomicUsize,
    /// When the last byte was through, CLOCK_MONOTONIC; 0 while it is not.
    reached_ns: AtomicU64,
    ring: UnixStream,
    bell: UnixStream,
}

impl Goal {
    /// No limit but time.
    pub(crate) fn none() -> io::Result<Self> {
        Self::new(End::Time(0))
    }

    /// The client's limit.
    pub(crate) fn of(params: &Params) -> io::Result<Self> {
        Self::new(match params.end {
            // Blocks of a stream of bytes arrive in pieces of any size.
            End::Blocks(blocks) if params.protocol == Protocol::Tcp => {
                End::Bytes(blocks.saturating_mul(params.block_bytes as u64))
            }
            end => end,
        })
    }

    fn new(end: End) -> io::Result<Self> {
        let (ring, bell) = UnixStream::pair()?;
        ring.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        Ok(Self {
            limit: match end {
                End::Time(_) => None,
                End::Bytes(bytes) => Some((Unit::Bytes, bytes)),
                End::Blocks(blocks) => Some((Unit::Blocks, blocks)),
            },
            armed: AtomicBool::new(false),
            reserved: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            ended_sources: AtomicUsize::new(0),
            reached_ns: AtomicU64::new(0),
            ring,
            bell,
        })
    }

    /// Whether there is anything to reach.
    pub(crate) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }

    /// From now on it counts.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// Ready to read after [`Goal::wake`] and when the goal is reached.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Wakes who waits for the bell: a stream has ended.
    pub(crate) fn wake(&self) {
        // A full buffer wakes as well as another byte.
        let _ = (&self.ring).write(&[1]);
    }

    /// Makes the bell silent again.
    pub(crate) fn silence(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.bell).read(&mut bytes), Ok(1..)) {}
    }

    /// When the goal was reached, CLOCK_MONOTONIC.
    pub(crate) fn reached_ns(&self) -> Option<u64> {
        Some(self.reached_ns.load(Ordering::Acquire)).filter(|at_ns| *at_ns > 0)
    }

    /// How much of a block to send next; 0 when all is spoken for.
    pub(crate) fn reserve(&self, block_bytes: usize) -> usize {
        let Some((unit, limit)) = self.active() else {
            return block_bytes;
        };
        let wanted = match unit {
            Unit::Bytes => block_bytes as u64,
            Unit::Blocks => 1,
        };
        let before = self.reserved.fetch_add(wanted, Ordering::Relaxed);
        let granted = limit.saturating_sub(before).min(wanted);
        if unit == Unit::Blocks && granted > 0 {
            return block_bytes;
        }
        granted as usize
    }

    /// A block of so many bytes was sent.
    pub(crate) fn note_sent(&self, bytes: usize) {
        if self.active().is_some() {
            self.note(&self.sent, bytes);
        }
    }

    /// So many bytes came in one go.
    pub(crate) fn note_received(&self, bytes: usize) {
        if self.active().is_some() {
            self.note(&self.received, bytes);
        }
    }

    /// One of so many senders is at the end of what it had to send; the last one reaches the goal.
    pub(crate) fn note_source_end(&self, senders: usize) {
        let ended = 1 + self.ended_sources.fetch_add(1, Ordering::Relaxed);
        if ended == senders && self.reached_ns().is_none() {
            self.reach();
        }
    }

    fn active(&self) -> Option<(Unit, u64)> {
        self.limit.filter(|_| self.armed.load(Ordering::Relaxed))
    }

    fn note(&self, total: &AtomicU64, bytes: usize) {
        let Some((unit, limit)) = self.limit else {
            return;
        };
        let amount = match unit {
            Unit::Bytes => bytes as u64,
            Unit::Blocks => 1,
        };
        let before = total.fetch_add(amount, Ordering::Relaxed);
        if before < limit && before + amount >= limit {
            self.reach();
        }
    }

    fn reach(&self) {
        self.reached_ns.store(monotonic_ns(), Ordering::Release);
        self.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_granted_to_the_last_one() {
        let goal = Goal::new(End::Bytes(250)).unwrap();
        assert_eq!(goal.reserve(100), 100);
        goal.arm();
        let granted: Vec<usize> = (0..4).map(|_| goal.reserve(100)).collect();
        assert_eq!(granted, [100, 100, 50, 0]);
        goal.note_sent(200);
        assert_eq!(goal.reached_ns(), None);
        goal.note_sent(50);
        assert!(goal.reached_ns().is_some());
    }

    #[test]
    fn blocks_are_whole() {
        let goal = Goal::new(End::Blocks(2)).unwrap();
        goal.arm();
        let granted: Vec<usize> = (0..3).map(|_| goal.reserve(100)).collect();
        assert_eq!(granted, [100, 100, 0]);
        goal.note_received(1);
        goal.note_received(1);
        assert!(goal.reached_ns().is_some());
    }

    #[test]
    fn pieces_of_a_tcp_streams_blocks_are_no_blocks() {
        let params = Params {
            end: End::Blocks(2),
            block_bytes: 100,
            ..Params::default()
        };
        let goal = Goal::of(&params).unwrap();
        goal.arm();
        for _ in 0..19 {
            goal.note_received(10);
        }
        assert_eq!(goal.reached_ns(), None);
        goal.note_received(10);
        assert!(goal.reached_ns().is_some());
    }

    #[test]
    fn the_last_source_to_end_reaches_the_goal() {
        let goal = Goal::none().unwrap();
        goal.note_source_end(2);
        assert_eq!(goal.reached_ns(), None);
        goal.note_source_end(2);
        assert!(goal.reached_ns().is_some());
    }

    #[test]
    fn the_bell_rings_until_it_is_silenced() {
        let goal = Goal::none().unwrap();
        goal.wake();
        assert!(matches!((&goal.bell).read(&mut [0; 1]), Ok(1)));
        goal.wake();
        goal.silence();
        assert!((&goal.bell).read(&mut [0; 1]).is_err());
    }
}
