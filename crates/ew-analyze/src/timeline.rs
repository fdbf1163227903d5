//! Throughput of a stage over time, from the receivers' intervals.

use ew_evidence::observations::StageView;
use ew_model::analysis::TimePoint;
use ew_model::record::Interval;
use std::collections::BTreeMap;

/// Finest bin: what the engine records.
const FINEST_NS: u64 = 100_000_000;
/// Points a stage's line may have, so that a report of a thousand rounds stays small.
const MAX_POINTS: u64 = 600;

/// Sum of the receivers' bytes per bin. The time axis is round index x round period + offset in the
/// window, so gaps between rounds show as gaps.
pub(crate) fn timeline(stage: &StageView<'_>) -> Vec<TimePoint> {
    let window_ns = stage.stage.duration_ns;
    if window_ns == 0 || stage.rounds.is_empty() {
        return Vec::new();
    }
    let per_round = (MAX_POINTS / stage.rounds.len() as u64).clamp(1, MAX_POINTS);
    let bins = window_ns.div_ceil(FINEST_NS).min(per_round).max(1);
    let bin_ns = window_ns.div_ceil(bins);
    let mut points = Vec::new();
    for round in &stage.rounds {
        let mut bytes: BTreeMap<u64, f64> = BTreeMap::new();
        let receivers = round.records.iter().filter_map(|row| row.receiver.as_ref());
        for interval in receivers.flat_map(|end| &end.intervals) {
            spread(interval, bin_ns, bins, &mut bytes);
        }
        let start = u64::from(round.index.0).saturating_mul(stage.stage.round_period_ns());
        points.extend(bytes.into_iter().map(|(bin, bytes)| TimePoint {
            t_ns: start.saturating_add(bin * bin_ns),
            bits_per_sec: bytes * 8e9
                / (window_ns.saturating_sub(bin * bin_ns)).clamp(1, bin_ns) as f64,
        }));
    }
    points
}

/// Shares an interval's bytes out over the bins it covers; a tool's 1 s intervals cover many.
fn spread(interval: &Interval, bin_ns: u64, bins: u64, bytes: &mut BTreeMap<u64, f64>) {
    if interval.length_ns == 0 {
        return;
    }
    let end = interval.offset_ns.saturating_add(interval.length_ns);
    let first = (interval.offset_ns / bin_ns).min(bins - 1);
    let last = ((end - 1) / bin_ns).min(bins - 1);
    for bin in first..=last {
        let from = (bin * bin_ns).max(interval.offset_ns);
        let to = if bin == bins - 1 {
            end
        } else {
            end.min((bin + 1) * bin_ns)
        };
        let share = to.saturating_sub(from) as f64 / interval.length_ns as f64;
        *bytes.entry(bin).or_default() += interval.bytes as f64 * share;
    }
}
