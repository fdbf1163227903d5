//! What agents are asked for.

use ew_model::plan::StageIndex;
use ew_model::storage::StorageOrder;
use ew_proto::message::{PortCheck, StageOrder};

/// Commands that may wait for one agent.
pub(crate) const MAX_QUEUED_COMMANDS: usize = 64;

/// What the dispatcher asks of one agent.
#[derive(Debug)]
pub(crate) enum Command {
    Sync,
    Stage(StageOrder),
    Go { stage: StageIndex, start_ns: u64 },
    Abort,
    CheckPorts(PortCheck),
    Storage(StorageOrder),
    EndStorage,
    Goodbye,
    Kill,
}
