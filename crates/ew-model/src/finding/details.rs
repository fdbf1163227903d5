//! What was found and what it rests on, one type per kind of finding. The report's catalogue has an
//! entry for each.

mod parts;
mod uplink;

pub use parts::Directions;
pub use uplink::{Oversubscribed, UplinkLimit, UplinkRivals};

use super::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found, by kind.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Details {
    /// Of a verdict of before details were kept.
    #[default]
    Unknown,
    /// Racks whose uplinks limit their hosts.
    Oversubscribed(Oversubscribed),
    /// In words already.
    Worded(Worded),
}

/// In words.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Worded {
    /// What was found.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What a person can do next.
    pub hint: String,
}

impl Worded {
    /// As details.
    #[must_use]
    pub fn details(sentence: String, evidence: Vec<Evidence>, hint: String) -> Details {
        Details::Worded(Self {
            sentence,
            evidence,
            hint,
        })
    }
}
