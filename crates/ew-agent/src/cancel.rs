//! Sleep that ends when a stage is cancelled.

use ew_sys::clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancelled stage is noticed within this.
pub(crate) const CANCEL_CHECK_NS: u64 = 50_000_000;

/// False when it was cancelled meanwhile.
pub(crate) fn sleep_unless_cancelled(until_ns: u64, cancelled: &AtomicBool) -> bool {
    loop {
        if cancelled.load(Ordering::Relaxed) {
            return false;
        }
        let now_ns = clock::monotonic_ns();
        if now_ns >= until_ns {
            return true;
        }
        clock::sleep_until_ns(until_ns.min(now_ns + CANCEL_CHECK_NS));
    }
}
