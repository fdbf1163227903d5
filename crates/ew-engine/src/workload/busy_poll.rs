//! Busy polling of a socket before sleeping: where data follow each other closely, waking the
//! receiver costs the sender more than sending does, above all on a virtual CPU.

use super::machine::Slot;

/// After polls in vain at most this many receives sleep at once, until the next poll: slow flows
/// cost no CPU time.
const MAX_SKIPPED: u32 = 63;

/// The busy polling of one receiver.
pub(super) struct BusyPoll {
    /// 0: never.
    for_ns: u64,
    until_ns: u64,
    is_on: bool,
    /// Receives that slept at once, or will, for the last poll in vain.
    skipped: u32,
    /// Those of them that are still to come.
    to_skip: u32,
}

impl BusyPoll {
    /// Polls last this long after the last data. There are none where the flow is paced, or others
    /// need the CPU.
    pub(super) fn new(slot: &Slot<'_>, for_ns: u64) -> Self {
        let pace = &slot.shared.workload.pace;
        let is_paced = pace
            .stream_bits_per_sec
            .or(pace.flow_bits_per_sec)
            .or(slot.stream.bits_per_sec)
            .is_some();
        match is_paced || !slot.shared.leaves_cpus {
            true => Self::lasting(0),
            false => Self::lasting(for_ns),
        }
    }

    fn lasting(for_ns: u64) -> Self {
        Self {
            for_ns,
            until_ns: 0,
            is_on: false,
            skipped: 0,
            to_skip: 0,
        }
    }

    /// Whether the next receive shall not sleep.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A receive came back with something or with nothing. The time, ns, is read only where
    /// there are polls.
    pub(super) fn note(&mut self, now_ns: impl FnOnce() -> u64, has_come: bool) {
        if self.for_ns == 0 {
            return;
        }
        if has_come {
            self.go_on(now_ns());
        } else if self.is_on && now_ns() >= self.until_ns {
            self.is_on = false;
            self.skipped = (self.skipped * 2 + 1).min(MAX_SKIPPED);
            self.to_skip = self.skipped;
        }
    }

    fn go_on(&mut self, now_ns: u64) {
        if self.is_on {
            self.skipped = 0;
        }
        self.is_on = self.to_skip == 0;
        self.to_skip = self.to_skip.saturating_sub(1);
        self.until_ns = now_ns + self.for_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOR_NS: u64 = 20;

    /// Receives that slept, of data that come at these intervals.
    fn sleeps(gap_ns: u64, count: u64) -> u64 {
        let mut busy_poll = BusyPoll::lasting(FOR_NS);
        let mut slept = 0;
        for number in 0..count {
            let came_ns = number * gap_ns;
            while busy_poll.is_on() && busy_poll.until_ns <= came_ns {
                let until_ns = busy_poll.until_ns;
                busy_poll.note(|| until_ns, false);
            }
            slept += u64::from(!busy_poll.is_on());
            busy_poll.note(|| came_ns, true);
        }
        slept
    }

    #[test]
    fn what_follows_closely_is_never_slept_for() {
        assert_eq!(sleeps(FOR_NS - 1, 10_000), 1);
    }

    #[test]
    fn slow_flows_are_rarely_polled() {
        let mut busy_poll = BusyPoll::lasting(FOR_NS);
        let mut polls = 0;
        for number in 0..10_000_u64 {
            busy_poll.note(|| number * 100, true);
            polls += u64::from(busy_poll.is_on());
            busy_poll.note(|| number * 100 + FOR_NS, false);
            assert!(!busy_poll.is_on());
        }
        assert!((150..170).contains(&polls), "{polls} polls");
    }

    #[test]
    fn without_polling_every_receive_sleeps() {
        let mut busy_poll = BusyPoll::lasting(0);
        busy_poll.note(|| 0, true);
        assert!(!busy_poll.is_on());
    }

    #[test]
    fn one_success_ends_the_penalty() {
        let mut busy_poll = BusyPoll::lasting(FOR_NS);
        for at_ns in [0, 100, 200, 300, 400, 500, 600, 700] {
            busy_poll.note(|| at_ns, true);
            busy_poll.note(|| at_ns + FOR_NS, false);
        }
        assert!(busy_poll.skipped > 1);
        while !busy_poll.is_on() {
            busy_poll.note(|| 1000, true);
        }
        busy_poll.note(|| 1001, true);
        assert_eq!((busy_poll.skipped, busy_poll.is_on()), (0, true));
    }
}
