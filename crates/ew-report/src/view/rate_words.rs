//! Rates in words.

use crate::words::{estimated_rate, rate_with_interval};
use ew_model::analysis::Estimate;

/// A rate, and the same with its interval.
pub(crate) struct RateWords {
    pub(crate) short: String,
    pub(crate) with_interval: String,
}

impl RateWords {
    pub(super) fn of(estimate: Option<Estimate>) -> Self {
        Self {
            short: estimated_rate(estimate),
            with_interval: rate_with_interval(estimate),
        }
    }
}
