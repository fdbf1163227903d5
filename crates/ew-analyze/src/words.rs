//! Quantities of findings, and counts as notes need them.

use ew_model::analysis::Estimate;
use ew_model::finding::Quantity;

/// An estimate with a unit.
pub(crate) fn quantity(estimate: &Estimate, unit: &str) -> Quantity {
    Quantity {
        value: estimate.value,
        low: estimate.low,
        high: estimate.high,
        unit: unit.into(),
    }
}

/// A single number with a unit.
pub(crate) fn plain(value: f64, unit: &str) -> Quantity {
    Quantity {
        value,
        low: None,
        high: None,
        unit: unit.into(),
    }
}

/// "1 flow", "3 flows".
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}
