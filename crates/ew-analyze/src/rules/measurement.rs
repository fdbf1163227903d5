//! Whether the rounds ran as planned: if most did not, that is the result, and nobody is to blame.

use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_model::finding::details::InvalidMeasurement;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let quality = &case.network.quality;
    if !quality.is_invalid() {
        return None;
    }
    let void_share = quality.void_rounds as f64 / quality.full_rounds.max(1) as f64;
    Some(Finding {
        measured: plain(void_share, "share"),
        expected: plain(0.0, "share"),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            Cause::MeasurementQuality,
            Details::InvalidMeasurement(InvalidMeasurement {
                rounds: quality.full_rounds,
                void_rounds: quality.void_rounds,
                late_share: quality.late_share,
                missing_share: quality.missing_share,
                starved_share: quality.starved_share,
                is_starved: quality.starved_share > 0.5,
            }),
        )
    })
}
