//! One member of a bond carries nearly all of what a host sends or receives.

use super::Directions;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts whose bond has a member that carries nearly all.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BondMember {
    /// The first host's bond, by its name.
    pub bond: String,
    /// The kernel's word for how it uses its members. `None` for a team.
    pub mode: Option<String>,
    /// By what a member is chosen. `None` for a team.
    pub hash_policy: Option<String>,
    /// That lets connections of two hosts use different members.
    pub is_hashed_by_connection: bool,
    /// Interfaces that share its traffic.
    pub members: Vec<String>,
    /// Which way a member carries nearly all, on any of the hosts.
    pub directions: Directions,
    /// What it is on each host.
    pub busiest: Vec<BusiestMember>,
}

/// A member of a host's bond.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BusiestMember {
    /// Whose bond.
    pub host: HostId,
    /// The interface.
    pub member: String,
    /// Its share of the bytes of a direction, 0 to 1.
    pub share: f64,
}
