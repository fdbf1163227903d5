//! Keeping to a rate.

use ew_sys::clock::{monotonic_ns, sleep_until_ns};

/// Longest sleep between two checks of a stop flag.
const SLICE_NS: u64 = 100_000_000;

/// Computes when the next blocks are due so that the mean since the start is the rate, as iperf3
/// has it: time lost is made up for.
#[derive(Debug)]
pub(super) struct Pace {
    bits_per_sec: u64,
    burst: u32,
    start_ns: u64,
    sent_bytes: u64,
    left_in_burst: u32,
}

impl Pace {
    /// A rate of 0 is none; a burst of 0 is 1.
    pub(super) fn new(bits_per_sec: u64, burst: u32) -> Self {
        Self {
            bits_per_sec,
            burst: burst.max(1),
            start_ns: monotonic_ns(),
            sent_bytes: 0,
            left_in_burst: 0,
        }
    }

    /// Sleeps until the next block is due, or until it returns false because of `stopped`.
    pub(super) fn wait(&mut self, stopped: impl Fn() -> bool) -> bool {
        if self.bits_per_sec == 0 || self.left_in_burst > 0 {
            self.left_in_burst = self.left_in_burst.saturating_sub(1);
            return !stopped();
        }
        let due_ns = self.due_ns();
        let mut now_ns = monotonic_ns();
        while now_ns < due_ns {
            if stopped() {
                return false;
            }
            sleep_until_ns(due_ns.min(now_ns + SLICE_NS));
            now_ns = monotonic_ns();
        }
        self.left_in_burst = self.burst - 1;
        !stopped()
    }

    /// So many bytes were sent.
    pub(super) fn note(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    fn due_ns(&self) -> u64 {
        let bit_ns = u128::from(self.sent_bytes) * 8 * 1_000_000_000;
        let after_ns = bit_ns / u128::from(self.bits_per_sec.max(1));
        self.start_ns
            .saturating_add(u64::try_from(after_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_due_when_the_mean_is_the_rate() {
        let mut pace = Pace::new(8_000_000, 0);
        assert_eq!(pace.due_ns(), pace.start_ns);
        pace.note(1000);
        assert_eq!(pace.due_ns(), pace.start_ns + 1_000_000);
    }

    #[test]
    fn a_burst_is_not_interrupted() {
        let mut pace = Pace::new(1, 3);
        for _ in 0..3 {
            assert!(pace.wait(|| false));
            pace.note(1000);
        }
        assert!(!pace.wait(|| true));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pace = Pace::new(0, 0);
        pace.note(usize::MAX >> 1);
        assert!(pace.wait(|| false));
    }
}
