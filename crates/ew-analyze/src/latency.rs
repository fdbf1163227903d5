//! Times of transactions. Percentiles come from merged distributions, never from other percentiles.

use ew_evidence::observations::{StageView, times};
use ew_model::HostId;
use ew_model::analysis::{LatencyAnalysis, LatencyFigures, SpectrumPoint};
use ew_model::latency::{Histogram, Latency};
use ew_model::record::FlowRecord;
use std::collections::BTreeMap;

/// A percentile is reported when the max time is above the true percentile with this confidence.
const CONFIDENCE: f64 = 0.95;
/// Points of a spectrum per factor of ten in the share above.
const POINTS_PER_DECADE: u32 = 20;
/// Decades of a spectrum: 10^-9 of the transactions, more than any run has.
const MAX_DECADES: u32 = 9;

/// A stage's transactions over all streams, flows, hosts and rounds. `None` when there were none.
pub(crate) fn latency(stage: &StageView<'_>) -> Option<LatencyAnalysis> {
    let mut all = Latency::default();
    let mut connect = Histogram::default();
    for end in stage.measured().filter_map(|row| row.sender.as_ref()) {
        if let Some(latency) = &end.latency {
            all.times.merge(&latency.times);
            if let Some(uncorrected) = &latency.uncorrected {
                all.uncorrected.get_or_insert_default().merge(uncorrected);
            }
        }
        if let Some(times) = &end.connect_latency {
            connect.merge(times);
        }
    }
    Some(LatencyAnalysis {
        transactions_per_sec: stage.sum_over_flows(transactions_per_sec),
        times: figures(&all.times)?,
        spectrum: spectrum(&all.times),
        uncorrected_spectrum: all.uncorrected.as_ref().map(spectrum).unwrap_or_default(),
        uncorrected: all.uncorrected.as_ref().and_then(figures),
        connect: figures(&connect),
    })
}

/// A distribution in a few figures, without percentiles that too few times are behind. `None` when
/// it is empty.
pub(crate) fn figures(histogram: &Histogram) -> Option<LatencyFigures> {
    let summary = histogram.summary()?;
    let reported = |share: f64, time_ns: u64| is_told(summary.count, share).then_some(time_ns);
    Some(LatencyFigures {
        count: summary.count,
        min_ns: summary.min_ns,
        mean_ns: summary.mean_ns,
        p50_ns: summary.p50_ns,
        p90_ns: reported(0.9, summary.p90_ns),
        p99_ns: reported(0.99, summary.p99_ns),
        p999_ns: reported(0.999, summary.p999_ns),
        p9999_ns: reported(0.9999, summary.p9999_ns),
        max_ns: summary.max_ns,
    })
}

/// Merged times per ordered pair.
pub(crate) fn by_pair(stage: &StageView<'_>) -> BTreeMap<(HostId, HostId), Histogram> {
    let mut pairs: BTreeMap<(HostId, HostId), Histogram> = BTreeMap::new();
    for row in stage.measured() {
        if let Some(times) = times(row) {
            pairs.entry((row.src, row.dst)).or_default().merge(times);
        }
    }
    pairs
}

/// A row's transactions inside the window.
pub(crate) fn transactions(row: &FlowRecord) -> Option<u64> {
    let end = row.sender.as_ref()?;
    let counted = || end.latency.as_ref().map(|latency| latency.times.count());
    end.transactions.or_else(counted)
}

/// The same a second, from the client's own window.
pub(crate) fn transactions_per_sec(row: &FlowRecord) -> Option<f64> {
    let end = row.sender.as_ref().filter(|end| end.window_ns > 0)?;
    Some(transactions(row)? as f64 * 1e9 / end.window_ns as f64)
}

/// With a smaller count than this allows, the max time seen is below the true percentile in
/// more than 5% of all runs: the chance that none of `count` times exceeds the percentile is
/// share^count.
fn is_told(count: u64, share: f64) -> bool {
    1.0 - share.powf(count as f64) >= CONFIDENCE
}

/// Times by the share of transactions above them, evenly spaced in its logarithm, down to the last
/// transaction.
fn spectrum(histogram: &Histogram) -> Vec<SpectrumPoint> {
    let count = histogram.count() as f64;
    let mut points: Vec<SpectrumPoint> = Vec::new();
    for step in 0..=POINTS_PER_DECADE * MAX_DECADES {
        let share_above = 10_f64.powf(-f64::from(step) / f64::from(POINTS_PER_DECADE));
        if share_above * count < 1.0 {
            break;
        }
        if let Some(time_ns) = histogram.quantile(1.0 - share_above) {
            points.push(SpectrumPoint {
                share_above,
                time_ns,
            });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_need_transactions_behind_them() {
        let of = |count| figures(&Histogram::of(1000, count)).unwrap();
        assert_eq!(of(500).p99_ns, Some(1000));
        assert_eq!(of(500).p999_ns, None);
        assert_eq!(of(500).p9999_ns, None);
        for (share, min) in [(0.9, 29), (0.99, 299), (0.999, 2995), (0.9999, 29_956)] {
            assert!(is_told(min, share) && !is_told(min - 1, share), "{share}");
        }
        assert_eq!(figures(&Histogram::default()), None);
    }

    proptest! {
        #[test]
        fn a_spectrum_rises_and_ends_within_the_times(times in prop::collection::vec(1_u64..1_000_000, 1..400)) {
            let mut histogram = Histogram::default();
            for time in &times {
                histogram.merge(&Histogram::of(*time, 1));
            }
            let points = spectrum(&histogram);
            prop_assert!(points.is_sorted_by_key(|p| p.time_ns));
            prop_assert_eq!(points.first().map(|p| p.time_ns), times.iter().min().copied());
            prop_assert!(points.iter().all(|p| p.share_above * times.len() as f64 >= 1.0));
        }
    }
}
