//! The families of hosts: one line each.

use super::busiest::disks_of;
use super::host::{HostSeries, State};
use super::page::{Family, Label, Page, Read};
use ew_model::HostId;
use ew_model::facts::{CpuCounters, InterfaceCounters};
use ew_model::telemetry::{CauseCounters, DiskCounters, SoftnetCounters, StallCounters};
use std::collections::BTreeMap;

/// Clock ticks of `/proc/stat` per second: USER_HZ, a constant of the kernel's interface (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// All families of all hosts.
pub(super) fn render(hosts: &BTreeMap<HostId, HostSeries>, page: &mut Page) {
    for (family, value) in HOST {
        one_each(hosts, page, family, value);
    }
    for (family, value) in NETWORK {
        let values = hosts.values().filter_map(|host| {
            let device = host.device.as_deref().unwrap_or_default();
            let labels = labelled(host, "device", device);
            Some((labels, value(host.interface()?) as f64))
        });
        page.family(family, values);
    }
    for (family, value) in CAUSES {
        one_each(hosts, page, family, |host| value(host.causes()?));
    }
    for (family, value) in DISKS {
        one_each(hosts, page, family, |host| over_disks(host, *value));
    }
    for (family, label, values) in BY_WORD {
        let values = hosts.values().flat_map(|host| {
            let values = values(host).into_iter();
            values.map(|(word, value)| (labelled(host, label, word), value))
        });
        page.family(family, values);
    }
}

/// A family with one figure of each host that reports it.
fn one_each(
    hosts: &BTreeMap<HostId, HostSeries>,
    page: &mut Page,
    family: &Family,
    value: impl Fn(&HostSeries) -> Option<f64>,
) {
    let values = hosts.values();
    page.family(family, values.filter_map(|h| Some((labels(h), value(h)?))));
}

fn labels(host: &HostSeries) -> Vec<Label<'_>> {
    vec![("host", &host.name), ("rack", &host.rack)]
}

fn labelled<'a>(host: &'a HostSeries, label: &'static str, value: &'a str) -> Vec<Label<'a>> {
    let mut labels = labels(host);
    labels.push((label, value));
    labels
}

/// The host and its agent.
const HOST: &[Read<HostSeries, Option<f64>>] = &[
    (
        Family::gauge(
            "eastwest_host_up",
            "1 while the host's agent answers, 0 when it does not, or not yet.",
        ),
        |host| Some(f64::from(u8::from(host.state == State::Up))),
    ),
    (
        Family::gauge(
            "eastwest_agent_launch_seconds",
            "From the launch to the agent's first word.",
        ),
        |host| Some(seconds(host.launch_ns?)),
    ),
    (
        Family::gauge(
            "eastwest_agent_clock_error_seconds",
            "The agent's clock is known within this.",
        ),
        |host| Some(seconds(host.clock_error_ns?)),
    ),
    (
        Family::gauge(
            "eastwest_agent_last_sample_timestamp_seconds",
            "When the host's last sample came, since 1970. Samples wait until a round has ended.",
        ),
        |host| Some(seconds(host.sampled_unix_ns?)),
    ),
    (
        Family::gauge(
            "eastwest_agent_sample_lateness_seconds",
            "How late the last sample was read against its schedule.",
        ),
        |host| Some(seconds(host.sample.as_ref()?.late_ns)),
    ),
    (
        Family::counter(
            "eastwest_agent_samples_total",
            "Samples of the host's counters.",
        ),
        |host| host.sample.as_ref().map(|_| host.samples as f64),
    ),
    (
        Family::counter(
            "eastwest_agent_sampling_cpu_seconds_total",
            "CPU time that reading the host's counters took.",
        ),
        |host| {
            host.sample.as_ref()?.cost?;
            Some(seconds(host.sampling_cpu_ns))
        },
    ),
    (
        Family::counter(
            "eastwest_agent_rejected_connections_total",
            "Connections that the host's data port refused: no token, garbage, silence.",
        ),
        |host| Some(host.rejected_connections? as f64),
    ),
    (
        Family::gauge("eastwest_host_cpus", "CPUs that are online."),
        |host| Some(host.sample.as_ref()?.cpu_count() as f64),
    ),
    (
        Family::gauge(
            "eastwest_host_cpu_busiest_core_ratio",
            "Share of time the busiest core was busy in the last sampled second.",
        ),
        |host| host.busiest.core_ratio,
    ),
    (
        Family::counter(
            "eastwest_host_cpu_busiest_core_seconds_total",
            "Busy time of the busiest core of each sampled second; its rate is the busiest core's share.",
        ),
        |host| host.busiest.core_ratio.map(|_| host.busiest.core_seconds),
    ),
    (
        Family::counter(
            "eastwest_host_disk_busiest_seconds_total",
            "Busy time of the busiest disk of each sampled second; its rate is the busiest disk's share.",
        ),
        |host| {
            let is_told = !disks_of(host.sample.as_ref()?).is_empty();
            is_told.then_some(host.busiest.disk_seconds)
        },
    ),
];

/// `/proc/net/dev` of the interface that carries the host's address.
const NETWORK: &[Read<InterfaceCounters, u64>] = &[
    (
        Family::counter(
            "eastwest_host_network_receive_bytes_total",
            "Bytes received by the interface with the host's address, headers included.",
        ),
        |nic| nic.rx_bytes,
    ),
    (
        Family::counter(
            "eastwest_host_network_transmit_bytes_total",
            "Bytes sent by the interface with the host's address, headers included.",
        ),
        |nic| nic.tx_bytes,
    ),
    (
        Family::counter(
            "eastwest_host_network_receive_packets_total",
            "Packets received.",
        ),
        |nic| nic.rx_packets,
    ),
    (
        Family::counter(
            "eastwest_host_network_transmit_packets_total",
            "Packets sent.",
        ),
        |nic| nic.tx_packets,
    ),
    (
        Family::counter(
            "eastwest_host_network_receive_errors_total",
            "Packets that came damaged or could not be received.",
        ),
        |nic| nic.rx_errors,
    ),
    (
        Family::counter(
            "eastwest_host_network_transmit_errors_total",
            "Packets that could not be sent.",
        ),
        |nic| nic.tx_errors,
    ),
    (
        Family::counter(
            "eastwest_host_network_receive_drops_total",
            "Packets dropped on receiving.",
        ),
        |nic| nic.rx_drops,
    ),
    (
        Family::counter(
            "eastwest_host_network_transmit_drops_total",
            "Packets dropped on sending.",
        ),
        |nic| nic.tx_drops,
    ),
];

/// Protocols, packet processing, memory and the control group.
const CAUSES: &[Read<CauseCounters, Option<f64>>] = &[
    (
        Family::gauge(
            "eastwest_host_tcp_connections",
            "TCP connections now (Tcp CurrEstab).",
        ),
        |causes| count(causes.protocols.tcp_established),
    ),
    (
        Family::counter(
            "eastwest_host_tcp_transmit_segments_total",
            "TCP segments sent, retransmissions not counted (Tcp OutSegs).",
        ),
        |causes| count(causes.protocols.tcp_out_segments),
    ),
    (
        Family::counter(
            "eastwest_host_tcp_retransmitted_segments_total",
            "TCP segments retransmitted (Tcp RetransSegs).",
        ),
        |causes| count(causes.protocols.tcp_retransmitted_segments),
    ),
    (
        Family::counter(
            "eastwest_host_tcp_listen_drops_total",
            "Connection requests dropped (TcpExt ListenDrops).",
        ),
        |causes| count(causes.protocols.listen_drops),
    ),
    (
        Family::counter(
            "eastwest_host_udp_receive_buffer_errors_total",
            "Datagrams dropped because a receive buffer was full (Udp RcvbufErrors).",
        ),
        |causes| count(causes.protocols.udp_receive_buffer_errors),
    ),
    (
        Family::counter(
            "eastwest_host_softnet_drops_total",
            "Packets dropped because a CPU's backlog was full, all CPUs (softnet_stat).",
        ),
        |causes| over_cpus(causes, |softnet| softnet.dropped),
    ),
    (
        Family::counter(
            "eastwest_host_softnet_squeezes_total",
            "Times packet processing stopped with work left, all CPUs (softnet_stat).",
        ),
        |causes| over_cpus(causes, |softnet| softnet.squeezed),
    ),
    (
        Family::gauge("eastwest_host_memory_size_bytes", "Memory of the host."),
        |causes| count(causes.memory.total_bytes),
    ),
    (
        Family::gauge(
            "eastwest_host_memory_available_bytes",
            "Memory that programs can have without swapping.",
        ),
        |causes| count(causes.memory.available_bytes),
    ),
    (
        Family::counter(
            "eastwest_agent_cgroup_throttled_seconds_total",
            "Time in which the CPU quota of the agent's control group held tasks back.",
        ),
        |causes| Some(causes.cgroup.cpu_throttled_us? as f64 / 1e6),
    ),
    (
        Family::counter(
            "eastwest_agent_cgroup_periods_total",
            "Periods of the CPU quota with anything to run.",
        ),
        |causes| count(causes.cgroup.cpu_periods),
    ),
    (
        Family::counter(
            "eastwest_agent_cgroup_throttled_periods_total",
            "Periods in which the CPU quota ran out.",
        ),
        |causes| count(causes.cgroup.cpu_throttled_periods),
    ),
];

/// Summed over the disks that are not made of other disks.
const DISKS: &[Read<DiskCounters, f64>] = &[
    (
        Family::counter(
            "eastwest_host_disk_read_bytes_total",
            "Bytes read from all disks.",
        ),
        |disk| disk.read_bytes as f64,
    ),
    (
        Family::counter(
            "eastwest_host_disk_written_bytes_total",
            "Bytes written to all disks.",
        ),
        |disk| disk.written_bytes as f64,
    ),
    (
        Family::counter(
            "eastwest_host_disk_reads_completed_total",
            "Reads completed.",
        ),
        |disk| disk.reads as f64,
    ),
    (
        Family::counter(
            "eastwest_host_disk_writes_completed_total",
            "Writes completed.",
        ),
        |disk| disk.writes as f64,
    ),
    (
        Family::counter(
            "eastwest_host_disk_read_time_seconds_total",
            "Time of all reads together; over the reads completed it is the time of one.",
        ),
        |disk| disk.read_ms as f64 / 1e3,
    ),
    (
        Family::counter(
            "eastwest_host_disk_write_time_seconds_total",
            "Time of all writes together; over the writes completed it is the time of one.",
        ),
        |disk| disk.write_ms as f64 / 1e3,
    ),
    (
        Family::counter(
            "eastwest_host_disk_io_time_seconds_total",
            "Time with a request in flight, summed over the disks.",
        ),
        |disk| disk.busy_ms as f64 / 1e3,
    ),
    (
        Family::counter(
            "eastwest_host_disk_io_time_weighted_seconds_total",
            "Time times requests in flight; its rate is the mean queue.",
        ),
        |disk| disk.weighted_ms as f64 / 1e3,
    ),
    (
        Family::gauge("eastwest_host_disk_io_now", "Requests in flight now."),
        |disk| disk.in_flight as f64,
    ),
];

/// A label of its own, and a host's values by its words.
type ByWord = (
    Family,
    &'static str,
    fn(&HostSeries) -> Vec<(&'static str, f64)>,
);

const BY_WORD: &[ByWord] = &[
    (
        Family::counter(
            "eastwest_host_cpu_seconds_total",
            "Time of all CPUs by use.",
        ),
        "mode",
        cpu_seconds,
    ),
    (
        Family::counter(
            "eastwest_host_pressure_waiting_seconds_total",
            "Time in which a task waited for the resource (pressure stall information, `some`).",
        ),
        "resource",
        pressure,
    ),
    (
        Family::gauge(
            "eastwest_host_goodput_bytes_per_second",
            "Payload rate of the host's flows in its last finished round, by the receivers' count.",
        ),
        "direction",
        |host| directions(host, |flows| Some(flows.bits_per_sec? / 8.0)),
    ),
    (
        Family::counter(
            "eastwest_host_flow_payload_bytes_total",
            "Payload of the host's measured flows inside their windows, by the receivers' count.",
        ),
        "direction",
        |host| directions(host, |flows| Some(flows.bytes as f64)),
    ),
    (
        Family::counter(
            "eastwest_host_flow_window_seconds_total",
            "Length of the windows in which the host had measured flows.",
        ),
        "direction",
        |host| directions(host, |flows| Some(seconds(flows.window_ns))),
    ),
    (
        Family::counter(
            "eastwest_host_flow_retransmitted_segments_total",
            "Segments of the host's measured flows that were retransmitted inside their windows.",
        ),
        "direction",
        |host| directions(host, |flows| Some(flows.retransmits as f64)),
    ),
];

type Ticks = fn(&CpuCounters) -> Option<u64>;

fn cpu_seconds(host: &HostSeries) -> Vec<(&'static str, f64)> {
    const MODES: [(&str, Ticks); 8] = [
        ("user", |cpu| Some(cpu.user_ticks)),
        ("nice", |cpu| Some(cpu.nice_ticks)),
        ("system", |cpu| Some(cpu.system_ticks)),
        ("idle", |cpu| Some(cpu.idle_ticks)),
        ("iowait", |cpu| cpu.iowait_ticks),
        ("irq", |cpu| cpu.irq_ticks),
        ("softirq", |cpu| cpu.softirq_ticks),
        ("steal", |cpu| cpu.steal_ticks),
    ];
    let sample = host.sample.as_ref();
    let of_mode = |(mode, ticks): (&'static str, Ticks)| {
        let ticks = sample?.over_cpus(ticks)?;
        Some((mode, ticks as f64 / TICKS_PER_SECOND))
    };
    MODES.into_iter().filter_map(of_mode).collect()
}

fn pressure(host: &HostSeries) -> Vec<(&'static str, f64)> {
    let Some(pressure) = host.causes().map(|causes| &causes.pressure) else {
        return Vec::new();
    };
    let waiting = |stall: Option<StallCounters>| stall.map(|stall| stall.some_us as f64 / 1e6);
    let by_resource = [
        ("cpu", waiting(pressure.cpu)),
        ("io", waiting(pressure.io)),
        ("memory", waiting(pressure.memory)),
    ];
    reported(by_resource)
}

fn directions(
    host: &HostSeries,
    value: fn(&super::host::Flows) -> Option<f64>,
) -> Vec<(&'static str, f64)> {
    reported([("tx", value(&host.sent)), ("rx", value(&host.received))])
}

fn reported<const N: usize>(values: [(&'static str, Option<f64>); N]) -> Vec<(&'static str, f64)> {
    let known = values.into_iter();
    known.filter_map(|(word, v)| Some((word, v?))).collect()
}

fn over_disks(host: &HostSeries, value: fn(&DiskCounters) -> f64) -> Option<f64> {
    let disks = disks_of(host.sample.as_ref()?);
    let own = disks.iter().filter(|disk| !disk.is_made_of_others());
    let values: Vec<f64> = own.map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

fn over_cpus(causes: &CauseCounters, value: fn(&SoftnetCounters) -> u32) -> Option<f64> {
    causes.over_softnet(value).map(|sum| sum as f64)
}

fn count(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
