//! The tables next to the stages': each of a file that makes its own.

use crate::figures::{self, Figures, has_details};
use crate::{congestion, flow_completion, pods, sweep, tools};
use ew_model::Analysis;

/// The tables next to the stages': what readers of more than the stage table came for, and what
/// every stage cost its hosts.
pub(super) fn all(analysis: &Analysis) -> Vec<Figures> {
    let details = has_details(analysis).then(|| {
        [
            figures::latency(analysis),
            figures::latency_by_pair(analysis),
            figures::datagrams(analysis),
            figures::one_way(analysis),
        ]
    });
    let tables = details
        .into_iter()
        .flatten()
        .chain([figures::cpu(analysis)]);
    let tables = sweep::tables(analysis).into_iter().chain(tables);
    let tables = tools::tables(analysis).into_iter().chain(tables);
    let tables = pods::tables(analysis).into_iter().chain(tables);
    let tables = flow_completion::tables(analysis).into_iter().chain(tables);
    let tables = congestion::tables(analysis).into_iter().chain(tables);
    tables.filter(|table| !table.rows.is_empty()).collect()
}
