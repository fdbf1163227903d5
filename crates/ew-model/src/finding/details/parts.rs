//! What several kinds of findings have in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way data goes, seen from a host or rack.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// It sends.
    Tx,
    /// It receives.
    Rx,
    /// Both.
    Both,
}
