//! Bytes over time, in a bounded number of intervals.

/// The first interval's length.
const FIRST_INTERVAL_NS: u64 = 1_000_000;
/// Intervals at most; then they become twice as long.
const MAX_INTERVALS: usize = 2048;

/// Bytes moved per interval since the common start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    interval_ns: u64,
    bytes: Vec<u64>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            interval_ns: FIRST_INTERVAL_NS,
            bytes: Vec::new(),
        }
    }

    /// Bytes of a call, spread evenly over its time.
    pub(crate) fn add(&mut self, from_ns: u64, to_ns: u64, bytes: u64) {
        while to_ns / self.interval_ns >= MAX_INTERVALS as u64 {
            self.double();
        }
        let (first, last) = (from_ns / self.interval_ns, to_ns / self.interval_ns);
        if self.bytes.len() <= last as usize {
            self.bytes.resize(last as usize + 1, 0);
        }
        let length_ns = u128::from(to_ns.saturating_sub(from_ns).max(1));
        let mut given = 0;
        for at in first..last {
            let end_ns = (at + 1) * self.interval_ns;
            let by_then = u128::from(bytes) * u128::from(end_ns - from_ns) / length_ns;
            self.bytes[at as usize] += by_then as u64 - given;
            given = by_then as u64;
        }
        self.bytes[last as usize] += bytes - given;
    }

    /// Adds another's bytes.
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.interval_ns < other.interval_ns {
            self.double();
        }
        while other.interval_ns < self.interval_ns {
            other.double();
        }
        if self.bytes.len() < other.bytes.len() {
            self.bytes.resize(other.bytes.len(), 0);
        }
        for (own, more) in self.bytes.iter_mut().zip(other.bytes) {
            *own += more;
        }
    }

    /// Interval length, and bytes per interval.
    pub(crate) fn into_parts(self) -> (u64, Vec<u64>) {
        (self.interval_ns, self.bytes)
    }

    fn double(&mut self) {
        self.interval_ns *= 2;
        let pairs = self.bytes.chunks(2);
        self.bytes = pairs.map(|pair| pair.iter().sum()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_spread_over_their_time() {
        let mut progress = Progress::new();
        progress.add(500_000, 2_500_000, 1000);
        assert_eq!(
            progress.clone().into_parts(),
            (1_000_000, vec![250, 500, 250])
        );
        progress.add(2_600_000, 2_600_000, 7);
        assert_eq!(progress.into_parts().1, [250, 500, 257]);
    }

    #[test]
    fn nothing_is_lost_when_intervals_grow() {
        let mut progress = Progress::new();
        let mut late = Progress::new();
        for at in 0..10_000 {
            progress.add(at * 1_000_000, at * 1_000_000 + 900_000, 3);
        }
        late.add(0, 90_000_000_000, 1_000_000);
        progress.merge(late);
        let (interval_ns, bytes) = progress.into_parts();
        assert_eq!(bytes.iter().sum::<u64>(), 1_030_000);
        assert!(bytes.len() <= MAX_INTERVALS);
        assert!(interval_ns * bytes.len() as u64 >= 90_000_000_000);
    }
}
