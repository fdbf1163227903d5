//! Quantities of findings.

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
