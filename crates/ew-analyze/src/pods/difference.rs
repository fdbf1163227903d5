//! When a path differs from its baseline.

use ew_model::analysis::Estimate;

/// Chance of calling a difference where there is none.
const LEVEL: f64 = 0.05;
/// A smaller difference is within the accuracy of a measurement.
pub(super) const MIN_DIFFERENCE: f64 = 0.015;

/// More than chance, with an interval that leaves out "no difference", and more than a
/// measurement's accuracy.
pub(super) fn is_significant(ratio: &Estimate, p_value: Option<f64>) -> bool {
    let (Some(low), Some(high), Some(p_value)) = (ratio.low, ratio.high, p_value) else {
        return false;
    };
    p_value < LEVEL && (high < 1.0 || low > 1.0) && (ratio.value - 1.0).abs() >= MIN_DIFFERENCE
}
