//! What every cause looks at: one lower path, with all that was seen of it.

use crate::pods::matched::Match;
use ew_evidence::observations::{Observations, StageView};
use ew_evidence::telemetry::Telemetry;
use ew_model::HostId;
use ew_model::facts::InterfaceFacts;
use ew_model::pods::{PodCause, PodCauseFacts, PodComparison, agent, parse_agent_name};
use std::collections::BTreeSet;

/// One lower path.
pub(super) struct Case<'c, 'o, 'a> {
    pub(super) observations: &'c Observations<'a>,
    pub(super) telemetry: &'c Telemetry<'a>,
    pub(super) found: &'c Match<'o, 'a>,
    pub(super) comparison: &'c PodComparison,
}

impl<'c> Case<'c, '_, '_> {
    pub(super) fn drop(&self) -> f64 {
        1.0 - self.comparison.ratio.value
    }

    /// Whoever took part in a stage.
    pub(super) fn agents(view: &StageView<'_>) -> BTreeSet<HostId> {
        view.measured().flat_map(|row| [row.src, row.dst]).collect()
    }

    /// The agent in the own network of an agent's node.
    pub(super) fn node_of(&self, host: HostId) -> Option<HostId> {
        let inventory = self.observations.inventory();
        inventory.find(&agent(parse_agent_name(inventory.name(host)).node, None))
    }

    /// The interface that an agent's address is on.
    pub(super) fn interface(&self, host: HostId) -> Option<&'c InterfaceFacts> {
        let address = self.observations.inventory().host(host).address?;
        let facts = self.observations.run.facts.get(&host)?;
        facts.interface_with(address)
    }
}

/// A cause whose part of the difference cannot be computed.
pub(super) fn of_unknown_share(facts: PodCauseFacts) -> PodCause {
    PodCause { facts, share: None }
}
