//! What the thread of a stream counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What one thread counts. On cache lines of its own, written by that thread only.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(super) bytes: AtomicU64,
    pub(super) packets: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) out_of_order: AtomicU64,
    pub(super) jitter_s_bits: AtomicU64,
    pub(super) cpu_user_ns: AtomicU64,
    pub(super) cpu_system_ns: AtomicU64,
}

/// One reading of a stream's counters, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) jitter_s: f64,
}

impl Counters {
    pub(crate) fn read(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            bytes: read(&self.bytes),
            packets: read(&self.packets),
            lost: read(&self.lost),
            out_of_order: read(&self.out_of_order),
            jitter_s: f64::from_bits(read(&self.jitter_s_bits)),
        }
    }
}
