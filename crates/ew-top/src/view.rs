//! What is shown of a host: rates and shares between two readings. `None` is what the kernel does
//! not report.

use ew_model::telemetry::InterfaceLink;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};

/// One host over one interval. Tables are ordered with the largest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// Wall clock at the interval's end, ns since 1970.
    pub realtime_ns: u64,
    /// Length of the interval.
    pub interval_ns: u64,
    /// How late the reading began against its schedule.
    pub late_ns: u64,
    /// CPU time of the reading at the interval's end, as a share of one core over the interval.
    pub own_cpu_share: f64,
    /// The answer.
    pub verdict: HostVerdict,
    /// CPUs.
    pub cpu: CpuView,
    /// Interfaces.
    pub interfaces: Vec<InterfaceView>,
    /// Queueing disciplines that held packets or dropped some.
    pub qdiscs: Vec<QdiscView>,
    /// Device interrupts that were raised, one per queue of a NIC or disk, the busiest first.
    pub interrupts: Vec<InterruptView>,
    /// TCP and UDP as a whole.
    pub protocols: ProtocolView,
    /// Processes that moved bytes, used CPU or disks.
    pub processes: Vec<ProcessView>,
    /// Other hosts.
    pub remotes: Vec<RemoteView>,
    /// Ports, the service's side of each connection.
    pub ports: Vec<PortView>,
    /// Connections that carried something.
    pub flows: Vec<FlowView>,
    /// Disks.
    pub disks: Vec<DiskView>,
    /// Memory.
    pub memory: MemoryView,
    /// What could not be seen, and why.
    pub unseen: Vec<String>,
}

/// What limits the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostLimit {
    /// Nothing does.
    #[default]
    None,
    /// The network.
    Network,
    /// The CPUs, or one of them.
    Cpu,
    /// A disk.
    Disk,
    /// Memory.
    Memory,
}

/// The one line on top, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostVerdict {
    /// What limits the host most.
    pub limit: HostLimit,
    /// In plain words, with numbers, who included.
    pub sentence: String,
    /// Who does it.
    pub who: Option<Who>,
    /// The numbers behind it, one each.
    pub evidence: Vec<String>,
    /// Other limits that are met, too, in plain words.
    pub also: Vec<String>,
    /// How far above its bar the limit is: more than 1. 0 where nothing is the limit.
    pub severity: f64,
}

/// Who uses most of what is scarce.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Who {
    /// Process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its part of what is used, 0 to 1. `None` when that is unknown.
    pub share: Option<f64>,
    /// The host it exchanges most with, when the network is scarce.
    pub peer: Option<IpAddr>,
}

/// All CPUs. Shares are of the time of one core, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuView {
    /// Mean share of not being idle.
    pub busy: f64,
    /// Per core.
    pub cores: Vec<CoreView>,
    /// Share of time in which a task waited for a CPU (PSI).
    pub pressure: Option<f64>,
    /// Share of periods in which this control group's quota ran out.
    pub throttled: Option<f64>,
    /// This control group's quota in cores.
    pub quota_cores: Option<f64>,
}

/// One core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CoreView {
    /// Number.
    pub cpu: u32,
    /// Not idle and not waiting for disks.
    pub busy: f64,
    /// User and nice, guests included.
    pub user: f64,
    /// Part of it that was nice.
    pub nice: f64,
    /// Part of it that ran guests. `None` where the kernel does not report.
    pub guest: Option<f64>,
    /// Kernel on behalf of processes.
    pub system: f64,
    /// Interrupts.
    pub irq: f64,
    /// Deferred interrupt work: above all packets.
    pub softirq: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle while a disk was waited for.
    pub iowait: f64,
    /// Packets processed per second.
    pub packets_per_sec: Option<f64>,
    /// Packets dropped because the backlog was full, per second.
    pub softnet_drops_per_sec: Option<f64>,
    /// Receive loops that ended with work left, per second.
    pub squeezed_per_sec: Option<f64>,
    /// Current frequency. `None` where the kernel does not report, and for cores that worked less
    /// than others.
    pub frequency_hz: Option<u64>,
    /// Max frequency.
    pub max_frequency_hz: Option<u64>,
    /// NUMA node.
    pub numa_node: Option<u32>,
}

/// One interface. Bytes are of whole frames without preamble and checksum.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterfaceView {
    /// Name.
    pub name: String,
    /// Received.
    pub rx_bits_per_sec: f64,
    /// Sent.
    pub tx_bits_per_sec: f64,
    /// Received.
    pub rx_packets_per_sec: f64,
    /// Sent.
    pub tx_packets_per_sec: f64,
    /// Drops and errors of receiving.
    pub rx_losses_per_sec: f64,
    /// Drops and errors of sending.
    pub tx_losses_per_sec: f64,
    /// Times the receive ring overran, where the driver counts it apart from drops.
    pub rx_overruns_per_sec: Option<f64>,
    /// What changes seldom: speed, duplex, driver, rings, offloads. In JSON its fields are
    /// flattened into the interface's.
    #[serde(flatten)]
    pub link: InterfaceLink,
    /// What a plain shaper (tbf) lets it send. `None` without one.
    pub shaped_bits_per_sec: Option<f64>,
    /// The fuller direction over the link speed; both together when the link is half duplex.
    pub utilisation: Option<f64>,
    /// Counters of the driver that moved: (name, per second).
    pub driver_counters: Vec<(String, f64)>,
}

/// One queueing discipline that held or dropped packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QdiscView {
    /// Interface.
    pub interface: String,
    /// Kind.
    pub kind: String,
    /// Bytes waiting now.
    pub backlog_bytes: u32,
    /// Packets waited at the interval's begin and at its end.
    pub standing: bool,
    /// Dropped packets.
    pub drops_per_sec: f64,
    /// Times its limit was met.
    pub overlimits_per_sec: f64,
}

/// One device interrupt.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterruptView {
    /// Its number.
    pub interrupt: u32,
    /// What raises it, for example `eth0-TxRx-3`.
    pub name: String,
    /// Times raised, on all CPUs.
    pub per_sec: f64,
    /// The same by CPU, the busiest first: (CPU, per second).
    pub cpus: Vec<(u32, f64)>,
}

/// TCP and UDP.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProtocolView {
    /// Connections now.
    pub connections: Option<u64>,
    /// Connections opened, both directions.
    pub opens_per_sec: Option<f64>,
    /// Segments sent, without retransmissions.
    pub segments_out_per_sec: Option<f64>,
    /// Segments retransmitted.
    pub retransmits_per_sec: Option<f64>,
    /// Segments retransmitted over all sent.
    pub retransmit_share: Option<f64>,
    /// Connection requests dropped by listeners.
    pub listen_drops_per_sec: Option<f64>,
    /// Segments dropped in full receive buffers and backlogs.
    pub receive_drops_per_sec: Option<f64>,
    /// Datagrams received.
    pub udp_in_per_sec: Option<f64>,
    /// Datagrams sent.
    pub udp_out_per_sec: Option<f64>,
    /// Datagrams dropped in full buffers.
    pub udp_buffer_errors_per_sec: Option<f64>,
}

/// One process. Network rates are TCP payload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessView {
    /// Process; `None` gathers the connections whose owner was not seen.
    pub pid: Option<u32>,
    /// Name.
    pub name: String,
    /// TCP payload received.
    pub rx_bits_per_sec: f64,
    /// TCP payload sent and acknowledged.
    pub tx_bits_per_sec: f64,
    /// Connections, those that ended in the interval included.
    pub connections: u32,
    /// CPU time over time: 1 is one core.
    pub cpu_cores: f64,
    /// Read from disks. `None` when not shown to this user.
    pub read_bytes_per_sec: Option<f64>,
    /// Written to disks.
    pub written_bytes_per_sec: Option<f64>,
    /// Threads.
    pub threads: u32,
    /// Resident memory in pages.
    pub resident_pages: u64,
    /// UDP sockets it holds. The kernel counts no bytes of them.
    pub udp_sockets: u32,
    /// Datagrams its UDP sockets dropped.
    pub udp_drops_per_sec: f64,
}

/// One other host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemoteView {
    /// Its address.
    pub address: IpAddr,
    /// TCP payload received from it.
    pub rx_bits_per_sec: f64,
    /// TCP payload sent to it.
    pub tx_bits_per_sec: f64,
    /// Connections.
    pub connections: u32,
    /// Segments sent to it again.
    pub retransmits_per_sec: f64,
    /// Min smoothed round trip of its connections.
    pub rtt_us: Option<u32>,
}

/// One service port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortView {
    /// Number.
    pub port: u16,
    /// Whether it is listened on here, or used elsewhere.
    pub served_here: bool,
    /// TCP payload received.
    pub rx_bits_per_sec: f64,
    /// TCP payload sent.
    pub tx_bits_per_sec: f64,
    /// Connections.
    pub connections: u32,
}

/// What kept a sending connection from being faster, by the kernel's own clocks in TCP_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The program had nothing to send for most of the interval.
    Application,
    /// The receiver's window was closed for most of the busy time.
    ReceiverWindow,
    /// The send buffer was full for most of the busy time.
    SendBuffer,
    /// The congestion window, that is the path.
    Path,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowView {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Process. `None` when not seen.
    pub pid: Option<u32>,
    /// Its name.
    pub process: String,
    /// Payload received.
    pub rx_bits_per_sec: f64,
    /// Payload sent and acknowledged.
    pub tx_bits_per_sec: f64,
    /// Segments retransmitted.
    pub retransmits_per_sec: f64,
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Whether it ended in the interval.
    pub closed: bool,
    /// What limits it, when it sends.
    pub limited_by: Option<LimitedBy>,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DiskView {
    /// Name.
    pub name: String,
    /// Bytes read.
    pub read_bytes_per_sec: f64,
    /// Bytes written.
    pub written_bytes_per_sec: f64,
    /// Reads completed.
    pub reads_per_sec: f64,
    /// Writes completed.
    pub writes_per_sec: f64,
    /// Share of time with a request in flight.
    pub utilisation: f64,
    /// Mean time of a request. `None` when none completed.
    pub await_ms: Option<f64>,
    /// Mean requests in flight.
    pub queue: f64,
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryView {
    /// All.
    pub total_bytes: Option<u64>,
    /// Free or easily freed.
    pub available_bytes: Option<u64>,
    /// Pages read from and written to swap.
    pub swapped_pages_per_sec: Option<f64>,
    /// Share of time in which a task waited for memory (PSI).
    pub pressure: Option<f64>,
    /// Share of time in which a task waited for disks (PSI).
    pub disk_pressure: Option<f64>,
    /// This control group's memory over its limit.
    pub cgroup_share: Option<f64>,
}

impl View {
    /// The core that is busiest.
    #[must_use]
    pub fn busiest_core(&self) -> Option<&CoreView> {
        let cores = self.cpu.cores.iter();
        cores.max_by(|a, b| a.busy.total_cmp(&b.busy))
    }

    /// Interfaces with a carrier; loopback is no network.
    pub(crate) fn links(&self) -> impl Iterator<Item = &InterfaceView> {
        let interfaces = self.interfaces.iter();
        interfaces.filter(|i| !i.link.loopback && i.link.carrier)
    }
}
