//! What findings have in common. Their figures are optional, so what makes one gives `Some`.

use crate::precision::confidence;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Details, Finding, Quantity, Severity, Subject};

/// Pieces of evidence, or hosts, that a finding shows of one kind: more say the same.
pub(crate) const MAX_EVIDENCE: usize = 16;

/// A finding without figures: those that have some say so, `..finding_of(...)`.
pub(crate) fn finding_of(
    severity: Severity,
    subject: Subject,
    cause: Cause,
    details: Details,
) -> Finding {
    Finding {
        severity,
        subject,
        cause,
        symptom: None,
        measured: None,
        expected: None,
        confidence: confidence(cause),
        details,
        cables: Vec::new(),
    }
}

/// An estimate with a unit.
pub(crate) fn quantity(estimate: &Estimate, unit: &str) -> Option<Quantity> {
    Some(Quantity {
        value: estimate.value,
        low: estimate.low,
        high: estimate.high,
        unit: unit.into(),
    })
}

/// A number and its 95% interval.
pub(crate) fn within(value: f64, (low, high): (f64, f64), unit: &str) -> Option<Quantity> {
    Some(Quantity {
        value,
        low: Some(low),
        high: Some(high),
        unit: unit.into(),
    })
}

/// A number without an interval.
pub(crate) fn plain(value: f64, unit: &str) -> Option<Quantity> {
    Some(Quantity {
        value,
        low: None,
        high: None,
        unit: unit.into(),
    })
}

/// A rate.
pub(crate) fn bit_rate(bits_per_sec: f64) -> Option<Quantity> {
    plain(bits_per_sec, "bits_per_sec")
}
