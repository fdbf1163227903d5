//! The rounds did not run as planned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Too many rounds are void.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct InvalidMeasurement {
    /// Rounds with at least half of the hosts.
    pub rounds: usize,
    /// Those of them that are void.
    pub void_rounds: usize,
    /// Flows of the rounds that were late, mean of the shares, 0 to 1.
    pub late_share: f64,
    /// Flows of the rounds that are missing, mean of the shares, 0 to 1.
    pub missing_share: f64,
    /// Rounds on CPU-starved hosts over all of them, 0 to 1.
    pub starved_share: f64,
    /// So many that this is the cause.
    pub is_starved: bool,
}
