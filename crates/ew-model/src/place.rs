//! Where in a plan something is: its stage, its round, its flow.

use serde::{Deserialize, Serialize};

/// Number of a flow, unique in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowId(pub u32);

/// Index of a stage in [`Plan::stages`](crate::plan::Plan::stages).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StageIndex(pub u32);

/// Index of a round in its stage. Repair rounds continue the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RoundIndex(pub u32);
