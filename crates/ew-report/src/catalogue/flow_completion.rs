//! Flow completion times at a load, in words for a ticket.

use super::congestion::times_words;
use crate::words::{fine_percent, percent};
use ew_model::completion::{FlowCompletion, SizeSlowdown};
use ew_model::units::{format_bytes, format_duration_ns};
use schemars::JsonSchema;
use serde::Serialize;

/// A stage's slowdowns with their sentence, as the JSON report holds them.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WordedCompletion {
    /// As figures.
    #[serde(flatten)]
    pub completion: FlowCompletion,
    /// In words for a ticket.
    pub sentence: String,
}

/// The slowdowns with their sentence.
#[must_use]
pub fn worded_completion(completion: &FlowCompletion) -> WordedCompletion {
    WordedCompletion {
        completion: completion.clone(),
        sentence: sentence(completion),
    }
}

/// `80% load: hadoop messages of 324 B slowed x2.10 (1.90-2.40) at p50, x14.2 at p99; 45.2 µs
/// alone; 79.6% of line rate carried (80% offered)`: of the size with the largest slowdown.
pub(in crate::catalogue) fn sentence(of: &FlowCompletion) -> String {
    let worst = of.sizes.iter().max_by(|a, b| worse(a).total_cmp(&worse(b)));
    let Some((size, p50)) = worst.and_then(|size| Some((size, size.p50?))) else {
        return format!("{}: no message was completed", of.stage);
    };
    let tail = size
        .p99
        .map_or_else(String::new, |p99| format!(", {} at p99", times_words(&p99)));
    format!(
        "{}: {} messages of {} slowed {} at p50{tail}; {} alone{}",
        of.stage,
        of.distribution.name(),
        format_bytes(size.bytes),
        times_words(&p50),
        format_duration_ns(size.alone_ns as u64),
        carried(of),
    )
}

/// Where there is a load: what was carried of it.
fn carried(of: &FlowCompletion) -> String {
    let loads = of.load.zip(of.achieved_load);
    loads.map_or_else(String::new, |(load, achieved)| {
        let achieved = fine_percent(Some(achieved.value));
        let offered = percent(Some(load));
        format!("; {achieved} of line rate carried ({offered} offered)")
    })
}

/// What sizes are ranked by: the median, which all have.
fn worse(size: &SizeSlowdown) -> f64 {
    size.p50.map_or(0.0, |p50| p50.value)
}
