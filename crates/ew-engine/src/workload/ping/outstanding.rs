//! Which echoes are out, and what became of the others.

use ew_model::record::DatagramCounts;
use std::ops::Range;

/// An echo without an answer for this long is lost.
pub(super) const LOST_AFTER_NS: u64 = 1_000_000_000;
/// Next to the time of sending, which never reaches this bit.
const ANSWERED: u64 = 1 << 63;

/// One stream's echoes, by number.
pub(super) struct Outstanding {
    /// When each of the last echoes was sent; a power of two of them.
    sent_ns: Box<[u64]>,
    /// All before it are answered or lost.
    oldest: u64,
    next: u64,
    /// Sent, neither answered nor lost.
    count: u64,
    /// One more than the largest that was answered.
    answered_below: u64,
    /// Echoes sent inside it are counted.
    window_ns: Range<u64>,
    counts: DatagramCounts,
    /// The longest time that an answer took.
    slowest_ns: u64,
}

impl Outstanding {
    /// Space for at least this many.
    pub(super) fn with_capacity(echoes: usize, window_ns: Range<u64>) -> Self {
        Self {
            sent_ns: vec![0; echoes.next_power_of_two()].into(),
            oldest: 0,
            next: 0,
            count: 0,
            answered_below: 0,
            window_ns,
            counts: DatagramCounts::default(),
            slowest_ns: 0,
        }
    }

    /// Sent, neither answered nor lost.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether anything was answered.
    pub(super) fn has_answers(&self) -> bool {
        self.answered_below > 0
    }

    /// The next echo's number. `None`: there are too many out.
    pub(super) fn next(&self) -> Option<u64> {
        let has_space = self.next - self.oldest < self.sent_ns.len() as u64;
        has_space.then_some(self.next)
    }

    /// The next one is out.
    pub(super) fn note_sent(&mut self, now_ns: u64) {
        let index = self.index(self.next);
        self.sent_ns[index] = now_ns;
        self.next += 1;
        self.count += 1;
    }

    /// An answer came. Returns when its echo was sent, if it is the first to it and in time.
    pub(super) fn note_answer(&mut self, number: u64, now_ns: u64) -> Option<u64> {
        let is_known = number < self.next && self.next - number <= self.sent_ns.len() as u64;
        if !is_known {
            return None;
        }
        let index = self.index(number);
        let sent_ns = self.sent_ns[index] & !ANSWERED;
        let is_counted = self.window_ns.contains(&sent_ns);
        if self.sent_ns[index] & ANSWERED != 0 {
            self.counts.duplicates += u64::from(is_counted);
            return None;
        }
        if number < self.oldest {
            // It was lost already.
            return None;
        }
        self.sent_ns[index] |= ANSWERED;
        self.count -= 1;
        self.counts.received += u64::from(is_counted);
        self.counts.reordered += u64::from(is_counted && number < self.answered_below);
        self.answered_below = self.answered_below.max(number + 1);
        self.slowest_ns = self.slowest_ns.max(now_ns.saturating_sub(sent_ns));
        self.forget_answered();
        Some(sent_ns)
    }

    /// Gives up what was sent too long ago. Returns how many.
    pub(super) fn give_up(&mut self, now_ns: u64) -> u64 {
        let mut lost = 0;
        while let Some(sent_ns) = self.oldest_sent_ns()
            && now_ns.saturating_sub(sent_ns) >= LOST_AFTER_NS
        {
            lost += 1;
            self.lose(sent_ns);
        }
        lost
    }

    /// When the oldest that is out was sent. `None` when none is.
    pub(super) fn oldest_sent_ns(&self) -> Option<u64> {
        (self.oldest < self.next).then(|| self.sent_ns[self.index(self.oldest)])
    }

    /// Counts at the round's end. What is still out is lost if it has been out for longer than any
    /// answer took.
    pub(super) fn end(&mut self, now_ns: u64) -> DatagramCounts {
        while let Some(sent_ns) = self.oldest_sent_ns()
            && now_ns.saturating_sub(sent_ns) > self.slowest_ns
        {
            self.lose(sent_ns);
        }
        self.counts
    }

    fn lose(&mut self, sent_ns: u64) {
        self.counts.lost += u64::from(self.window_ns.contains(&sent_ns));
        self.count -= 1;
        self.oldest += 1;
        self.forget_answered();
    }

    fn forget_answered(&mut self) {
        while self.oldest < self.next && self.sent_ns[self.index(self.oldest)] & ANSWERED != 0 {
            self.oldest += 1;
        }
    }

    fn index(&self, number: u64) -> usize {
        (number % self.sent_ns.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Outstanding {
        Outstanding::with_capacity(8, 0..u64::MAX >> 1)
    }

    #[test]
    fn answers_lost_ones_and_copies_are_told_apart() {
        let mut out = all();
        for now_ns in 1..=4 {
            out.note_sent(now_ns);
        }
        assert_eq!(out.note_answer(2, 20), Some(3));
        assert_eq!(out.note_answer(0, 20), Some(1));
        assert_eq!(out.note_answer(0, 21), None);
        assert_eq!(out.note_answer(4, 21), None);
        assert_eq!((out.count(), out.oldest_sent_ns()), (2, Some(2)));
        assert_eq!(out.give_up(LOST_AFTER_NS + 2), 1);
        assert_eq!(out.note_answer(1, LOST_AFTER_NS + 3), None);
        let counts = out.end(22);
        assert_eq!((counts.received, counts.lost), (2, 1));
        assert_eq!((counts.reordered, counts.duplicates), (1, 1));
        assert_eq!(out.count(), 1);
    }

    #[test]
    fn at_the_end_what_took_longer_than_any_answer_is_lost() {
        let mut out = all();
        for now_ns in [10, 11, 90] {
            out.note_sent(now_ns);
        }
        out.note_answer(0, 40);
        assert_eq!(out.end(100).lost, 1);
        assert_eq!(out.count(), 1);
    }

    #[test]
    fn only_what_was_sent_in_the_window_counts() {
        let mut out = Outstanding::with_capacity(8, 10..20);
        for now_ns in [9, 10, 19, 20] {
            out.note_sent(now_ns);
        }
        for number in [0, 1, 1, 3] {
            out.note_answer(number, 30);
        }
        let counts = out.end(1000);
        assert_eq!((counts.received, counts.lost, counts.duplicates), (1, 1, 1));
    }

    #[test]
    fn there_is_space_for_so_many() {
        let mut out = all();
        for _ in 0..8 {
            assert!(out.next().is_some());
            out.note_sent(5);
        }
        assert_eq!(out.next(), None);
        out.note_answer(1, 6);
        assert_eq!(out.next(), None);
        out.note_answer(0, 6);
        assert_eq!(out.next(), Some(8));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_twice_or_forgotten(answers in proptest::collection::vec(0_u64..300, 0..600)) {
            let mut out = all();
            let (mut sent, mut known) = (0, 0);
            for (now_ns, answer) in (1_u64..).zip(answers) {
                if out.next().is_some() {
                    out.note_sent(now_ns * 100_000_000);
                    sent += 1;
                }
                known += u64::from(out.note_answer(answer, now_ns * 100_000_000).is_some());
                known += out.give_up(now_ns * 100_000_000);
                prop_assert_eq!(sent, known + out.count());
            }
            let counts = out.end(u64::MAX >> 1);
            prop_assert_eq!(sent, counts.received + counts.lost);
        }
    }
}
