//! What became of numbered datagrams: which were received, late, duplicated, lost; and how
//! evenly.
//!
//! A number belongs to the window when it first came after the window's start and before its end,
//! and so does a gap that begins inside. A gap at the window's end is seen as soon as anything
//! comes after it: senders go on a little longer than the window does. Counting by numbers makes
//! what came and what was lost add up, whatever the clocks.

use ew_model::record::DatagramCounts;
use std::ops::Range;

/// Datagrams are distinguished from copies of themselves for this many later ones. What comes later
/// still counts as lost.
const REMEMBERED: u64 = 16_384;
const WORDS: usize = (REMEMBERED / 64) as usize;
/// Greater numbers are not counted: no stream lasts so long.
const MAX_NUMBERS: u64 = 1 << 48;

/// When something came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Before,
    Inside,
    After,
}

/// One stream's numbers, which begin with 0.
pub(super) struct Sequence {
    /// One bit per number, of the last [`REMEMBERED`] before `next`.
    seen: Box<[u64; WORDS]>,
    /// The lowest number above all that came.
    next: u64,
    /// First number of the window; `None` before it came.
    first: Option<u64>,
    /// One more than the window's last number; `None` while it may still grow.
    end: Option<u64>,
    received: u64,
    reordered: u64,
    duplicates: u64,
}

/// Interarrival jitter (RFC 3550, section 6.4.1). Datagrams sent at the same time, as a burst is,
/// are one to it.
#[derive(Debug, Default)]
pub(super) struct Jitter {
    /// When the last one was sent, and how much later by the other clock it came.
    last: Option<(u64, i64)>,
    ns: f64,
}

impl Phase {
    pub(super) fn of(window_ns: &Range<u64>, now_ns: u64) -> Self {
        if now_ns < window_ns.start {
            Self::Before
        } else if now_ns < window_ns.end {
            Self::Inside
        } else {
            Self::After
        }
    }
}

impl Sequence {
    /// The window decides what is counted.
    pub(super) fn new() -> Self {
        Self {
            seen: Box::new([0; WORDS]),
            next: 0,
            first: None,
            end: None,
            received: 0,
            reordered: 0,
            duplicates: 0,
        }
    }

    /// These are counted, whenever they come.
    pub(super) fn of_numbers(numbers: Range<u64>) -> Self {
        Self {
            first: Some(numbers.start),
            end: Some(numbers.end),
            ..Self::new()
        }
    }

    /// Notes one that came. Returns whether it came for the first time.
    pub(super) fn note(&mut self, number: u64, phase: Phase) -> bool {
        if number >= MAX_NUMBERS {
            return false;
        }
        let is_new = number >= self.next;
        if is_new {
            self.set_edges(number, phase);
            self.forget_before(number);
            self.next = number + 1;
        } else if self.next - number > REMEMBERED {
            return false;
        }
        let (word, bit) = bit_of(number);
        let is_first = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        if self.is_counted(number) {
            self.received += u64::from(is_first);
            self.reordered += u64::from(is_first && !is_new);
            self.duplicates += u64::from(!is_first);
        }
        is_first
    }

    /// Whether the window's first number is known.
    pub(super) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    /// What belongs to the window, without jitter.
    pub(super) fn counts(&self) -> DatagramCounts {
        let first = self.first.unwrap_or(self.next);
        let end = self.end.unwrap_or(self.next);
        DatagramCounts {
            received: self.received,
            lost: end.saturating_sub(first) - self.received,
            reordered: self.reordered,
            duplicates: self.duplicates,
            jitter_ns: 0,
        }
    }

    fn set_edges(&mut self, number: u64, phase: Phase) {
        match phase {
            Phase::Before => {}
            Phase::Inside => {
                self.first.get_or_insert(number);
            }
            Phase::After => {
                self.first.get_or_insert(number);
                self.end.get_or_insert(number);
            }
        }
    }

    /// Clears the bits of the numbers from `next` to this one, which others had before.
    fn forget_before(&mut self, number: u64) {
        if number - self.next >= REMEMBERED {
            self.seen.fill(0);
            return;
        }
        for cleared in self.next..=number {
            let (word, bit) = bit_of(cleared);
            self.seen[word] &= !bit;
        }
    }

    fn is_counted(&self, number: u64) -> bool {
        let is_before_end = self.end.is_none_or(|end| number < end);
        is_before_end && self.first.is_some_and(|first| number >= first)
    }
}

fn bit_of(number: u64) -> (usize, u64) {
    let index = number % REMEMBERED;
    ((index / 64) as usize, 1 << (index % 64))
}

impl Jitter {
    /// Times by two clocks that need not agree.
    pub(super) fn note(&mut self, sent_ns: u64, received_ns: u64) {
        let transit_ns = received_ns.wrapping_sub(sent_ns) as i64;
        if let Some((last_sent_ns, last_transit_ns)) = self.last {
            if last_sent_ns == sent_ns {
                return;
            }
            let difference_ns = transit_ns.abs_diff(last_transit_ns) as f64;
            self.ns += (difference_ns - self.ns) / 16.0;
        }
        self.last = Some((sent_ns, transit_ns));
    }

    pub(super) fn ns(&self) -> u64 {
        self.ns.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The same by keeping everything.
    fn model(arrivals: &[u64], phase: impl Fn(usize) -> Phase) -> DatagramCounts {
        let (mut next, mut first, mut end) = (0, None, None);
        let mut kept = Vec::new();
        for (at, number) in arrivals.iter().copied().enumerate() {
            let is_new = number >= next;
            if is_new {
                if phase(at) != Phase::Before {
                    first.get_or_insert(number);
                }
                if phase(at) == Phase::After {
                    end.get_or_insert(number);
                }
                next = number + 1;
            }
            if is_new || next - number <= REMEMBERED {
                kept.push((number, is_new));
            }
        }
        let counted = first.unwrap_or(next)..end.unwrap_or(next);
        kept.retain(|(number, _)| counted.contains(number));
        let unique: BTreeSet<_> = kept.iter().map(|(number, _)| *number).collect();
        let in_order = kept.iter().filter(|(_, is_new)| *is_new).count() as u64;
        let received = unique.len() as u64;
        DatagramCounts {
            received,
            lost: counted.end - counted.start - received,
            reordered: received - in_order,
            duplicates: kept.len() as u64 - received,
            jitter_ns: 0,
        }
    }

    fn phases(inside: Range<usize>) -> impl Fn(usize) -> Phase {
        move |at| Phase::of(&(inside.start as u64..inside.end as u64), at as u64)
    }

    fn noted(arrivals: &[u64], phase: impl Fn(usize) -> Phase) -> DatagramCounts {
        let mut sequence = Sequence::new();
        for (at, number) in arrivals.iter().enumerate() {
            sequence.note(*number, phase(at));
        }
        sequence.counts()
    }

    /// Numbers in order but for some that are dropped, delayed and copied.
    fn orders() -> impl Strategy<Value = Vec<u64>> {
        let fate = (0_u64..40, 0_u8..8, 1_u64..4);
        let fates = proptest::collection::vec(fate, 0..300);
        (fates, prop_oneof![Just(1), Just(500)]).prop_map(|(fates, scale)| {
            let mut sent = Vec::new();
            for (number, (delay, kind, copies)) in (0_u64..).zip(fates) {
                let delay = if kind == 1 { delay } else { 0 };
                let copies = match kind {
                    0 => 0,
                    2 => copies,
                    _ => 1,
                };
                sent.extend((0..copies).map(|copy| (number + delay + copy * 3, number * scale)));
            }
            sent.sort_by_key(|(at, _)| *at);
            sent.into_iter().map(|(_, number)| number).collect()
        })
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_simple_model(order in orders(), start in 0..320_usize, length in 0..320_usize) {
            let inside = start..start + length;
            prop_assert_eq!(noted(&order, phases(inside.clone())), model(&order, phases(inside)));
        }

        #[test]
        fn nothing_in_it_can_overflow(order in proptest::collection::vec(any::<u64>(), 0..50)) {
            let counts = noted(&order, phases(0..25));
            prop_assert!(counts.lost < MAX_NUMBERS);
        }
    }

    #[test]
    fn gaps_belong_to_where_they_begin() {
        // 0 and 1 before the window, 5, 4, 8 inside, 11 after it: 2 and 3 were lost before, 9 and
        // 10 inside.
        let counts = noted(&[0, 1, 5, 4, 8, 11, 12], phases(2..5));
        assert_eq!((counts.received, counts.lost), (2, 4));
        assert_eq!((counts.reordered, counts.duplicates), (0, 0));
    }

    #[test]
    fn of_known_numbers_all_that_did_not_come_are_lost() {
        let mut sequence = Sequence::of_numbers(1..11);
        for number in [0, 3, 2, 2, 7] {
            sequence.note(number, Phase::Before);
        }
        let counts = sequence.counts();
        assert_eq!((counts.received, counts.lost), (3, 7));
        assert_eq!((counts.reordered, counts.duplicates), (1, 1));
        assert_eq!(Sequence::of_numbers(1..4).counts().lost, 3);
        assert_eq!(Sequence::new().counts(), DatagramCounts::default());
    }

    #[test]
    fn jitter_is_that_of_the_rfc() {
        let mut jitter = Jitter::default();
        // Clocks that disagree by much; transits 100, 116, 116, 100.
        for (sent_ns, transit_ns) in [(10, 100), (20, 116), (30, 116), (30, 900), (40, 100)] {
            jitter.note(sent_ns, (sent_ns + transit_ns).wrapping_sub(1 << 62));
        }
        // 16/16 = 1; 1 - 1/16 = 15/16; 15/16 + (16 - 15/16)/16 = 1.88.
        assert!((jitter.ns - 1.878_906_25).abs() < 1e-9);
        assert_eq!(jitter.ns(), 2);
    }
}
