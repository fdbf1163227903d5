//! One row of k8s-netperf's results, with the field names of its documents.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One stage of pods.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) host_network: bool,
    pub(super) driver: &'static str,
    pub(super) parallelism: u32,
    pub(super) profile: &'static str,
    /// Seconds, an integer where there is no fraction.
    pub(super) duration: Value,
    pub(super) service: bool,
    pub(super) local: bool,
    #[serde(rename = "acrossAZ")]
    pub(super) across_az: bool,
    pub(super) samples: u32,
    pub(super) message_size: u64,
    pub(super) burst: u32,
    /// Of one flow: `tput_metric`.
    pub(super) throughput: Option<f64>,
    /// 95% interval of the throughput.
    #[serde(skip)]
    pub(super) interval: Option<(f64, f64)>,
    /// 99th percentile of a transaction: `ltcy_metric`.
    pub(super) latency: Option<f64>,
    pub(super) tput_metric: &'static str,
    pub(super) ltcy_metric: &'static str,
    /// Of one flow.
    pub(super) tcp_retransmits: Option<f64>,
    pub(super) udp_loss_percent: Option<f64>,
    #[serde(rename = "serverCPU")]
    pub(super) server_cpu: Option<NodeCpu>,
    pub(super) server_pods: Vec<PodCpu>,
    #[serde(rename = "clientCPU")]
    pub(super) client_cpu: Option<NodeCpu>,
    pub(super) client_pods: Vec<PodCpu>,
    /// Those that all nodes of that end have.
    pub(super) server_node_labels: BTreeMap<String, String>,
    pub(super) client_node_labels: BTreeMap<String, String>,
}

/// Percent of all CPUs of a node. `busyCPU` is no field of k8s-netperf: it is there without the
/// split, too.
#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the names are those of k8s-netperf's documents"
)]
pub(super) struct NodeCpu {
    #[serde(rename = "idleCPU")]
    pub(super) idle_cpu: f64,
    #[serde(rename = "busyCPU")]
    pub(super) busy_cpu: f64,
    #[serde(rename = "userCPU")]
    pub(super) user_cpu: Option<f64>,
    #[serde(rename = "systemCPU")]
    pub(super) system_cpu: Option<f64>,
    #[serde(rename = "niceCPU")]
    pub(super) nice_cpu: Option<f64>,
    #[serde(rename = "ioCPU")]
    pub(super) io_cpu: Option<f64>,
    #[serde(rename = "irqCPU")]
    pub(super) irq_cpu: Option<f64>,
    #[serde(rename = "softCPU")]
    pub(super) soft_cpu: f64,
    #[serde(rename = "stealCPU")]
    pub(super) steal_cpu: f64,
}

/// The agents of one end: percent of one CPU.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodCpu {
    pub(super) pod_name: &'static str,
    pub(super) cpu_usage: f64,
}
