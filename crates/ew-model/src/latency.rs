//! Distributions of times, which can be merged without loss: percentiles are never averaged.

use serde::{Deserialize, Serialize};

/// Times by bucket. Buckets of equal bounds come from histograms of equal precision (the engine's
/// are at most 1% wide), so merging adds counts and loses nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// The max time in a bucket, ns, and how many times; ascending, none empty.
    pub buckets: Vec<(u64, u64)>,
    /// Sum of all times, exact.
    pub sum_ns: u64,
    /// Min time, exact.
    pub min_ns: u64,
    /// Max time, exact.
    pub max_ns: u64,
}

/// Times of the transactions inside the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// From when a request was due to its answer. In a closed loop it is due when it is sent.
    pub times: Histogram,
    /// Open loop only: from when it was really sent, as tools report that do not know when it was
    /// due.
    #[serde(default)]
    pub uncorrected: Option<Histogram>,
}

/// A distribution in a few figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of transactions.
    pub count: u64,
    /// Min.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// 99.99th percentile.
    pub p9999_ns: u64,
    /// Max.
    pub max_ns: u64,
}

impl Histogram {
    /// A histogram of one time, as often as `count`.
    #[must_use]
    pub fn of(time_ns: u64, count: u64) -> Self {
        Self {
            buckets: vec![(time_ns, count)],
            sum_ns: time_ns.saturating_mul(count),
            min_ns: time_ns,
            max_ns: time_ns,
        }
    }

    /// How many times it contains.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds another's times.
    pub fn merge(&mut self, other: &Self) {
        if other.buckets.is_empty() {
            return;
        }
        if self.buckets.is_empty() {
            self.clone_from(other);
            return;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.buckets.extend_from_slice(&other.buckets);
        self.buckets.sort_by_key(|(time_ns, _)| *time_ns);
        self.buckets.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = earlier.1.saturating_add(later.1);
            }
            same
        });
    }

    /// The time that a share of all times does not exceed: 0.5 is the median. `None` when it is
    /// empty.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0_u64;
        let bucket = self.buckets.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        let (time_ns, _) = bucket.or(self.buckets.last())?;
        // A bucket's bound may lie outside of what it really contained.
        Some((*time_ns).min(self.max_ns).max(self.min_ns))
    }

    /// `None` when it is empty.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        let count = self.count();
        Some(LatencySummary {
            count,
            min_ns: self.min_ns,
            mean_ns: self.sum_ns.checked_div(count)?,
            p50_ns: self.quantile(0.5)?,
            p90_ns: self.quantile(0.9)?,
            p99_ns: self.quantile(0.99)?,
            p999_ns: self.quantile(0.999)?,
            p9999_ns: self.quantile(0.9999)?,
            max_ns: self.max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_merge_are_those_of_all_times() {
        let mut all = Histogram::default();
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        for time_ns in 1..=1000 {
            let part = if time_ns % 3 == 0 {
                &mut low
            } else {
                &mut high
            };
            part.merge(&Histogram::of(time_ns, 1));
        }
        all.merge(&low);
        all.merge(&high);
        let summary = all.summary().unwrap();
        assert_eq!(summary.count, 1000);
        assert_eq!((summary.min_ns, summary.max_ns), (1, 1000));
        assert_eq!((summary.p50_ns, summary.p90_ns), (500, 900));
        assert_eq!((summary.p99_ns, summary.p999_ns), (990, 999));
        assert_eq!(summary.mean_ns, 500);
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Histogram::default().summary(), None);
        let mut histogram = Histogram::default();
        histogram.merge(&Histogram::default());
        assert_eq!(histogram, Histogram::default());
    }

    #[test]
    fn a_hostile_histogram_does_no_harm() {
        let mut histogram = Histogram {
            buckets: vec![(9, u64::MAX), (3, u64::MAX)],
            sum_ns: u64::MAX,
            min_ns: 8,
            max_ns: 1,
        };
        histogram.merge(&histogram.clone());
        assert!(histogram.summary().is_some());
    }
}
