//! When a silent or dawdling peer counts as gone.

/// Lateness of our own timer that shows that this side, not the peer, had been stopped.
const OWN_STALL_NS: u64 = 1_000_000_000;

/// How long one frame may take from its first byte to its last.
const FRAME_LIMIT_NS: u64 = 30_000_000_000;

/// The time of the last sign of life, and the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liveness {
    limit_ns: u64,
    last_heard_ns: u64,
    graced: bool,
    frame_begun_ns: Option<u64>,
}

/// How a peer was found to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Nothing came.
    Silent,
    /// A frame did not end.
    Dawdling,
}

impl Liveness {
    pub(crate) fn new(limit_ns: u64, now_ns: u64) -> Self {
        Self {
            limit_ns,
            last_heard_ns: now_ns,
            graced: false,
            frame_begun_ns: None,
        }
    }

    /// Bytes came. `completed`: a message ended in them; `inside_frame`: another has begun.
    pub(crate) fn heard(&mut self, now_ns: u64, completed: bool, inside_frame: bool) {
        self.last_heard_ns = self.last_heard_ns.max(now_ns);
        self.graced = false;
        self.frame_begun_ns = match self.frame_begun_ns {
            Some(begun_ns) if inside_frame && !completed => Some(begun_ns),
            _ => inside_frame.then_some(now_ns),
        };
    }

    pub(crate) fn deadline_ns(&self) -> u64 {
        let silent_ns = self.last_heard_ns.saturating_add(self.limit_ns);
        silent_ns.min(self.frame_deadline_ns())
    }

    /// Whether the peer is gone. A side that was itself stopped (a signal, a starved CPU, a
    /// sleeping laptop) checks once more after a second, since the peer's words may wait unread in
    /// its pipe.
    pub(crate) fn check(&mut self, now_ns: u64) -> Option<Gone> {
        if now_ns >= self.frame_deadline_ns() {
            return Some(Gone::Dawdling);
        }
        let deadline_ns = self.last_heard_ns.saturating_add(self.limit_ns);
        if now_ns < deadline_ns {
            return None;
        }
        if !self.graced && now_ns - deadline_ns >= OWN_STALL_NS {
            self.graced = true;
            let granted_ns = now_ns.saturating_add(OWN_STALL_NS);
            self.last_heard_ns = granted_ns.saturating_sub(self.limit_ns);
            return None;
        }
        Some(Gone::Silent)
    }

    fn frame_deadline_ns(&self) -> u64 {
        self.frame_begun_ns
            .map_or(u64::MAX, |begun_ns| begun_ns.saturating_add(FRAME_LIMIT_NS))
    }
}

impl Gone {
    /// `who` was gone, in words.
    pub(crate) fn reason(self, who: &str, limit_ns: u64) -> String {
        match self {
            Self::Silent => format!("{who} was silent for {} s", limit_ns / 1_000_000_000),
            Self::Dawdling => format!(
                "{who} did not end a message within {} s",
                FRAME_LIMIT_NS / 1_000_000_000
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn silence_up_to_the_limit_is_fine() {
        let mut liveness = Liveness::new(4 * S, S);
        assert_eq!(liveness.check(5 * S - 1), None);
        assert_eq!(liveness.check(5 * S), Some(Gone::Silent));
        liveness.heard(5 * S, true, false);
        assert_eq!(liveness.check(9 * S - 1), None);
    }

    #[test]
    fn a_side_that_slept_looks_once_more() {
        let mut liveness = Liveness::new(4 * S, 0);
        assert_eq!(liveness.check(100 * S), None);
        assert_eq!(liveness.deadline_ns(), 101 * S);
        assert_eq!(liveness.check(101 * S), Some(Gone::Silent));
        let mut liveness = Liveness::new(4 * S, 0);
        assert_eq!(liveness.check(100 * S), None);
        assert_eq!(liveness.check(200 * S), Some(Gone::Silent), "only once");
    }

    #[test]
    fn a_frame_that_trickles_is_cut_off() {
        let mut liveness = Liveness::new(4 * S, 0);
        for second in 1..31 {
            liveness.heard(second * S, false, true);
            assert_eq!(liveness.check(second * S), None);
        }
        liveness.heard(31 * S, false, true);
        assert_eq!(liveness.check(31 * S), Some(Gone::Dawdling));
        liveness.heard(31 * S, true, true);
        assert_eq!(liveness.check(31 * S), None);
    }
}
