//! Times of calls, in buckets at most 1.6% wide.

use ew_model::latency::Histogram;
use std::collections::BTreeMap;

/// Bits of a time that a bucket keeps.
const KEPT_BITS: u32 = 7;

/// A distribution in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTimes {
    buckets: BTreeMap<u64, u64>,
    sum_ns: u64,
    min_ns: Option<u64>,
    max_ns: u64,
}

impl CallTimes {
    pub(crate) fn add(&mut self, time_ns: u64) {
        *self.buckets.entry(bound(time_ns)).or_default() += 1;
        self.sum_ns = self.sum_ns.saturating_add(time_ns);
        self.min_ns = Some(self.min_ns.map_or(time_ns, |min| min.min(time_ns)));
        self.max_ns = self.max_ns.max(time_ns);
    }

    pub(crate) fn histogram(self) -> Histogram {
        Histogram {
            buckets: self.buckets.into_iter().collect(),
            sum_ns: self.sum_ns,
            min_ns: self.min_ns.unwrap_or(0),
            max_ns: self.max_ns,
        }
    }
}

/// The max time of the bucket.
fn bound(time_ns: u64) -> u64 {
    let bits = u64::BITS - time_ns.leading_zeros();
    let dropped = bits.saturating_sub(KEPT_BITS);
    time_ns | ((1 << dropped) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow() {
        for time_ns in [0, 1, 127, 128, 1000, 123_456_789, u64::MAX] {
            let bound = bound(time_ns);
            assert!(bound >= time_ns);
            assert!(
                (bound - time_ns) as f64 <= time_ns as f64 * 0.016,
                "{time_ns} {bound}"
            );
        }
        let mut times = CallTimes::default();
        (1..=1000).for_each(|ms| times.add(ms * 1_000_000));
        let summary = times.histogram().summary().unwrap();
        assert_eq!((summary.count, summary.max_ns), (1000, 1_000_000_000));
        assert!(
            summary.p50_ns.abs_diff(500_000_000) < 8_000_000,
            "{summary:?}"
        );
    }
}
