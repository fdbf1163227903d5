//! The times of files, summed up.

use ew_model::latency::{Histogram, LatencySummary};

pub(super) fn summary(times_ns: impl Iterator<Item = u64>) -> Option<LatencySummary> {
    let mut times_ns: Vec<u64> = times_ns.collect();
    times_ns.sort_unstable();
    let (min_ns, max_ns) = (*times_ns.first()?, *times_ns.last()?);
    let histogram = Histogram {
        sum_ns: times_ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns)),
        buckets: times_ns.into_iter().map(|ns| (ns, 1)).collect(),
        min_ns,
        max_ns,
    };
    histogram.summary()
}
