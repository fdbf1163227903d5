//! Whose a host is: one run at a time loads it.

use serde::{Deserialize, Serialize};

/// What a run reports about itself to whoever wants the same host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// The run's id.
    pub run: String,
    /// `user@controller`.
    pub by: String,
    /// When it began, seconds since 1970, controller's clock.
    pub since_unix_s: u64,
    /// When it is planned to end, seconds since 1970, controller's clock.
    pub until_unix_s: u64,
}
