//! The ramp: 1, 2, ... n senders of a rack at once. Their sum rises with slope c, one host's goodput, until the
//! uplink U is full; the knee lies at U / c senders.

use crate::observations::{Observations, RoundView};
use crate::stats::median;
use ew_model::RackId;
use ew_model::analysis::{Estimate, RackPairAnalysis};
use std::collections::BTreeMap;

/// A point belongs to the flat part when it stays below this share of what its senders could do.
const FLAT_BELOW: f64 = 0.9;

/// All rounds with the same number of senders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RampPoint {
    pub(crate) senders: u32,
    /// Sum over the flows, one per round.
    pub(crate) measured: Vec<f64>,
    /// What their hosts could have done.
    pub(crate) expected: Vec<f64>,
}

/// Measured and host-limited sums of one round, per ordered rack pair.
type RoundSums = BTreeMap<(RackId, RackId), (f64, f64)>;

/// Collects the ramps of all ordered rack pairs.
pub(crate) fn points(
    observations: &Observations<'_>,
    sums: impl Fn(&RoundView<'_>) -> RoundSums,
) -> BTreeMap<(RackId, RackId), Vec<RampPoint>> {
    let mut by_senders: BTreeMap<(RackId, RackId), BTreeMap<u32, RampPoint>> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        let Some(senders) = round.senders_per_rack.filter(|_| round.whole) else {
            continue;
        };
        for (pair, (measured, expected)) in sums(round) {
            let point = by_senders
                .entry(pair)
                .or_default()
                .entry(senders)
                .or_insert(RampPoint {
                    senders,
                    measured: Vec::new(),
                    expected: Vec::new(),
                });
            point.measured.push(measured);
            point.expected.push(expected);
        }
    }
    by_senders
        .into_iter()
        .map(|(pair, points)| (pair, points.into_values().collect()))
        .collect()
}

/// Writes a ramp and its knee into a rack pair.
pub(crate) fn describe(
    points: &[RampPoint],
    inside: Option<&Estimate>,
    analysis: &mut RackPairAnalysis,
) {
    let medians: Vec<(u32, f64, f64)> = points
        .iter()
        .filter_map(|p| Some((p.senders, median(&p.measured)?, median(&p.expected)?)))
        .collect();
    analysis.ramp = medians
        .iter()
        .map(|(senders, sum, _)| (*senders, *sum))
        .collect();
    let Some(uplink) = flat_level(&medians) else {
        return;
    };
    analysis.uplink_bits_per_sec = Some(uplink);
    analysis.knee_senders = inside.filter(|i| i.value > 0.0).map(|i| uplink / i.value);
}

/// The uplink's capacity: the level U for which min(what the senders can do, U) fits the points best in absolute
/// logarithms. `None` when the last point still rises: the uplink was not filled.
fn flat_level(points: &[(u32, f64, f64)]) -> Option<f64> {
    let (_, last, possible) = points.last()?;
    if *possible <= 0.0 || *last >= FLAT_BELOW * possible {
        return None;
    }
    let misfit = |level: f64| -> f64 {
        points
            .iter()
            .filter(|(_, measured, expected)| *measured > 0.0 && *expected > 0.0)
            .map(|(_, measured, expected)| (measured / expected.min(level)).ln().abs())
            .sum()
    };
    (0..points.len())
        .filter_map(|first| {
            let flat: Vec<f64> = points[first..].iter().map(|(_, sum, _)| *sum).collect();
            median(&flat).filter(|level| *level > 0.0)
        })
        .min_by(|a, b| misfit(*a).total_cmp(&misfit(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flat_part_is_the_uplink() {
        let points = [
            (1, 190.0, 191.0),
            (2, 380.0, 382.0),
            (3, 401.0, 573.0),
            (4, 399.0, 764.0),
        ];
        let level = flat_level(&points).unwrap();
        assert!((level - 400.0).abs() < 2.0, "{level}");
    }

    #[test]
    fn a_ramp_without_a_rising_part_still_has_a_level() {
        let points = [(1, 72.0, 191.0), (2, 71.0, 382.0), (3, 70.5, 573.0)];
        let level = flat_level(&points).unwrap();
        assert!((level - 71.0).abs() < 1.5, "{level}");
    }

    #[test]
    fn an_uplink_that_was_not_filled_has_none() {
        assert_eq!(flat_level(&[(1, 190.0, 191.0), (2, 379.0, 382.0)]), None);
        assert_eq!(flat_level(&[]), None);
    }
}
