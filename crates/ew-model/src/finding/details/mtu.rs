//! The MTU of a host's data interface differs from its peers'.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts with the same MTU, which is not the typical one.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct OddMtu {
    /// Which.
    pub hosts: Vec<HostId>,
    /// Theirs.
    pub mtu_bytes: u32,
    /// What most hosts have.
    pub typical_bytes: u64,
}
