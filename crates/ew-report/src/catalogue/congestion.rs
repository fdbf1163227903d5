//! What others' load costs, in words for a ticket.

use ew_model::analysis::Estimate;
use ew_model::congestion::CongestionImpact;
use ew_model::units::{format_bits_per_sec, format_duration_ns, format_factor};
use schemars::JsonSchema;
use serde::Serialize;

/// An impact with its sentence, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WordedImpact {
    /// As figures.
    #[serde(flatten)]
    pub impact: CongestionImpact,
    /// In words for a ticket.
    pub sentence: String,
}

/// The impact with its sentence.
#[must_use]
pub fn worded_impact(impact: &CongestionImpact) -> WordedImpact {
    WordedImpact {
        impact: impact.clone(),
        sentence: sentence(impact),
    }
}

/// `round trips under incast: mean x7.2 (6.9-7.6), p99 x12; 48.2 us alone, 347 us loaded`.
pub(in crate::catalogue) fn sentence(impact: &CongestionImpact) -> String {
    let mean = &impact.mean;
    let tail = impact.p99.map_or_else(String::new, |p99| {
        format!(", p99 {}", times_words(&p99.factor))
    });
    format!(
        "{}: mean {}{tail}; {} alone, {} under {}",
        impact.stage,
        times_words(&mean.factor),
        figure(impact, mean.alone),
        figure(impact, mean.loaded),
        impact.aggressor.name(),
    )
}

pub(in crate::catalogue) fn times_words(factor: &Estimate) -> String {
    match (factor.low, factor.high) {
        (Some(low), Some(high)) => {
            let [value, low, high] = [factor.value, low, high].map(format_factor);
            format!("x{value} ({low}-{high})")
        }
        _ => format!("x{}", format_factor(factor.value)),
    }
}

fn figure(impact: &CongestionImpact, value: f64) -> String {
    match impact.kind.is_bulk() {
        true => format_bits_per_sec(value),
        false => format_duration_ns(value as u64),
    }
}
