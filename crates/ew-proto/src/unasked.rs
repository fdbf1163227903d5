//! How much an agent may send by itself. What it is asked for is bounded by the asking; samples,
//! readings and faults it sends when it wants to, and one that never stops would fill the
//! controller's memory and disk.

use crate::message::Welcome;

/// Messages at once, of any kind: what an agent buffered while a round ran.
const BURST: u64 = 64;
/// An hour's samples may wait on the agent's side for the end of a round.
const HELD_SAMPLES: u64 = 3600;
/// Timers are late, and the next reading is then early.
const EARLY_PERCENT: u64 = 90;
const FAULT_INTERVAL_NS: u64 = 1_000_000_000;
/// Of all followed flows together: each is reported once a second.
const PROGRESS_INTERVAL_NS: u64 = 20_000_000;
const EXCESS_INTERVAL_NS: u64 = 100_000_000;
/// Messages in excess of the allowances, after which the agent is no agent of ours.
const MAX_EXCESS: u64 = 1000;
/// Whatever an agent is asked for, it is not listened to more often.
const SHORTEST_INTERVAL_NS: u64 = 1_000_000;

/// The allowances of one agent.
#[derive(Clone, Debug)]
pub(crate) struct Unasked {
    pub(crate) samples: Allowance,
    pub(crate) readings: Allowance,
    pub(crate) progress: Allowance,
    pub(crate) faults: Allowance,
    pub(crate) excess: Allowance,
}

/// So many at once, and one more after each interval.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    interval_ns: u64,
    most: u64,
    left: u64,
    counted_from_ns: u64,
}

impl Unasked {
    /// As the welcome asks for.
    pub(crate) fn new(welcome: &Welcome, now_ns: u64) -> Self {
        let early = |interval_ns: u64| interval_ns / 100 * EARLY_PERCENT;
        let sample_ns = early(welcome.sample_interval_ns);
        let reading_ns = early(welcome.watch_interval_ns.unwrap_or(u64::MAX));
        Self {
            samples: Allowance::new(sample_ns, BURST, now_ns).growing_to(HELD_SAMPLES),
            readings: Allowance::new(reading_ns, BURST, now_ns),
            progress: Allowance::new(PROGRESS_INTERVAL_NS, BURST, now_ns),
            faults: Allowance::new(FAULT_INTERVAL_NS, BURST, now_ns),
            excess: Allowance::new(EXCESS_INTERVAL_NS, MAX_EXCESS, now_ns),
        }
    }
}

impl Default for Unasked {
    /// Before the welcome: only faults.
    fn default() -> Self {
        let few = || Allowance::new(FAULT_INTERVAL_NS, BURST, 0);
        Self {
            samples: few(),
            readings: few(),
            progress: few(),
            faults: few(),
            excess: few(),
        }
    }
}

impl Allowance {
    fn new(interval_ns: u64, most: u64, now_ns: u64) -> Self {
        Self {
            interval_ns: interval_ns.max(SHORTEST_INTERVAL_NS),
            most,
            left: most,
            counted_from_ns: now_ns,
        }
    }

    /// What is not used adds up to more than there was at first.
    fn growing_to(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Takes one, if there is one.
    pub(crate) fn take(&mut self, now_ns: u64) -> bool {
        let passed = now_ns.saturating_sub(self.counted_from_ns) / self.interval_ns;
        self.counted_from_ns += passed * self.interval_ns;
        self.left = self.left.saturating_add(passed).min(self.most);
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::seeds::welcome;

    const S: u64 = 1_000_000_000;

    #[test]
    fn what_is_due_passes_and_a_flood_does_not() {
        let mut unasked = Unasked::new(&welcome(), 0);
        let every_ns = welcome().sample_interval_ns;
        for number in 1..10_000 {
            assert!(unasked.samples.take(number * every_ns), "{number}");
        }
        let mut unasked = Unasked::new(&welcome(), 0);
        // Delayed for half an hour, then all at once.
        let held = 1800;
        let taken = (0..10 * held).filter(|_| unasked.samples.take(held * every_ns));
        let taken = taken.count() as u64;
        assert!((held..=held + held / 5 + BURST).contains(&taken), "{taken}");
        let flood = (0..1_000_000)
            .filter(|_| unasked.faults.take(10 * S))
            .count() as u64;
        assert_eq!(flood, BURST);
    }
}
