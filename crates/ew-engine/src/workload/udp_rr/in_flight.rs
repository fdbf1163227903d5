//! Requests that have no answer so far, each found by its number alone.

/// A request is not lost before this time.
const MIN_PATIENCE_NS: u64 = 100_000_000;
/// A request is lost after this time, and before the first answer nobody knows better.
const MAX_PATIENCE_NS: u64 = 1_000_000_000;
/// A request's number is a running number and its slot.
const SLOT_BITS: u32 = 16;

/// Requests without an answer so far.
pub(super) struct InFlight {
    slots: Vec<Request>,
    free: Vec<u16>,
    longest_ns: Option<u64>,
    greatest_answered: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// 0: none is in flight here.
    number: u64,
    pub(super) due_ns: u64,
    pub(super) sent_ns: u64,
}

impl InFlight {
    pub(super) fn with_capacity(count: usize) -> Self {
        let count = count.min(1 << SLOT_BITS);
        Self {
            slots: vec![Request::default(); count],
            free: (0..count).rev().map(|slot| slot as u16).collect(),
            longest_ns: None,
            greatest_answered: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// How many more may be sent.
    pub(super) fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// The number of the request that will be sent as the `offset`th from now, when `asked` were
    /// sent so far. There is a free slot for it.
    pub(super) fn number(&self, asked: u64, offset: usize) -> u64 {
        let slot = self.free.iter().rev().nth(offset).copied().unwrap_or(0);
        (asked + offset as u64 + 1) << SLOT_BITS | u64::from(slot)
    }

    pub(super) fn sent(&mut self, asked: u64, due_ns: u64, sent_ns: u64) {
        let number = self.number(asked, 0);
        let Some(slot) = self.free.pop() else {
            return;
        };
        self.slots[usize::from(slot)] = Request {
            number,
            due_ns,
            sent_ns,
        };
    }

    /// The request that this number answers, and whether a later one was answered before.
    pub(super) fn answered(&mut self, number: u64, now_ns: u64) -> Option<(Request, bool)> {
        let request = self.take(number)?;
        let time_ns = now_ns.saturating_sub(request.sent_ns);
        self.longest_ns = self.longest_ns.max(Some(time_ns));
        let is_late = number < self.greatest_answered;
        self.greatest_answered = self.greatest_answered.max(number);
        Some((request, is_late))
    }

    /// Gives up those that were sent before the time.
    pub(super) fn give_up(&mut self, sent_before_ns: u64, mut report: impl FnMut(Request)) {
        if self.is_empty() {
            return;
        }
        for (slot, request) in (0..).zip(&mut self.slots) {
            if request.number != 0 && request.sent_ns < sent_before_ns {
                report(std::mem::take(request));
                self.free.push(slot);
            }
        }
    }

    /// How long an answer is waited for.
    pub(super) fn patience_ns(&self) -> u64 {
        let longest_ns = self.longest_ns.map(|ns| ns.saturating_mul(4));
        longest_ns.map_or(MAX_PATIENCE_NS, |ns| {
            ns.clamp(MIN_PATIENCE_NS, MAX_PATIENCE_NS)
        })
    }

    fn take(&mut self, number: u64) -> Option<Request> {
        let slot = slot_of(number);
        let request = self.slots.get_mut(slot)?;
        if number == 0 || request.number != number {
            return None;
        }
        self.free.push(slot as u16);
        Some(std::mem::take(request))
    }
}

fn slot_of(number: u64) -> usize {
    (number & ((1 << SLOT_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends so many, one a nanosecond from 10 ns on; their numbers.
    fn sent(in_flight: &mut InFlight, count: u64) -> Vec<u64> {
        let send = |asked| {
            let number = in_flight.number(asked, 0);
            in_flight.sent(asked, 5, 10 + asked);
            number
        };
        (0..count).map(send).collect()
    }

    fn given_up(in_flight: &mut InFlight, sent_before_ns: u64) -> Vec<u64> {
        let mut sent_ns = Vec::new();
        in_flight.give_up(sent_before_ns, |request| sent_ns.push(request.sent_ns));
        sent_ns
    }

    #[test]
    fn answers_find_their_requests_once() {
        let mut in_flight = InFlight::with_capacity(3);
        let numbers = sent(&mut in_flight, 3);
        assert!(in_flight.free.is_empty() && !in_flight.is_empty());
        let (second, is_late) = in_flight.answered(numbers[1], 30).unwrap();
        assert_eq!((second.due_ns, second.sent_ns, is_late), (5, 11, false));
        assert_eq!(in_flight.answered(numbers[1], 31), None);
        let (first, is_late) = in_flight.answered(numbers[0], 31).unwrap();
        assert_eq!((first.sent_ns, is_late), (10, true));
        assert_eq!(in_flight.longest_ns, Some(21));
        for other in [0, 1, numbers[2] + 7, u64::MAX] {
            assert_eq!(in_flight.answered(other, 40), None);
        }
    }

    #[test]
    fn a_lost_request_frees_its_slot_and_its_answer_counts_no_more() {
        let mut in_flight = InFlight::with_capacity(2);
        let numbers = sent(&mut in_flight, 2);
        assert!(given_up(&mut in_flight, 10).is_empty());
        assert_eq!(given_up(&mut in_flight, 11), [10]);
        in_flight.sent(2, 5, 30);
        assert_eq!(in_flight.answered(numbers[0], 40), None);
        assert_eq!(given_up(&mut in_flight, 100).len(), 2);
        assert!(in_flight.is_empty());
    }

    #[test]
    fn numbers_said_ahead_are_those_that_are_sent() {
        let mut in_flight = InFlight::with_capacity(4);
        let ahead: Vec<_> = (0..3).map(|offset| in_flight.number(0, offset)).collect();
        assert_eq!(sent(&mut in_flight, 3), ahead);
    }

    #[test]
    fn patience_follows_the_answers() {
        let mut in_flight = InFlight::with_capacity(1);
        assert_eq!(in_flight.patience_ns(), MAX_PATIENCE_NS);
        in_flight.longest_ns = Some(1000);
        assert_eq!(in_flight.patience_ns(), MIN_PATIENCE_NS);
        in_flight.longest_ns = Some(MIN_PATIENCE_NS);
        assert_eq!(in_flight.patience_ns(), 4 * MIN_PATIENCE_NS);
        in_flight.longest_ns = Some(u64::MAX);
        assert_eq!(in_flight.patience_ns(), MAX_PATIENCE_NS);
    }
}
