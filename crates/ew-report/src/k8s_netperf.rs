//! Runs with pods in the words of k8s-netperf (<https://github.com/cloud-bulldozer/k8s-netperf>):
//! its result tables, and the field names of its JSON documents, so that dashboards keep working.
//!
//! One row per stage of pods. A throughput is the median over flows of one flow's rate, where
//! k8s-netperf has the mean over samples of its single pair. What was not measured is null or "-",
//! where k8s-netperf writes 0.

mod row;
mod tables;

use crate::error::ReportError;
use ew_model::analysis::{CpuAnalysis, CpuSplitShares, Estimate, StageAnalysis};
use ew_model::pods::{PodPath, parse_agent_name};
use ew_model::scenario::{Pattern, Roles, Test};
use ew_model::{Analysis, Tool, WorkloadKind};
use row::{NodeCpu, PodCpu, Row};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Result tables.
pub(crate) fn table(analysis: &Analysis) -> Result<String, ReportError> {
    Ok(tables::render(&rows(analysis)?))
}

/// A list of documents, one per row.
pub(crate) fn json(analysis: &Analysis) -> Result<String, ReportError> {
    let metadata = metadata(analysis);
    let documents: Vec<Document<'_>> = rows(analysis)?
        .into_iter()
        .map(|row| Document {
            uuid: &analysis.run.id,
            timestamp: timestamp(analysis.run.started_unix_ns),
            metadata: &metadata,
            row,
        })
        .collect();
    let mut text = serde_json::to_string_pretty(&documents)?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
struct Document<'a> {
    uuid: &'a str,
    timestamp: Option<String>,
    metadata: &'a Value,
    #[serde(flatten)]
    row: Row,
}

/// # Errors
/// [`ReportError::NoPods`] where no stage is of pods.
fn rows(analysis: &Analysis) -> Result<Vec<Row>, ReportError> {
    let rows: Vec<Row> = analysis
        .stages
        .iter()
        .enumerate()
        .filter_map(|(position, stage)| row(analysis, position, stage))
        .collect();
    match rows.is_empty() {
        true => Err(ReportError::NoPods(analysis.run.scenario.name.clone())),
        false => Ok(rows),
    }
}

fn row(analysis: &Analysis, position: usize, stage: &StageAnalysis) -> Option<Row> {
    let test_name = stage.sweep.as_ref().unwrap_or(&stage.name);
    let tests = &analysis.run.scenario.tests;
    let test = tests.iter().find(|test| test.name == *test_name)?;
    let Pattern::Pods { path } = test.pattern else {
        return None;
    };
    let measured_flows = f64::from(stage.flows.saturating_sub(stage.missing));
    let throughput = throughput(analysis, stage);
    let scale = if stage.kind.is_bulk() { 1e6 } else { 1.0 };
    let is_host = matches!(path, PodPath::HostNetwork | PodPath::HostOtherZone);
    let p99 = stage.latency.as_ref().and_then(|l| l.times.p99_ns);
    let retransmits = stage.retransmits.filter(|_| measured_flows > 0.0);
    let loss = stage.datagrams.and_then(|datagrams| datagrams.loss);
    let workload = &test.workload;
    Some(Row {
        host_network: is_host,
        driver: driver(workload.tool),
        parallelism: workload.streams,
        profile: profile(stage.kind),
        duration: seconds(test.duration_ns),
        service: path.service().is_some(),
        local: path == PodPath::SameNode,
        across_az: path.crosses_zones(),
        samples: if test.auto.is_some() {
            stage.rounds
        } else {
            test.samples
        },
        message_size: message_bytes(analysis, position, stage, test),
        burst: workload.outstanding.saturating_sub(1),
        throughput: throughput.map(|t| t.value / scale),
        interval: throughput.and_then(|t| Some((t.low? / scale, t.high? / scale))),
        latency: p99.map(|ns| ns as f64 / 1e3),
        tput_metric: if stage.kind.is_bulk() { "Mb/s" } else { "OP/s" },
        ltcy_metric: "usec",
        tcp_retransmits: retransmits.map(|segments| segments as f64 / measured_flows),
        udp_loss_percent: loss.map(|share| share * 100.0),
        server_cpu: stage.receiver_cpu.map(|cpu| node_cpu(&cpu)),
        server_pods: pods(stage.receiver_cpu, "server", is_host),
        client_cpu: stage.sender_cpu.map(|cpu| node_cpu(&cpu)),
        client_pods: pods(stage.sender_cpu, "client", is_host),
        server_node_labels: labels(analysis, |roles| &roles.servers),
        client_node_labels: labels(analysis, |roles| &roles.clients),
    })
}

/// Of one flow, in bits or transactions per second. Comparisons know the interval; a stage that is
/// compared with nothing has its own figures.
fn throughput(analysis: &Analysis, stage: &StageAnalysis) -> Option<Estimate> {
    let compared = analysis.pods.iter().find_map(|comparison| {
        if comparison.stage == stage.name {
            return Some(comparison.figure);
        }
        (comparison.baseline_stage == stage.name).then_some(comparison.baseline)
    });
    if compared.is_some() || stage.kind.is_bulk() {
        return compared.or(stage.flow_bits_per_sec);
    }
    let pairs = stage.pairs.iter();
    let mut rates: Vec<f64> = pairs.filter_map(|pair| pair.transactions_per_sec).collect();
    rates.sort_by(f64::total_cmp);
    let value = *rates.get(rates.len() / 2)?;
    let samples = stage.pairs.iter().map(|pair| pair.samples).sum();
    Some(Estimate {
        value,
        low: None,
        high: None,
        samples,
    })
}

/// The stages of a sweep come in the order of their sizes.
fn message_bytes(analysis: &Analysis, position: usize, stage: &StageAnalysis, test: &Test) -> u64 {
    let before = &analysis.stages[..position];
    let sizes_before = before.iter().filter(|other| other.sweep == stage.sweep);
    let of_sweep = stage.sweep.as_ref();
    of_sweep
        .and_then(|_| test.sizes.get(sizes_before.count()).copied())
        .unwrap_or(test.workload.message_bytes)
}

fn seconds(ns: u64) -> Value {
    const NS_PER_SECOND: u64 = 1_000_000_000;
    match ns % NS_PER_SECOND {
        0 => json!(ns / NS_PER_SECOND),
        _ => json!(ns as f64 / NS_PER_SECOND as f64),
    }
}

fn profile(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::TcpStream => "TCP_STREAM",
        WorkloadKind::UdpStream => "UDP_STREAM",
        WorkloadKind::TcpRr => "TCP_RR",
        WorkloadKind::UdpRr => "UDP_RR",
        WorkloadKind::TcpCrr => "TCP_CRR",
        // Without a counterpart there.
        WorkloadKind::Ping => "PING_RR",
        WorkloadKind::Trace => "TRACE",
        WorkloadKind::FlowSizes => "FLOW_SIZES",
    }
}

fn driver(tool: Tool) -> &'static str {
    match tool {
        Tool::Engine => "eastwest",
        other => other.name(),
    }
}

fn node_cpu(cpu: &CpuAnalysis) -> NodeCpu {
    let part = |of: fn(&CpuSplitShares) -> f64| cpu.split.as_ref().map(|split| of(split) * 100.0);
    let not_idle = cpu.busy_share + cpu.steal_share + cpu.split.map_or(0.0, |split| split.iowait);
    NodeCpu {
        idle_cpu: (1.0 - not_idle).max(0.0) * 100.0,
        busy_cpu: cpu.busy_share * 100.0,
        user_cpu: part(|split| split.user),
        system_cpu: part(|split| split.system),
        nice_cpu: part(|split| split.nice),
        io_cpu: part(|split| split.iowait),
        irq_cpu: part(|split| split.irq),
        soft_cpu: cpu.softirq_share * 100.0,
        steal_cpu: cpu.steal_share * 100.0,
    }
}

/// What the nodes with a role have in common. Without roles every node is client and server.
fn labels(analysis: &Analysis, side: impl Fn(&Roles) -> &Vec<String>) -> BTreeMap<String, String> {
    let roles = analysis.run.scenario.roles.as_ref();
    let takes_part = |name: &str| {
        let named = |roles: &Roles| side(roles).iter().any(|n| n.eq_ignore_ascii_case(name));
        roles.is_none_or(named)
    };
    let nodes = analysis.run.node_labels.iter();
    let mut nodes = nodes.filter(|(name, _)| takes_part(name));
    let mut common = match nodes.next() {
        Some((_, labels)) => labels.clone(),
        None => return BTreeMap::new(),
    };
    for (_, labels) in nodes {
        common.retain(|key, value| labels.get(key) == Some(value));
    }
    common
}

/// Agents in the nodes' network are no pods there, either.
fn pods(cpu: Option<CpuAnalysis>, name: &'static str, is_host: bool) -> Vec<PodCpu> {
    let pod = |cpu: CpuAnalysis| PodCpu {
        pod_name: name,
        cpu_usage: cpu.engine_cpus * 100.0,
    };
    cpu.filter(|_| !is_host).map(pod).into_iter().collect()
}

/// What the nodes have in common: null where they differ, or do not report it.
fn metadata(analysis: &Analysis) -> Value {
    let hosts = &analysis.run.inventory;
    let nodes: Vec<_> = analysis
        .hosts
        .iter()
        .filter(|host| parse_agent_name(hosts.name(host.host)).pod.is_none())
        .collect();
    let kernels = nodes.iter().map(|host| host.kernel.as_deref());
    let mtus = nodes.iter().map(|host| host.interface.as_ref()?.mtu_bytes);
    json!({"kernel": common(kernels), "mtu": common(mtus)})
}

fn common<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    let is_same = |value: Option<T>| value.as_ref() == Some(&first);
    values.all(is_same).then_some(first)
}

fn timestamp(unix_ns: u64) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).ok()?;
    Some(time.to_string())
}
