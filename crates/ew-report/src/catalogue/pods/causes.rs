//! Why a path is lower than its baseline: as the sentence has it, and the counters behind it.

use crate::catalogue::{conntrack, proof};
use ew_model::finding::Evidence;
use ew_model::pods::{
    DearerPath, NodeNic, PacketCost, PodCause, PodCauseFacts, PodFigures, RefusingNode,
    SaturatedSoftirq, ServicePath, SlowerPath, SmallerPackets, ThrottledPod, TunnelledPackets,
    parse_agent_name,
};
use ew_model::units::format_bits_per_sec;
use ew_model::{HostId, Inventory};

/// As the sentence has it.
pub(super) fn words(cause: &PodCause, path: &PodFigures, names: &Inventory) -> String {
    match &cause.facts {
        PodCauseFacts::Encapsulation(found) => {
            let tunnel = found.tunnel.name().to_uppercase();
            let packets = smaller(&found.packets, cause.share);
            format!("{tunnel} encapsulation, {packets}")
        }
        PodCauseFacts::Mtu(found) => {
            let packets = smaller(found, cause.share);
            format!("smaller MTU of the pod network, {packets}")
        }
        PodCauseFacts::CpuLimit(found) => throttled(&found.pods, names),
        PodCauseFacts::Softirq(found) => {
            let node = node(found.host, names);
            format!("softirq on CPU {} of {node} saturated", found.cpu)
        }
        PodCauseFacts::DearerPath(found) => dearer(found, path),
        PodCauseFacts::SlowerPath(found) => slower(found),
        PodCauseFacts::Conntrack(found) => refusing(&found.nodes, names),
        PodCauseFacts::ServicePath(found) => format!(
            "Service path (address translation): {} below the same pods without it",
            percent(1.0 - found.ratio)
        ),
        PodCauseFacts::NodeNic(found) => nic(found, names),
        PodCauseFacts::NotDetermined(found) => match found.is_partly_explained {
            true => "the rest is not determined".to_owned(),
            false => "not determined".to_owned(),
        },
    }
}

/// The counters behind it.
pub(super) fn evidence(cause: &PodCause, path: &PodFigures, names: &Inventory) -> Vec<Evidence> {
    match &cause.facts {
        PodCauseFacts::Encapsulation(found) => vec![tunnelled(found)],
        PodCauseFacts::Mtu(found) => vec![packets(found, "")],
        PodCauseFacts::CpuLimit(found) => {
            let pods = found.pods.iter();
            pods.map(|pod| throttled_pod(pod, names)).collect()
        }
        PodCauseFacts::Softirq(found) => vec![busy_cpu(found, path, names)],
        PodCauseFacts::DearerPath(found) => vec![cpu_times(found, path)],
        PodCauseFacts::SlowerPath(found) => vec![transaction_times(found)],
        PodCauseFacts::Conntrack(found) => {
            let nodes = found.nodes.iter();
            nodes
                .map(|refusing| refusing_node(refusing, path, names))
                .collect()
        }
        PodCauseFacts::ServicePath(found) => vec![service(found, path)],
        PodCauseFacts::NodeNic(found) => vec![nic_counters(found, path, names)],
        PodCauseFacts::NotDetermined(_) => Vec::new(),
    }
}

/// The node that an agent is on.
fn node(host: HostId, names: &Inventory) -> &str {
    parse_agent_name(names.name(host)).node
}

/// "MTU 1450 in pods: 3.5% of goodput, all of it".
fn smaller(found: &SmallerPackets, share: Option<f64>) -> String {
    let fragments = match found.pods.packets {
        0 | 1 => String::new(),
        packets => format!(", datagrams in {packets} fragments"),
    };
    let part = match share.filter(|_| !found.is_all) {
        Some(share) => format!("{} of it", percent(share)),
        None => "all of it".to_owned(),
    };
    format!(
        "MTU {} in pods{fragments}: {} of goodput, {part}",
        found.mtu_bytes,
        percent(found.lost_share)
    )
}

fn tunnelled(found: &TunnelledPackets) -> Evidence {
    let carrier = format!("; {} of the nodes carries them", found.interface);
    packets(&found.packets, &carrier)
}

fn packets(found: &SmallerPackets, carrier: &str) -> Evidence {
    let cost = |cost: &PacketCost| {
        format!(
            "{} bytes of payload in {} bytes of frames",
            cost.message_bytes, cost.counted_bytes
        )
    };
    proof(
        format!(
            "between pods {}; between nodes {}{carrier}",
            cost(&found.pods),
            cost(&found.nodes)
        ),
        "flows.parquet: tx_tcp_send_mss_bytes; run.json: facts of the interfaces; hosts.parquet: bytes of the tunnel",
    )
}

fn throttled(pods: &[ThrottledPod], names: &Inventory) -> String {
    let Some(worst) = pods.first() else {
        return "CPU limit".to_owned();
    };
    let others = match pods.len() {
        1 => String::new(),
        pods => format!(" and {} more", pods - 1),
    };
    format!(
        "CPU limit{} throttled pod {}{others} {} of the time",
        limit(worst),
        names.name(worst.host),
        percent(worst.throttled_share)
    )
}

fn limit(pod: &ThrottledPod) -> String {
    let limit = pod.limit_cpus;
    limit.map_or_else(String::new, |cpus| format!(" ({cpus:.2} CPU)"))
}

fn throttled_pod(pod: &ThrottledPod, names: &Inventory) -> Evidence {
    let name = names.name(pod.host);
    match pod.reached {
        Some(reached) => proof(
            format!(
                "pod {name}: used {:.2} CPU{}, and was ready without one {} of the time",
                reached.used_cpus,
                pod.limit_cpus
                    .map_or_else(String::new, |cpus| format!(" of its {cpus:.2}")),
                percent(reached.waited_share)
            ),
            format!(
                "flows.parquet: src or dst = {name}, tx_cpu_engine_ns, rx_cpu_engine_ns, tx_cpu_engine_wait_ns, rx_cpu_engine_wait_ns"
            ),
        ),
        None => proof(
            format!(
                "pod {name}: throttled {} of the time{}",
                percent(pod.throttled_share),
                limit(pod)
            ),
            format!("counters.parquet: host = {name}, source = cgroup, cpu_throttled_us"),
        ),
    }
}

fn busy_cpu(found: &SaturatedSoftirq, path: &PodFigures, names: &Inventory) -> Evidence {
    let without = found.baseline_busy_share;
    proof(
        format!(
            "{}: CPU {} busy {} in `{}`, {} in softirq; busiest CPU in `{}` {}",
            node(found.host, names),
            found.cpu,
            percent(found.busy_share),
            path.stage,
            percent(found.softirq_share),
            path.baseline_stage,
            without.map_or_else(|| "-".to_owned(), percent)
        ),
        format!(
            "hosts.parquet: host = {}, softirq_ticks",
            names.name(found.host)
        ),
    )
}

/// What the CPU time is over.
fn unit(path: &PodFigures) -> &'static str {
    match path.kind.is_bulk() {
        true => "KiB",
        false => "transaction",
    }
}

fn dearer(found: &DearerPath, path: &PodFigures) -> String {
    format!(
        "pod data path (veth, bridge, filters): {:.1}x the CPU time per {}",
        found.cpu_ns / found.baseline_cpu_ns,
        unit(path)
    )
}

fn cpu_times(found: &DearerPath, path: &PodFigures) -> Evidence {
    proof(
        format!(
            "both nodes' CPU time per {}: {:.1} µs in `{}`, {:.1} µs in `{}`",
            unit(path),
            found.cpu_ns / 1e3,
            path.stage,
            found.baseline_cpu_ns / 1e3,
            path.baseline_stage
        ),
        "flows.parquet: tx_cpu_busy_ns, rx_cpu_busy_ns",
    )
}

fn slower(found: &SlowerPath) -> String {
    format!(
        "pod data path (veth, bridge, filters): {:.1} µs more per transaction",
        (found.transaction_ns - found.baseline_transaction_ns) / 1e3
    )
}

fn transaction_times(found: &SlowerPath) -> Evidence {
    proof(
        format!(
            "median {:.1} µs against {:.1} µs",
            found.transaction_ns / 1e3,
            found.baseline_transaction_ns / 1e3
        ),
        "flows.parquet: latency",
    )
}

fn refusing(nodes: &[RefusingNode], names: &Inventory) -> String {
    let Some(worst) = nodes.first() else {
        return "conntrack".to_owned();
    };
    format!(
        "conntrack of {} dropped {:.0} packets of new connections/s ({})",
        names.name(worst.host),
        worst.packets_per_sec,
        conntrack::reason(&worst.refused)
    )
}

fn refusing_node(found: &RefusingNode, path: &PodFigures, names: &Inventory) -> Evidence {
    let name = names.name(found.host);
    proof(
        format!(
            "{name}: conntrack dropped {:.0} packets of new connections/s in `{}`, {:.0}/s in `{}`",
            found.packets_per_sec, path.stage, found.baseline_packets_per_sec, path.baseline_stage
        ),
        format!("counters.parquet: host = {name}, source = conntrack, insert_failed and dropped"),
    )
}

fn service(found: &ServicePath, path: &PodFigures) -> Evidence {
    proof(
        format!(
            "`{}` over `{}`: {:.3}",
            path.stage, found.direct_stage, found.ratio
        ),
        "flows.parquet",
    )
}

fn nic(found: &NodeNic, names: &Inventory) -> String {
    let (name, node) = (&found.interface, node(found.host, names));
    match found.is_dropping {
        true => format!(
            "NIC {name} of {node} dropped {:.0} packets/s ({:.0}/s without pods)",
            found.drops_per_sec, found.baseline_drops_per_sec
        ),
        false => format!(
            "NIC {name} of {node} at line rate ({} with less goodput)",
            format_bits_per_sec(found.bits_per_sec)
        ),
    }
}

fn nic_counters(found: &NodeNic, path: &PodFigures, names: &Inventory) -> Evidence {
    let (name, node) = (&found.interface, node(found.host, names));
    proof(
        format!(
            "{node}: {name} in `{}` {} and {:.0} drops and errors/s, in `{}` {:.0}/s",
            path.stage,
            format_bits_per_sec(found.bits_per_sec),
            found.drops_per_sec,
            path.baseline_stage,
            found.baseline_drops_per_sec
        ),
        format!("hosts.parquet: host = {node}, interface = {name}"),
    )
}

/// Three significant digits at most, as a reader of percentages expects.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value < 10.0 {
        format!("{value:.1}%")
    } else {
        format!("{value:.0}%")
    }
}
