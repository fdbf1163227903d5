//! One file per cause. A rule looks at the whole case and returns findings; it knows nothing of other rules' findings.

mod cells_missing;
mod host_missing;
mod latency;
mod link_speed;
mod loss;
mod mtu;
mod not_determined;
mod slow_host;
mod slow_pair;
mod stated_nic;
mod uplink;

use crate::Network;
use crate::basis::Reference;
use crate::expected::Expected;
use crate::losses::Losses;
use crate::observations::Observations;
use crate::telemetry::Telemetry;
use ew_model::analysis::{HostAnalysis, StageAnalysis};
use ew_model::finding::{Cause, Evidence, Finding, Subject};
use ew_model::sweep::SweepAnalysis;

/// Everything a rule may look at.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) observations: &'a Observations<'a>,
    pub(crate) reference: &'a Reference,
    pub(crate) network: &'a Network,
    pub(crate) expected: &'a Expected,
    /// In the order of the observations' stages.
    pub(crate) stages: &'a [StageAnalysis],
    pub(crate) sweeps: &'a [SweepAnalysis],
    pub(crate) hosts: &'a [HostAnalysis],
}

/// All findings, in the order of the rules.
pub(crate) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = [
        host_missing::find(case),
        link_speed::find(case),
        slow_host::find(case),
        stated_nic::find(case),
        uplink::find(case),
        slow_pair::find(case),
        mtu::find(case),
        latency::find(case),
        loss::find(case),
        cells_missing::find(case),
    ]
    .concat();
    findings.extend(not_determined::find(case, &findings));
    findings
}

fn evidence(text: String, source: String) -> Evidence {
    Evidence { text, source }
}
