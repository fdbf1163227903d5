//! Others' load makes flows slower.

use crate::congestion::CongestionImpact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load of the victims under the aggressor that costs it most.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Congestion {
    /// The load alone and under the aggressor.
    pub impact: Box<CongestionImpact>,
    /// Requests wait longer, by more than chance.
    pub is_longer_wait: bool,
}
