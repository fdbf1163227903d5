//! The shape of a curve: a straight line of time over size, the size n1/2 of half the rate,
//! saturation.

use super::points::{Measured, smoothed};
use ew_model::sweep::{CurveNote, HalfPerformance, Saturation, TimeLine};
use ew_stats::quantile;

/// Fewest points for a line.
const MIN_FOR_LINE: usize = 5;
/// A line describes times of which three in four are off it by at most this.
const LINE_FITS: f64 = 0.15;
/// Below this share of the max rate a curve is reported to fall again.
const FALLS_BELOW: f64 = 0.8;

/// The line t(n) = t0 + n / r_inf with the least squares of relative distances, so that a
/// millisecond is forgiven where messages take a second. `None` with too few points or a slope that
/// is none.
pub(super) fn line(curve: &[Measured]) -> Option<TimeLine> {
    if curve.len() < MIN_FOR_LINE {
        return None;
    }
    // Weighted normal equations with weights 1 / t^2.
    let mut sums = [0.0; 5];
    for point in curve {
        let (n, t) = (point.bytes as f64, point.message_ns);
        let weight = 1.0 / (t * t);
        for (sum, term) in sums.iter_mut().zip([1.0, n, n * n, t, n * t]) {
            *sum += weight * term;
        }
    }
    let [w, n, nn, t, nt] = sums;
    let determinant = w * nn - n * n;
    let slope_ns = (w * nt - n * t) / determinant;
    let start_ns = (t - slope_ns * n) / w;
    if !(slope_ns.is_finite() && slope_ns > 0.0 && start_ns > 0.0) {
        return None;
    }
    let off =
        |p: &Measured| (start_ns + slope_ns * p.bytes as f64 - p.message_ns).abs() / p.message_ns;
    Some(TimeLine {
        start_ns,
        bits_per_sec: 8e9 / slope_ns,
        off: quantile(&curve.iter().map(off).collect::<Vec<_>>(), 0.75)?,
    })
}

/// n1/2, and what is against it.
pub(super) fn half_performance(
    curve: &[Measured],
    line: Option<TimeLine>,
) -> (Option<HalfPerformance>, Option<CurveNote>) {
    let (Some((peak, _)), Some(first), Some(last)) = (peak(curve), curve.first(), curve.last())
    else {
        return (None, Some(CurveNote::NothingMeasured));
    };
    let line = line.filter(|line| line.off <= LINE_FITS);
    // A line's own rate may lie a little off all that was seen; far off, it no longer follows from
    // the curve.
    let of_line = line.map(|line| line.bits_per_sec);
    let is_told = |rate: &f64| (0.9 * peak..1.25 * peak).contains(rate);
    let endless = of_line.filter(is_told).unwrap_or(peak);
    let Some(bytes) = crossing(curve, endless / 2.0) else {
        return (None, Some(CurveNote::HalfBelowSmallest));
    };
    let half = HalfPerformance {
        bytes,
        endless_bits_per_sec: endless,
        line,
        max_bits_per_sec: peak,
        sizes: curve.len() as u32,
        stages: [first, last].map(|point| point.stage.clone()),
    };
    (Some(half), None)
}

/// From where on greater messages bring little more, and notes on the curve's end.
pub(super) fn saturation(curve: &[Measured]) -> (Option<Saturation>, Option<CurveNote>) {
    let (Some((peak, at)), Some(last)) = (peak(curve), curve.last()) else {
        return (None, None);
    };
    let rates = rates(curve);
    let enough = Saturation::SHARE * peak;
    let short = rates[..at].iter().rposition(|rate| *rate < enough);
    let first = short.map_or(0, |position| position + 1);
    if curve[first].bytes > last.bytes / 2 {
        let message_bytes = last.bytes;
        return (None, Some(CurveNote::StillRises { message_bytes }));
    }
    let saturation = Saturation {
        message_bytes: curve[first].bytes,
        bits_per_sec: rates[first],
        greatest_bits_per_sec: peak,
    };
    let end = rates.last().copied().unwrap_or(peak);
    let falls = (end < FALLS_BELOW * peak).then_some(CurveNote::FallsAgain {
        share: end / peak,
        message_bytes: last.bytes,
    });
    (Some(saturation), falls)
}

fn rates(curve: &[Measured]) -> Vec<f64> {
    let rates: Vec<f64> = curve.iter().map(Measured::bits_per_sec).collect();
    smoothed(&rates)
}

/// The max rate and its position.
fn peak(curve: &[Measured]) -> Option<(f64, usize)> {
    let rates = rates(curve).into_iter().zip(0..);
    rates.max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// Where the curve first comes up to a rate, bytes; between two sizes the time is taken to grow
/// evenly. `None` when the first size is above it already.
fn crossing(curve: &[Measured], rate: f64) -> Option<f64> {
    let rates = rates(curve);
    let after = rates.iter().position(|r| *r >= rate)?;
    let before = after.checked_sub(1)?;
    let (from, to) = (curve[before].bytes as f64, curve[after].bytes as f64);
    let (start_ns, end_ns) = (8e9 * from / rates[before], 8e9 * to / rates[after]);
    let slope_ns = (end_ns - start_ns) / (to - from);
    // 8e9 n / (start + slope (n - from)) = rate.
    let bytes = (start_ns - slope_ns * from) / (8e9 / rate - slope_ns);
    Some(if bytes.is_finite() {
        bytes.clamp(from, to)
    } else {
        to
    })
}
