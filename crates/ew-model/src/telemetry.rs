//! Everything one host's kernel reports at one instant: raw counters, as they count since boot or
//! since an object's birth.
//!
//! Nothing here is derived; rates come from two readings. What the kernel does not report, or not
//! to this user, is `None` or skipped, and [`HostReading::unseen`] lists what that was.

use crate::record::TcpInfo;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// One reading of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReading {
    /// Monotonic clock when the reading began.
    pub monotonic_ns: u64,
    /// Wall clock when the reading began, ns since 1970.
    pub realtime_ns: u64,
    /// How late the reading began against its schedule.
    pub late_ns: u64,
    /// What reading cost.
    pub cost: ReadingCost,
    /// One per online CPU, in kernel order.
    pub cpus: Vec<CpuReading>,
    /// Device interrupts that were ever raised, in kernel order: one per queue of a NIC or disk.
    pub interrupts: Vec<InterruptCounters>,
    /// All interfaces of this network namespace, loopback too, in kernel order.
    pub interfaces: Vec<InterfaceReading>,
    /// Queueing disciplines that count.
    pub qdiscs: Vec<QdiscCounters>,
    /// TCP, IP and UDP as a whole.
    pub protocols: ProtocolCounters,
    /// Memory and swap.
    pub memory: MemoryReading,
    /// Whole disks, in kernel order.
    pub disks: Vec<DiskCounters>,
    /// Pressure stall information of the whole host.
    pub pressure: Pressure,
    /// Limits and counters of the control group this process lives in.
    pub cgroup: CgroupReading,
    /// Sockets of this network namespace.
    pub sockets: SocketsReading,
    /// Processes this user may see.
    pub processes: Vec<ProcessCounters>,
    /// What could not be seen, and why, in words for a person.
    pub unseen: Vec<String>,
}

/// What an agent reads besides CPU times and interfaces, so that a cause can be found after the
/// run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CauseCounters {
    /// Packet processing: (CPU number, its counters); of hosts with many CPUs, of the busiest few.
    pub softnet: Vec<(u32, SoftnetCounters)>,
    /// Sums over all CPUs, which wrap as the counters do, where `softnet` has only the busiest few.
    #[serde(default)]
    pub all_softnet: Option<SoftnetCounters>,
    /// Queueing disciplines that count.
    pub qdiscs: Vec<QdiscCounters>,
    /// The drivers' own counters of loss, pauses and errors that are not 0: (interface, name,
    /// count).
    pub driver_counters: Vec<(String, String, u64)>,
    /// TCP, IP and UDP as a whole.
    pub protocols: ProtocolCounters,
    /// Memory and swap.
    pub memory: MemoryReading,
    /// Whole disks.
    pub disks: Vec<DiskCounters>,
    /// Pressure stall information of the whole host.
    pub pressure: Pressure,
    /// The agent's own control group.
    pub cgroup: CgroupReading,
    /// Connection tracking of this network namespace. `None` where nothing is tracked, and in runs
    /// of before it was read.
    #[serde(default)]
    pub conntrack: Option<ConntrackCounters>,
    /// Device interrupts, one per queue of a NIC or disk, counted from the agent's first reading;
    /// the busiest ones.
    #[serde(default)]
    pub interrupts: Vec<InterruptCounters>,
    /// Who moves bytes on this host, the largest first; the agent and its tools too. Read less
    /// often than the rest where there are many sockets; the last figures are repeated until then.
    #[serde(default)]
    pub traffic: Vec<ProcessTraffic>,
    /// When [`CauseCounters::traffic`] was read, agent's monotonic clock. `None` when it was not.
    #[serde(default)]
    pub traffic_ns: Option<u64>,
    /// What of the traffic could not be seen, and why, in words for a person.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// How fast the CPUs that worked most run: (CPU number, Hz). Empty where nothing reports, and
    /// in runs of before it was read.
    #[serde(default)]
    pub frequencies_hz: Vec<(u32, u64)>,
}

/// What a short text takes besides its place in a list: the least that an allocator gives.
pub(crate) const NAME_BYTES: usize = 32;

impl CauseCounters {
    /// What it takes in memory, about: without interrupts.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let traffic = self.traffic.iter().map(|process| {
            let lists = size_of_val(&*process.peers) + size_of_val(&*process.ports);
            size_of_val(process) + lists + NAME_BYTES
        });
        size_of::<Self>()
            + size_of_val(&*self.softnet)
            + size_of_val(&*self.qdiscs)
            + 2 * NAME_BYTES * self.qdiscs.len()
            + size_of_val(&*self.driver_counters)
            + 2 * NAME_BYTES * self.driver_counters.len()
            + size_of_val(&*self.disks)
            + NAME_BYTES * self.disks.len()
            + traffic.sum::<usize>()
    }

    /// A counter's sum over all CPUs. `None` where the kernel reports none.
    #[must_use]
    pub fn over_softnet(&self, counter: impl Fn(&SoftnetCounters) -> u32) -> Option<u64> {
        let counter = |softnet: &SoftnetCounters| u64::from(counter(softnet));
        match &self.all_softnet {
            Some(all) => Some(counter(all)),
            None if self.softnet.is_empty() => None,
            None => Some(self.softnet.iter().map(|(_, cpu)| counter(cpu)).sum()),
        }
    }
}

impl std::iter::Sum for SoftnetCounters {
    /// A counter that one of them lacks is missing in the sum.
    fn sum<I: Iterator<Item = Self>>(cpus: I) -> Self {
        let both = |a: Option<u32>, b: Option<u32>| Some(a?.wrapping_add(b?));
        cpus.reduce(|a, b| Self {
            processed: a.processed.wrapping_add(b.processed),
            dropped: a.dropped.wrapping_add(b.dropped),
            squeezed: a.squeezed.wrapping_add(b.squeezed),
            received_rps: both(a.received_rps, b.received_rps),
            flow_limited: both(a.flow_limited, b.flow_limited),
            backlog: both(a.backlog, b.backlog),
        })
        .unwrap_or_default()
    }
}

/// What the TCP sockets of one process carried since the agent's first reading, closed ones
/// included, and its UDP sockets, of which the kernel counts no bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessTraffic {
    /// `None` for sockets whose owner cannot be seen.
    pub pid: Option<u32>,
    /// Its name (`/proc/PID/comm`). Empty when unknown.
    pub command: String,
    /// The agent itself, or a process that it started.
    pub is_ours: bool,
    /// Payload sent.
    pub sent_bytes: u64,
    /// Payload received.
    pub received_bytes: u64,
    /// With whom, the largest first; only the first few.
    pub peers: Vec<PeerTraffic>,
    /// Over which services, the largest first; only the first few.
    #[serde(default)]
    pub ports: Vec<PortTraffic>,
    /// UDP sockets it has now.
    #[serde(default)]
    pub udp_sockets: u32,
    /// Datagrams that its UDP sockets dropped since the agent's first reading, mostly because the
    /// receive buffer was full.
    #[serde(default)]
    pub udp_drops: u64,
}

/// What one process exchanged with one remote host since the agent's first reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerTraffic {
    /// The remote host.
    pub address: IpAddr,
    /// Payload sent to it.
    pub sent_bytes: u64,
    /// Payload received from it.
    pub received_bytes: u64,
}

/// What one process moved over one service port since the agent's first reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTraffic {
    /// The service and where it is.
    pub service: ServicePort,
    /// Payload sent over it.
    pub sent_bytes: u64,
    /// Payload received over it.
    pub received_bytes: u64,
}

/// The service's side of a connection; the other side's port is of no interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServicePort {
    /// Its number.
    pub port: u16,
    /// Whether it is listened on here, or used elsewhere.
    pub served_here: bool,
}

/// What one reading cost the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingCost {
    /// CPU time of the reading thread, user and system.
    pub cpu_ns: u64,
    /// Time from begin to end.
    pub wall_ns: u64,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReading {
    /// Time by use.
    pub times: CpuCounters,
    /// Packet processing on this CPU.
    pub softnet: Option<SoftnetCounters>,
    /// `cpufreq/scaling_cur_freq`, else `cpu MHz` of `/proc/cpuinfo`. `None` where neither reports,
    /// and for CPUs that worked less than others: to ask each costs the host.
    pub frequency_hz: Option<u64>,
    /// `cpufreq/cpuinfo_max_freq`.
    pub max_frequency_hz: Option<u64>,
    /// NUMA node.
    pub numa_node: Option<u32>,
}

/// `/proc/stat` line of one CPU, in clock ticks (USER_HZ, 100 per second).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounters {
    /// CPU number.
    pub cpu: u32,
    /// user, includes guest.
    pub user_ticks: u64,
    /// nice.
    pub nice_ticks: u64,
    /// system.
    pub system_ticks: u64,
    /// idle.
    pub idle_ticks: u64,
    /// iowait.
    pub iowait_ticks: Option<u64>,
    /// irq.
    pub irq_ticks: Option<u64>,
    /// softirq.
    pub softirq_ticks: Option<u64>,
    /// steal.
    pub steal_ticks: Option<u64>,
    /// Part of user time that ran guests. `None` before Linux 2.6.24, and in runs of before it was
    /// kept.
    #[serde(default)]
    pub guest_ticks: Option<u64>,
    /// Part of nice time that ran guests. `None` before Linux 2.6.33, and in runs of before it was
    /// kept.
    #[serde(default)]
    pub guest_nice_ticks: Option<u64>,
}

impl std::iter::Sum for CpuCounters {
    /// A counter that one of them lacks is missing in the sum.
    fn sum<I: Iterator<Item = Self>>(cpus: I) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        cpus.reduce(|a, b| Self {
            cpu: 0,
            user_ticks: a.user_ticks + b.user_ticks,
            nice_ticks: a.nice_ticks + b.nice_ticks,
            system_ticks: a.system_ticks + b.system_ticks,
            idle_ticks: a.idle_ticks + b.idle_ticks,
            iowait_ticks: both(a.iowait_ticks, b.iowait_ticks),
            irq_ticks: both(a.irq_ticks, b.irq_ticks),
            softirq_ticks: both(a.softirq_ticks, b.softirq_ticks),
            steal_ticks: both(a.steal_ticks, b.steal_ticks),
            guest_ticks: both(a.guest_ticks, b.guest_ticks),
            guest_nice_ticks: both(a.guest_nice_ticks, b.guest_nice_ticks),
        })
        .unwrap_or_default()
    }
}

/// One line of `/proc/net/softnet_stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftnetCounters {
    /// Packets taken from the driver or the backlog. 32 bits wide in the kernel: wraps.
    pub processed: u32,
    /// Packets dropped because the backlog (`net.core.netdev_max_backlog`) was full.
    pub dropped: u32,
    /// Times the receive loop ended with work left (`net.core.netdev_budget`).
    pub squeezed: u32,
    /// Times another CPU asked this one to receive (RPS). `None` before Linux 2.6.35.
    pub received_rps: Option<u32>,
    /// Packets dropped by the flow limit. `None` before Linux 3.10.
    pub flow_limited: Option<u32>,
    /// Packets waiting in the backlog now. `None` before Linux 5.10.
    pub backlog: Option<u32>,
}

/// One device interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptCounters {
    /// Its number.
    pub interrupt: u32,
    /// What raised it, for example `mlx5_comp3@pci:0000:3b:00.0` or `eth0-TxRx-3`.
    pub name: String,
    /// Times raised, one per CPU column of `/proc/interrupts`: (CPU number, count), zeros skipped.
    pub per_cpu: Vec<(u32, u64)>,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceReading {
    /// Kernel's counters.
    pub counters: InterfaceCounters,
    /// What changes seldom.
    pub link: InterfaceLink,
    /// The driver's own counters that report loss, pauses and errors (`ethtool -S`), by the
    /// driver's names.
    pub driver_counters: Vec<(String, u64)>,
}

/// `/proc/net/dev` line of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// Interface name.
    pub name: String,
    /// Received bytes.
    pub rx_bytes: u64,
    /// Received packets.
    pub rx_packets: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Receive drops.
    pub rx_drops: u64,
    /// `fifo` of receiving: the device's ring overran. Drivers that count it elsewhere count it in
    /// the drops. `None` in runs of before it was kept.
    #[serde(default)]
    pub rx_fifo_errors: Option<u64>,
    /// Sent bytes.
    pub tx_bytes: u64,
    /// Sent packets.
    pub tx_packets: u64,
    /// Send errors.
    pub tx_errors: u64,
    /// Send drops.
    pub tx_drops: u64,
}

/// What changes seldom on an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceLink {
    /// Link speed. `None` when unknown or meaningless (veth, bridges).
    pub speed_bits_per_sec: Option<f64>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Maximum transmission unit.
    pub mtu_bytes: Option<u32>,
    /// For example `mlx5_core`.
    pub driver: Option<String>,
    /// Up, with a carrier.
    pub carrier: bool,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Receive and transmit ring.
    pub rings: Option<Rings>,
    /// Interrupt coalescing.
    pub coalescing: Option<Coalescing>,
    /// Flow control.
    pub pause: Option<PauseSettings>,
    /// Queues in use: combined ones, or the greater of receive and transmit.
    pub queues: Option<u32>,
    /// Offloads that are on, by ethtool's long names, for example `tx-tcp-segmentation`.
    pub offloads_on: Vec<String>,
}

/// Ring sizes in descriptors (`ethtool -g`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Receive, now.
    pub rx: u32,
    /// Receive, at most.
    pub rx_max: u32,
    /// Transmit, now.
    pub tx: u32,
    /// Transmit, at most.
    pub tx_max: u32,
}

/// Interrupt coalescing (`ethtool -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    /// Longest wait of a received packet for an interrupt.
    pub rx_us: u32,
    /// Most received packets for one interrupt.
    pub rx_frames: u32,
    /// The same for sent packets.
    pub tx_us: u32,
    /// The same for sent packets.
    pub tx_frames: u32,
    /// The driver adapts the receive side by itself.
    pub adaptive_rx: bool,
    /// The driver adapts the transmit side by itself.
    pub adaptive_tx: bool,
}

/// Ethernet flow control (`ethtool -a`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseSettings {
    /// Negotiated with the peer.
    pub negotiated: bool,
    /// Pause frames are honoured.
    pub rx: bool,
    /// Pause frames are sent.
    pub tx: bool,
}

/// One queueing discipline (`tc -s qdisc`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscCounters {
    /// Its interface.
    pub interface: String,
    /// For example `fq_codel`, `tbf`.
    pub kind: String,
    /// Major and minor number, as the kernel keeps them.
    pub handle: u32,
    /// Whether it is the interface's outermost one.
    pub root: bool,
    /// What it lets pass, headers included. `None` when it is no plain shaper (tbf).
    pub rate_bytes_per_sec: Option<u64>,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Times the rate or the queue's limit was met.
    pub overlimits: u32,
    /// Bytes waiting now.
    pub backlog_bytes: u32,
    /// Packets waiting now.
    pub backlog_packets: u32,
}

/// `/proc/net/stat/nf_conntrack`, its lines of all CPUs together, and the table's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConntrackCounters {
    /// Connections in the table now.
    pub entries: u64,
    /// Max number of entries (`net.netfilter.nf_conntrack_max`). `None` where this namespace does
    /// not show it.
    pub max_entries: Option<u64>,
    /// New connections that could not be entered, mostly because their translated addresses and
    /// ports were taken; their packets were dropped.
    pub insert_failed: u64,
    /// Packets dropped because the table was full or memory was short.
    pub dropped: u64,
    /// Connections thrown out of a full table for a new one.
    pub early_dropped: u64,
}

/// Counters of `/proc/net/snmp`, `netstat` and `snmp6`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolCounters {
    /// `Tcp InSegs`.
    pub tcp_in_segments: Option<u64>,
    /// `Tcp OutSegs`, retransmissions not counted.
    pub tcp_out_segments: Option<u64>,
    /// `Tcp RetransSegs`.
    pub tcp_retransmitted_segments: Option<u64>,
    /// `Tcp ActiveOpens`.
    pub tcp_active_opens: Option<u64>,
    /// `Tcp PassiveOpens`.
    pub tcp_passive_opens: Option<u64>,
    /// `Tcp CurrEstab`: connections now.
    pub tcp_established: Option<u64>,
    /// `TcpExt TCPTimeouts`.
    pub tcp_timeouts: Option<u64>,
    /// `TcpExt ListenOverflows`: connections refused because the accept queue was full.
    pub listen_overflows: Option<u64>,
    /// `TcpExt ListenDrops`: connection requests dropped for any reason.
    pub listen_drops: Option<u64>,
    /// `TcpExt TCPRcvQDrop`: segments dropped because a receive buffer was full (Linux 4.20).
    pub tcp_receive_queue_drops: Option<u64>,
    /// `TcpExt TCPBacklogDrop`: segments dropped because a socket's backlog was full.
    pub tcp_backlog_drops: Option<u64>,
    /// `TcpExt PruneCalled`: times a receive buffer had to be squeezed.
    pub tcp_prunes: Option<u64>,
    /// `TcpExt TCPZeroWindowDrop`: segments that came into a closed window.
    pub tcp_zero_window_drops: Option<u64>,
    /// `Udp InDatagrams`, IPv6 included where it counts.
    pub udp_in_datagrams: Option<u64>,
    /// `Udp OutDatagrams`, IPv6 included where it counts.
    pub udp_out_datagrams: Option<u64>,
    /// `Udp RcvbufErrors`: datagrams dropped because a receive buffer was full.
    pub udp_receive_buffer_errors: Option<u64>,
    /// `Udp SndbufErrors`.
    pub udp_send_buffer_errors: Option<u64>,
    /// `Udp InErrors`.
    pub udp_in_errors: Option<u64>,
    /// `Ip InDiscards`: whole packets dropped for want of memory.
    pub ip_in_discards: Option<u64>,
    /// `Ip OutDiscards`.
    pub ip_out_discards: Option<u64>,
    /// `Ip ReasmFails`: fragments that never became a packet.
    pub ip_reassembly_failures: Option<u64>,
}

/// `/proc/meminfo` and what `/proc/vmstat` has of swapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReading {
    /// `MemTotal`.
    pub total_bytes: Option<u64>,
    /// `MemAvailable` (Linux 3.14).
    pub available_bytes: Option<u64>,
    /// `MemFree`.
    pub free_bytes: Option<u64>,
    /// `Dirty`.
    pub dirty_bytes: Option<u64>,
    /// `SwapTotal`.
    pub swap_total_bytes: Option<u64>,
    /// `SwapFree`.
    pub swap_free_bytes: Option<u64>,
    /// `pswpin`: pages read from swap.
    pub swapped_in_pages: Option<u64>,
    /// `pswpout`: pages written to swap.
    pub swapped_out_pages: Option<u64>,
    /// `oom_kill` (Linux 4.13).
    pub oom_kills: Option<u64>,
}

/// One line of `/proc/diskstats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// For example `nvme0n1`.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time of all reads together.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time of all writes together.
    pub write_ms: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time with at least one request in flight.
    pub busy_ms: u64,
    /// Time times requests in flight.
    pub weighted_ms: u64,
    /// Flushes completed (Linux 5.5).
    pub flushes: Option<u64>,
    /// Time of all flushes together (Linux 5.5).
    pub flush_ms: Option<u64>,
}

impl DiskCounters {
    /// Device mapper, software RAID, files and memory as disks: what they move, the disks below
    /// move again.
    #[must_use]
    pub fn is_made_of_others(&self) -> bool {
        let starts = ["dm-", "md", "loop", "ram", "zram"];
        starts.iter().any(|start| self.name.starts_with(start))
    }
}

/// Pressure stall information; `None` where the kernel has none (before Linux 4.20, or off).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// `/proc/pressure/cpu`.
    pub cpu: Option<StallCounters>,
    /// `/proc/pressure/io`.
    pub io: Option<StallCounters>,
    /// `/proc/pressure/memory`.
    pub memory: Option<StallCounters>,
}

/// Stall time since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallCounters {
    /// Time in which at least one task waited for the resource.
    pub some_us: u64,
    /// Time in which all waited. `None` where the kernel does not count it (CPU before Linux 5.13).
    pub full_us: Option<u64>,
}

/// The control group of the reading process: in a pod, the pod's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupReading {
    /// 1 or 2; `None` without control groups.
    pub version: Option<u8>,
    /// CPU time allowed in each period. `None` when there is no quota.
    pub cpu_quota_us: Option<u64>,
    /// The quota's period.
    pub cpu_period_us: Option<u64>,
    /// Periods that had anything to run.
    pub cpu_periods: Option<u64>,
    /// Periods in which the quota ran out.
    pub cpu_throttled_periods: Option<u64>,
    /// Time in which tasks were throttled.
    pub cpu_throttled_us: Option<u64>,
    /// Hard limit. `None` when there is none.
    pub memory_limit_bytes: Option<u64>,
    /// Memory in use, page cache included.
    pub memory_used_bytes: Option<u64>,
    /// Times the hard limit was met and memory reclaimed.
    pub memory_limit_hits: Option<u64>,
    /// Tasks killed for want of memory.
    pub oom_kills: Option<u64>,
}

/// Sockets of one network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketsReading {
    /// Monotonic clock when the list was read.
    pub read_ns: u64,
    /// TCP sockets that live, listeners too; without those in TIME_WAIT and SYN_RECV, which carry
    /// nothing.
    pub tcp: Vec<TcpSocket>,
    /// TCP sockets that died since the reading before, with their last counters.
    pub tcp_closed: Vec<TcpSocket>,
    /// Whether deaths are reported (Linux 4.2, and the kernel's module). When false, what a
    /// connection carried after the last reading of its life is not in any figure.
    pub deaths_told: bool,
    /// Deaths the kernel could not report because they came faster than they were read: times, not
    /// sockets.
    pub deaths_missed: u64,
    /// UDP sockets.
    pub udp: Vec<UdpSocket>,
}

/// One TCP socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSocket {
    /// The kernel's name for it, never used twice in one boot.
    pub cookie: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// State by `include/net/tcp_states.h`: 1 is ESTABLISHED, 10 LISTEN.
    pub state: u8,
    /// Its inode, which its owners' `/proc/PID/fd` name. 0 when no process has it open any more.
    pub inode: u32,
    /// User who made it.
    pub uid: u32,
    /// Process that has it open. `None` when not seen.
    pub pid: Option<u32>,
    /// Bytes that came and were not yet read by the program; for a listener, connections waiting to
    /// be accepted.
    pub receive_queue: u32,
    /// Bytes written and not yet acknowledged; for a listener, how many connections may wait.
    pub send_queue: u32,
    /// Payload acknowledged by the peer, since birth (Linux 4.1).
    pub acked_bytes: Option<u64>,
    /// Payload received, since birth (Linux 4.1).
    pub received_bytes: Option<u64>,
    /// Segments sent that carry payload, since birth (Linux 4.6).
    pub data_segments_out: Option<u32>,
    /// The fields that show what limits it.
    pub info: TcpInfo,
}

/// One UDP socket. The kernel counts no bytes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSocket {
    /// The kernel's name for it.
    pub cookie: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end; unspecified when not connected.
    pub remote: SocketAddr,
    /// Its inode.
    pub inode: u32,
    /// Process that has it open. `None` when not seen.
    pub pid: Option<u32>,
    /// Bytes of memory waiting to be read.
    pub receive_queue: u32,
    /// Bytes of memory waiting to be sent.
    pub send_queue: u32,
    /// Datagrams dropped, mostly because the receive buffer was full (Linux 4.10 by this way).
    pub drops: Option<u32>,
}

/// One process. Those that use no CPU are read less often than the host is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCounters {
    /// Its number.
    pub pid: u32,
    /// Monotonic clock when this was read.
    pub read_ns: u64,
    /// When it began, in ticks since boot: distinguishes it from a later process of the same
    /// number.
    pub start_ticks: u64,
    /// `comm`, at most 15 bytes.
    pub name: String,
    /// Threads.
    pub threads: u32,
    /// Memory it has resident, in pages.
    pub resident_pages: u64,
    /// CPU time in user mode.
    pub user_ticks: u64,
    /// CPU time in the kernel on its behalf.
    pub system_ticks: u64,
    /// Bytes it caused to be read from disks. `None` when this user may not see it.
    pub read_bytes: Option<u64>,
    /// Bytes it caused to be written to disks.
    pub written_bytes: Option<u64>,
}

impl ServicePort {
    /// Of a connection between two ports, by the ports that are listened on here.
    #[must_use]
    pub fn of(local: u16, remote: u16, listened: &BTreeSet<u16>) -> Self {
        let served_here = listened.contains(&local);
        Self {
            port: if served_here { local } else { remote },
            served_here,
        }
    }
}

impl TcpSocket {
    /// ESTABLISHED.
    pub const ESTABLISHED: u8 = 1;
    /// LISTEN.
    pub const LISTEN: u8 = 10;
}
