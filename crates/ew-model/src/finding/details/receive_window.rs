//! The receiver's window limits the senders: its buffer is too small for the path.

use super::OwnAndPeers;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host's receive window limits those who send to it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SmallReceiveWindow {
    /// Whose.
    pub host: HostId,
    /// Share of the time with data in flight that it limited, median over flows.
    pub limited_share: OwnAndPeers,
}
