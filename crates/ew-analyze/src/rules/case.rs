//! What every rule looks at.

use super::isolated_flows::IsolatedFlows;
use ew_evidence::basis::Reference;
use ew_evidence::observations::Observations;
use ew_evidence::telemetry::Telemetry;
use ew_fit::Network;
use ew_fit::tomography::Tomography;
use ew_model::analysis::{HostAnalysis, StageAnalysis};

/// Everything a rule may look at.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) observations: &'a Observations<'a>,
    pub(crate) reference: &'a Reference,
    pub(crate) network: &'a Network,
    /// In the order of the observations' stages.
    pub(crate) stages: &'a [StageAnalysis],
    pub(crate) hosts: &'a [HostAnalysis],
    pub(crate) telemetry: &'a Telemetry<'a>,
    pub(crate) tomography: &'a Tomography,
    pub(crate) isolated_flows: &'a IsolatedFlows<'a>,
}
