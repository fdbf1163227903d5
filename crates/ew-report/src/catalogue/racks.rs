//! The path between two racks, next to its figures.

use ew_model::analysis::{RackPairAnalysis, Undetermined};
use schemars::JsonSchema;
use serde::Serialize;

/// One direction between two racks, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "RackPairAnalysis")]
pub struct WordedRackPair<'a> {
    /// As figures.
    #[serde(flatten)]
    pub pair: &'a RackPairAnalysis,
    /// Why there is no ratio.
    pub reason: Option<String>,
}

/// The pair with its words.
#[must_use]
pub fn worded_rack_pair(pair: &RackPairAnalysis) -> WordedRackPair<'_> {
    WordedRackPair {
        pair,
        reason: pair.details.map(undetermined),
    }
}

/// Why it is not determined whether a path limits.
pub(crate) fn undetermined(why: Undetermined) -> String {
    match why {
        Undetermined::NotMeasured => "not measured".into(),
        Undetermined::NotLoaded => "nothing asked as much of it as its hosts can do".into(),
        Undetermined::Lossy => "it loses packets".into(),
        Undetermined::SingleConnections => "single connections do not show it".into(),
        Undetermined::TestedUpTo { share } => {
            format!("tested up to {:.0}% of line rate", 100.0 * share)
        }
    }
}
