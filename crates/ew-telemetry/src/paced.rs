//! Readings that cost more than the rest and are therefore repeated no more often than their cost
//! allows.

use crate::cost::Meter;

/// A reading may take one part in so many of the time of one core.
const TIME_PER_COST: u64 = 200;
/// Nothing that is paced changes so fast that it is worth reading more often, less a little for
/// timers that are early.
const MIN_INTERVAL_NS: u64 = 950_000_000;

/// The latest of such readings.
#[derive(Debug, Default)]
pub(crate) struct Paced<Reading> {
    latest: Reading,
    next_ns: u64,
}

impl<Reading: Clone> Paced<Reading> {
    /// The latest reading, without a new one.
    pub(crate) fn last(&self) -> &Reading {
        &self.latest
    }

    /// Reads again when it is time to, and gives the latest reading.
    pub(crate) fn latest(&mut self, now_ns: u64, read: impl FnOnce() -> Reading) -> Reading {
        if now_ns >= self.next_ns {
            let meter = Meter::start();
            self.latest = read();
            // CPU time, not time that passed: a reader that waits for a CPU takes nobody's, and on
            // a busy host it would read no more.
            let cost_ns = meter.cost().cpu_ns;
            self.next_ns = now_ns + (cost_ns * TIME_PER_COST).max(MIN_INTERVAL_NS);
        }
        self.latest.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LATER_NS: u64 = 5_000_000_000_000;

    #[test]
    fn what_costs_much_is_read_seldom() {
        let mut paced = Paced::default();
        assert_eq!(paced.latest(5, || 1), 1);
        assert_eq!(paced.latest(MIN_INTERVAL_NS, || 2), 1, "too early");
        let cost_ns = 20_000_000;
        let read = || {
            let meter = Meter::start();
            while meter.cost().cpu_ns < cost_ns {}
            3
        };
        assert_eq!(paced.latest(LATER_NS, read), 3);
        let due_ns = LATER_NS + cost_ns * TIME_PER_COST;
        assert_eq!(paced.latest(due_ns - 1, || 4), 3);
        assert_eq!(paced.latest(u64::MAX / 2, || 5), 5);
    }

    #[test]
    fn a_reader_that_waits_costs_nothing() {
        let mut paced = Paced::default();
        let read = || {
            std::thread::sleep(Duration::from_millis(100));
            1
        };
        assert_eq!(paced.latest(LATER_NS, read), 1);
        assert_eq!(paced.latest(LATER_NS + 2 * MIN_INTERVAL_NS, || 2), 2);
    }
}
