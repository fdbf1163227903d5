//! Pods get less than their nodes.

use crate::pods::PodComparison;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path between pods that is lower than its baseline.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodNetwork {
    /// The path next to its baseline, and why it is lower.
    pub comparison: Box<PodComparison>,
}
