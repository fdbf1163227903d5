//! What makes pods slower than their nodes, with the counters that show it.

use crate::analysis::ConntrackRefusals;
use crate::inventory::HostId;
use crate::tunnel::TunnelKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One cause of a difference.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodCause {
    /// Which, and what shows it.
    pub facts: PodCauseFacts,
    /// Part of the difference that it explains, where that can be computed: 0 to 1.
    pub share: Option<f64>,
}

impl PodCause {
    /// Which.
    #[must_use]
    pub fn kind(&self) -> PodCauseKind {
        match &self.facts {
            PodCauseFacts::Encapsulation(_) => PodCauseKind::Encapsulation,
            PodCauseFacts::Mtu(_) => PodCauseKind::Mtu,
            PodCauseFacts::CpuLimit(_) => PodCauseKind::CpuLimit,
            PodCauseFacts::Softirq(_) => PodCauseKind::Softirq,
            PodCauseFacts::DearerPath(_) | PodCauseFacts::SlowerPath(_) => {
                PodCauseKind::PodDatapath
            }
            PodCauseFacts::Conntrack(_) => PodCauseKind::Conntrack,
            PodCauseFacts::ServicePath(_) => PodCauseKind::ServicePath,
            PodCauseFacts::NodeNic(_) => PodCauseKind::NodeNic,
            PodCauseFacts::NotDetermined(_) => PodCauseKind::NotDetermined,
        }
    }
}

/// What makes pods slower than their nodes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PodCauseKind {
    /// Headers of a tunnel, and the smaller MTU inside it.
    Encapsulation,
    /// A smaller MTU without a tunnel that is seen.
    Mtu,
    /// The pod's CPU limit.
    CpuLimit,
    /// One CPU saturated by packet handling.
    Softirq,
    /// More CPU time per byte or transaction than the node's own network takes: veth, bridge,
    /// filters.
    PodDatapath,
    /// Connection tracking of a node refuses connections: its table is full, or translated ports
    /// are used up.
    Conntrack,
    /// The way through a Service: kube-proxy's or the CNI's address translation.
    ServicePath,
    /// The node's NIC: it drops packets of pods, or its link is full.
    NodeNic,
    /// None of these.
    NotDetermined,
}

/// What shows a cause, by kind.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum PodCauseFacts {
    /// Headers of a tunnel, and the smaller MTU inside it.
    Encapsulation(TunnelledPackets),
    /// A smaller MTU without a tunnel that is seen.
    Mtu(SmallerPackets),
    /// The pod's CPU limit.
    CpuLimit(PodCpuLimit),
    /// One CPU saturated by packet handling.
    Softirq(SaturatedSoftirq),
    /// The pods' data path takes more CPU time.
    DearerPath(DearerPath),
    /// The pods' data path takes longer, and nothing else is seen.
    SlowerPath(SlowerPath),
    /// Connection tracking of a node refuses connections.
    Conntrack(PodConntrack),
    /// The way through a Service.
    ServicePath(ServicePath),
    /// The node's NIC.
    NodeNic(NodeNic),
    /// None of these, or none for the rest.
    NotDetermined(RestOfDifference),
}

/// Packets of pods that a tunnel of their nodes carries.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TunnelledPackets {
    /// What the tunnel puts around them.
    pub tunnel: TunnelKind,
    /// The nodes' interface that carries them.
    pub interface: String,
    /// The packets.
    pub packets: SmallerPackets,
}

/// Packets of pods that contain less payload than those of their nodes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SmallerPackets {
    /// Of the pods' network, bytes.
    pub mtu_bytes: u32,
    /// Between pods.
    pub pods: PacketCost,
    /// Between nodes.
    pub nodes: PacketCost,
    /// Goodput that the difference costs, as a share.
    pub lost_share: f64,
    /// This is all that pods lose.
    pub is_all: bool,
}

/// A message as the nodes' link counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PacketCost {
    /// Its payload.
    pub message_bytes: u64,
    /// Packets it takes: segments of TCP, or fragments of a datagram.
    pub packets: u64,
    /// What the link counts.
    pub counted_bytes: u64,
}

/// Pods that their CPU limits throttle.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodCpuLimit {
    /// The most throttled first.
    pub pods: Vec<ThrottledPod>,
}

/// A pod that its CPU limit throttles.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ThrottledPod {
    /// The pod's agent.
    pub host: HostId,
    /// Share of the time in which the limit throttled it.
    pub throttled_share: f64,
    /// The limit, in CPUs. `None` where it is not known.
    pub limit_cpus: Option<f64>,
    /// What its threads used and how long they waited, where that shows it. `None`: the control
    /// group's counters do.
    pub reached: Option<ReachedLimit>,
}

/// Threads that use all of a CPU limit, and wait: medians over windows.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReachedLimit {
    /// CPUs that they used.
    pub used_cpus: f64,
    /// Share of the time that one was ready and waited.
    pub waited_share: f64,
}

/// A CPU that packet handling fills with pods, and not without.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SaturatedSoftirq {
    /// The agent that read it.
    pub host: HostId,
    /// Number of the CPU.
    pub cpu: u32,
    /// Share of its time that it was busy.
    pub busy_share: f64,
    /// Share of its time in packet handling.
    pub softirq_share: f64,
    /// Share of the time that the busiest CPU was busy without pods. `None` where nobody read it.
    pub baseline_busy_share: Option<f64>,
}

/// CPU time of both nodes per KiB, or per transaction where there are requests.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DearerPath {
    /// With pods, ns.
    pub cpu_ns: f64,
    /// Without, ns.
    pub baseline_cpu_ns: f64,
}

/// Time of a transaction, median over flows.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowerPath {
    /// With pods, ns.
    pub transaction_ns: f64,
    /// Without, ns.
    pub baseline_transaction_ns: f64,
}

/// Nodes whose connection tracking refuses connections with pods, and not without.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PodConntrack {
    /// The node that refuses most first.
    pub nodes: Vec<RefusingNode>,
}

/// What a node's connection tracking refuses.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RefusingNode {
    /// The agent in the node's own network, where pods' connections are tracked.
    pub host: HostId,
    /// Packets dropped a second with pods.
    pub packets_per_sec: f64,
    /// The same without.
    pub baseline_packets_per_sec: f64,
    /// In all, and why.
    pub refused: ConntrackRefusals,
}

/// A path through a Service against the same pods without it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ServicePath {
    /// The stage of the same pods without it.
    pub direct_stage: String,
    /// The path's figure over theirs, both over their baseline.
    pub ratio: f64,
}

/// A node's NIC that drops more with pods than without, or whose link is full with less payload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NodeNic {
    /// The agent in the node's own network.
    pub host: HostId,
    /// The NIC.
    pub interface: String,
    /// What it carries with pods in the busier direction, bits per second.
    pub bits_per_sec: f64,
    /// Drops and errors a second with pods.
    pub drops_per_sec: f64,
    /// The same without.
    pub baseline_drops_per_sec: f64,
    /// It drops more than without pods. Otherwise its link is full.
    pub is_dropping: bool,
}

/// A difference that nothing explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RestOfDifference {
    /// Other causes explain a part of it.
    pub is_partly_explained: bool,
}
