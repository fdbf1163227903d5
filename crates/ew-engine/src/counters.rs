//! A stream's counters.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A stream's counters. Only the stream's own thread writes; anybody reads. As wide as the pair of
/// cache lines that CPUs fetch together, so that streams do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StreamCounters {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    transactions: AtomicU64,
    first_send_ns: AtomicU64,
    done_ns: AtomicU64,
}

impl StreamCounters {
    /// Must be called by the stream's own thread only, as all that count.
    pub(crate) fn add_sent(&self, bytes: u64) {
        add(&self.sent_bytes, bytes);
    }

    pub(crate) fn add_received(&self, bytes: u64) {
        add(&self.received_bytes, bytes);
    }

    pub(crate) fn add_transactions(&self, count: u64) {
        add(&self.transactions, count);
    }

    /// The stream has moved all it was to move.
    pub(crate) fn note_done(&self, now_ns: u64) {
        self.done_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn note_first_send(&self, now_ns: u64) {
        self.first_send_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// `None` as long as there is more to move.
    pub(crate) fn done_ns(&self) -> Option<u64> {
        Some(self.done_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
    }

    /// `None` before the first send.
    pub(crate) fn first_send_ns(&self) -> Option<u64> {
        Some(self.first_send_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
    }
}

/// With one writer a load and a store do, which are cheaper than a locked addition.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

/// All bytes since the engine's start: of running streams and of those that are over.
#[derive(Debug, Default)]
pub(crate) struct ByteTotals(Mutex<Totals>);

#[derive(Debug, Default)]
struct Totals {
    running: Vec<Arc<StreamCounters>>,
    closed_sent_bytes: u64,
    closed_received_bytes: u64,
}

impl ByteTotals {
    pub(crate) fn open(&self, streams: impl Iterator<Item = Arc<StreamCounters>>) {
        self.lock().running.extend(streams);
    }

    /// Moves counters that nobody writes to any more into the sums.
    pub(crate) fn close(&self, streams: &[Arc<StreamCounters>]) {
        let closed: HashSet<_> = streams.iter().map(Arc::as_ptr).collect();
        let mut totals = self.lock();
        let is_open = |running: &Arc<_>| !closed.contains(&Arc::as_ptr(running));
        totals.running.retain(is_open);
        for counters in streams {
            totals.closed_sent_bytes += counters.sent_bytes();
            totals.closed_received_bytes += counters.received_bytes();
        }
    }

    /// Bytes sent and received.
    pub(crate) fn sum(&self) -> (u64, u64) {
        let totals = self.lock();
        let running = totals.running.iter();
        running.fold(
            (totals.closed_sent_bytes, totals.closed_received_bytes),
            |(sent, received), counters| {
                (
                    sent + counters.sent_bytes(),
                    received + counters.received_bytes(),
                )
            },
        )
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_do_not_change_when_a_stream_is_closed() {
        let totals = ByteTotals::default();
        let streams = [
            Arc::new(StreamCounters::default()),
            Arc::new(StreamCounters::default()),
        ];
        totals.open(streams.iter().cloned());
        streams[0].add_sent(10);
        streams[1].add_received(4);
        assert_eq!(totals.sum(), (10, 4));
        totals.close(&streams[..1]);
        streams[1].add_received(1);
        assert_eq!(totals.sum(), (10, 5));
    }

    #[test]
    fn streams_do_not_share_cache_lines() {
        assert_eq!(std::mem::align_of::<StreamCounters>(), 128);
    }
}
