//! What was found and what it rests on, one type per kind of finding. The report's catalogue has an
//! entry for each.

mod cells_missing;
mod congestion;
mod host_missing;
mod not_determined;
mod parts;
mod pod_network;
mod uplink;

pub use cells_missing::{FlowsMissing, MissingWith, RefusingHost, StageMissing, StagesMissing};
pub use congestion::Congestion;
pub use host_missing::{Absence, AbsenceReason, HostsMissing};
pub use not_determined::{
    FlowsUnexplained, NoCpuLeft, StageBelow, UnexplainedHost, UnexplainedPair,
};
pub use parts::Directions;
pub use pod_network::PodNetwork;
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
    /// Victims under others' load.
    Congestion(Congestion),
    /// Flows without a figure.
    FlowsMissing(FlowsMissing),
    /// Flows below expectation that nothing explains.
    FlowsUnexplained(FlowsUnexplained),
    /// Hosts that are missing.
    HostsMissing(HostsMissing),
    /// Racks whose uplinks limit their hosts.
    Oversubscribed(Oversubscribed),
    /// Pods that get less than their nodes.
    PodNetwork(PodNetwork),
    /// A stage below expectation that nothing explains, or hosts without CPU to spare.
    StageBelow(StageBelow),
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
