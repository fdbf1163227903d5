//! Who takes part in the rounds.

use ew_model::inventory::HostId;
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::record::FlowRecord;
use ew_model::workload::{Workload, WorkloadKind};
use ew_proto::message::FlowOrder;
use std::collections::BTreeMap;

type Key = (StageIndex, RoundIndex);

/// Rounds by their place in the plan.
#[derive(Debug, Default)]
pub(crate) struct Rounds(pub(crate) BTreeMap<Key, Taken>);

/// Who takes part in a round, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Hosts at the two ends, with their orders.
    pub(crate) flows: BTreeMap<FlowId, Ends>,
    /// What is measured: what others load the network with next to it is bulk data.
    pub(crate) workload: Option<Workload>,
    /// From the first end of a window on.
    pub(crate) records: Option<BTreeMap<FlowId, FlowRecord>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Of both, as the same order has it.
    pub(crate) kind: Option<WorkloadKind>,
    pub(crate) sender: Option<(HostId, FlowOrder)>,
    pub(crate) receiver: Option<(HostId, FlowOrder)>,
}
