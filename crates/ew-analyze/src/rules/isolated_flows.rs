//! Flows that were alone at both ends.

use ew_evidence::observations::Observations;
use ew_fit::Network;
use ew_model::record::{EndRecord, FlowRecord};

/// Rows of capacity tests whose flow was alone at both ends, and lost nothing at random between
/// racks; and those of each host, since rules look at every host next to all others.
#[derive(Debug)]
pub(crate) struct IsolatedFlows<'a> {
    pub(super) all: Vec<&'a FlowRecord>,
    pub(super) ends: Vec<Vec<(&'a FlowRecord, &'a EndRecord)>>,
}

impl<'a> IsolatedFlows<'a> {
    pub(crate) fn new(observations: &'a Observations<'a>, network: &Network) -> Self {
        let inventory = observations.inventory();
        let shows_hosts =
            |row: &FlowRecord| !network.loses_between(inventory.racks_between(row.src, row.dst));
        let rounds = observations.judged().flat_map(|stage| &stage.rounds);
        let all: Vec<&FlowRecord> = rounds
            .flat_map(|round| {
                let rows = round.records.iter().zip(&round.isolated);
                rows.filter(|(row, isolated)| **isolated && shows_hosts(row))
                    .map(|(row, _)| *row)
            })
            .collect();
        let mut ends = vec![Vec::new(); observations.inventory().hosts.len()];
        for row in &all {
            for (host, end) in [(row.src, &row.sender), (row.dst, &row.receiver)] {
                if let (Some(of_host), Some(end)) = (ends.get_mut(host.index()), end) {
                    of_host.push((*row, end));
                }
            }
        }
        Self { all, ends }
    }
}
