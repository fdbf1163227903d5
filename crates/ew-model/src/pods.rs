//! Agents of a Kubernetes cluster: `node` in the node's own network, `node/pod` and `node/pod2` in
//! the pod network. No node's name has a slash.

mod causes;

pub use causes::{
    DearerPath, NodeNic, PacketCost, PodCause, PodCauseFacts, PodCauseKind, PodConntrack,
    PodCpuLimit, ReachedLimit, RefusingNode, RestOfDifference, SaturatedSoftirq, ServicePath,
    SlowerPath, SmallerPackets, ThrottledPod, TunnelledPackets,
};

use crate::estimate::Estimate;
use crate::workload::WorkloadKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// The pod that the other nodes and Services talk to.
pub const FIRST_POD: &str = "pod";
/// The one that the first talks to on its own node.
pub const SECOND_POD: &str = "pod2";

/// Streams per flow with ports of their own (UDP, a connection per transaction) that a Service may
/// lead to: a cluster has 2,768 node ports in all by default.
pub const MAX_SERVICE_STREAMS: u32 = 32;

/// Between whom data goes, and through what.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PodPath {
    /// Two nodes, in their own network: what the others are compared with.
    HostNetwork,
    /// Two nodes of different zones, in their own network.
    HostOtherZone,
    /// Two pods of a node.
    SameNode,
    /// Pods of two nodes.
    OtherNode,
    /// Pods of two nodes of different zones.
    OtherZone,
    /// Pods of two nodes, the server behind a Service's cluster address.
    ClusterIp,
    /// Pods of two nodes, the server behind a port of its node.
    NodePort,
    /// Pods of two nodes, the server's address from a headless Service.
    Headless,
}

impl PodPath {
    /// All, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::HostNetwork,
        Self::HostOtherZone,
        Self::SameNode,
        Self::OtherNode,
        Self::OtherZone,
        Self::ClusterIp,
        Self::NodePort,
        Self::Headless,
    ];

    /// The word of scenario files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HostNetwork => "host-network",
            Self::HostOtherZone => "host-other-zone",
            Self::SameNode => "same-node",
            Self::OtherNode => "other-node",
            Self::OtherZone => "other-zone",
            Self::ClusterIp => "cluster-ip",
            Self::NodePort => "node-port",
            Self::Headless => "headless",
        }
    }

    /// The kind of the Service that leads to the server.
    #[must_use]
    pub fn service(self) -> Option<&'static str> {
        match self {
            Self::ClusterIp => Some("ClusterIP"),
            Self::NodePort => Some("NodePort"),
            Self::Headless => Some("headless"),
            _ => None,
        }
    }

    /// Whether the server's address and ports are translated on the way, so that only those that
    /// the Service lists are reached.
    #[must_use]
    pub fn translates(self) -> bool {
        matches!(self, Self::ClusterIp | Self::NodePort)
    }

    /// Whether it leads from one zone to another.
    #[must_use]
    pub fn crosses_zones(self) -> bool {
        matches!(self, Self::OtherZone | Self::HostOtherZone)
    }

    /// What it is compared with. `None`: others are compared with it, or nothing is alike.
    #[must_use]
    pub fn baseline(self) -> Option<Self> {
        match self {
            Self::HostNetwork | Self::HostOtherZone => None,
            Self::OtherZone => Some(Self::HostOtherZone),
            _ => Some(Self::HostNetwork),
        }
    }
}

/// One path against its baseline, and why it is lower.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodComparison {
    /// What was measured.
    #[serde(flatten)]
    pub figures: PodFigures,
    /// Why it is lower, as far as counters show; empty where it is not.
    pub causes: Vec<PodCause>,
}

impl Deref for PodComparison {
    type Target = PodFigures;

    /// What is compared is what was measured.
    fn deref(&self) -> &PodFigures {
        &self.figures
    }
}

/// What was measured of a path and of its baseline.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodFigures {
    /// The stage.
    pub stage: String,
    /// The stage it is compared with.
    pub baseline_stage: String,
    /// Which path.
    pub path: PodPath,
    /// The baseline's.
    pub baseline_path: PodPath,
    /// What the flows carry.
    pub kind: WorkloadKind,
    /// Connections per flow.
    pub streams: u32,
    /// Per flow: bits per second, or transactions per second where there are requests.
    pub figure: Estimate,
    /// The same of the baseline.
    pub baseline: Estimate,
    /// Figure over baseline, of flows between the same nodes in the same repetition.
    pub ratio: Estimate,
    /// Of Wilcoxon's signed-rank test of those ratios, corrected for the number of comparisons
    /// (Benjamini and Hochberg).
    pub p_value: Option<f64>,
    /// Whether the difference is more than chance and more than a measurement's accuracy.
    pub significant: bool,
    /// Share that the path may lose as configured, where it loses more. `None`: it does not, or
    /// nobody asked.
    #[serde(default)]
    pub exceeded_loss_share: Option<f64>,
    /// CPUs busy on the nodes inside the windows, as a share of all: client's, server's.
    pub node_cpu: [Option<f64>; 2],
    /// CPUs that the agents' own threads used: client's, server's.
    pub agent_cpus: [Option<f64>; 2],
    /// `node_cpu` of the baseline.
    #[serde(default)]
    pub baseline_node_cpu: [Option<f64>; 2],
    /// `agent_cpus` of the baseline.
    #[serde(default)]
    pub baseline_agent_cpus: [Option<f64>; 2],
}

/// Where an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLocation<'a> {
    /// The node's name.
    pub node: &'a str,
    /// Which pod. `None`: the node's own network.
    pub pod: Option<&'a str>,
}

/// By an agent's name.
#[must_use]
pub fn parse_agent_name(agent: &str) -> AgentLocation<'_> {
    match agent.split_once('/') {
        Some((node, pod)) => AgentLocation {
            node,
            pod: Some(pod),
        },
        None => AgentLocation {
            node: agent,
            pod: None,
        },
    }
}

/// The name of a node's agent.
#[must_use]
pub fn agent(node: &str, pod: Option<&str>) -> String {
    match pod {
        Some(pod) => format!("{node}/{pod}"),
        None => node.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_where_its_agent_is() {
        for (name, node, pod) in [("n1", "n1", None), ("n1/pod2", "n1", Some("pod2"))] {
            assert_eq!(parse_agent_name(name), AgentLocation { node, pod });
            assert_eq!(agent(node, pod), name);
        }
    }
}
