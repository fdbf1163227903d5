//! What keeps pods from reaching each other, or ended them, as it was found at the end of a run.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One finding of that kind.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Barrier {
    /// Which.
    pub kind: BarrierKind,
    /// The host that it is about, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// In words, with a remedy.
    pub words: String,
}

/// Which barriers are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarrierKind {
    /// A pod was evicted or deleted, or its node or namespace is gone.
    PodEnded,
    /// A NetworkPolicy selects the pods.
    NetworkPolicy,
    /// A proxy takes the pods' connections.
    ServiceMesh,
    /// A route to the pods is missing.
    NoRoute,
    /// Connections were answered with a refusal.
    FirewallRejects,
    /// There are routes, and no answer.
    FirewallDrops,
    /// None of these is shown.
    NotDetermined,
    /// What would show more could not be read.
    NotPermitted,
}
