//! What a flow carries: the traffic, how fast, through which socket, and who drives it.

use crate::sizes::SizeDistribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a flow carries and who drives it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// The traffic.
    pub kind: WorkloadKind,
    /// Parallel connections per flow.
    pub streams: u32,
    /// Threads that share a host's streams of a round. `None`: one per stream, up to the host's
    /// cores, and up to 64 for bulk TCP, which is faster so.
    pub threads: Option<u32>,
    /// Bytes per send (tcp-stream), per datagram (udp-stream), per request (tcp-rr, udp-rr,
    /// tcp-crr) or per echo (ping).
    pub message_bytes: u64,
    /// Bytes per response where there are responses. `None`: as many as the request has.
    pub response_bytes: Option<u64>,
    /// Requests a stream keeps in flight (tcp-rr, udp-rr).
    pub outstanding: u32,
    /// How fast, at most.
    pub pace: Pace,
    /// When a stream is done before the window ends. `None`: never.
    pub limit: Option<Limit>,
    /// Settings of every socket.
    pub socket: SocketSettings,
    /// How senders hand bytes to the kernel.
    pub send_mode: SendMode,
    /// How receivers take bytes from the kernel.
    pub receive_mode: ReceiveMode,
    /// Whether UDP datagrams go to and come from the kernel in trains (GSO and GRO).
    pub segmentation: bool,
    /// Which CPUs the streams' threads may use.
    pub placement: Placement,
    /// Our engine, or a tool people trust.
    pub tool: Tool,
    /// The tool repeats its test inside the window until the 95% interval of its mean is this wide
    /// over the mean (netperf's `-I`). `None`: one test.
    pub confidence_width: Option<f64>,
    /// How the streams' source ports are chosen, and so the paths that switches hash them to.
    pub source_ports: SourcePorts,
    /// Where `streams` comes from.
    pub stream_count: StreamCount,
    /// How long messages are (flow-sizes).
    pub distribution: SizeDistribution,
}

/// How the opening end chooses the source ports of a flow's streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourcePorts {
    /// The kernel does.
    Kernel,
    /// Random, from the plan's seed for each flow of each round ([`crate::ports::fresh_seed`]).
    #[default]
    Fresh,
    /// Random, from the plan's seed for each pair of hosts ([`crate::ports::pinned_seed`]): the
    /// same 5-tuples in every round.
    Pinned,
}

/// Where a workload's number of streams comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamCount {
    /// The scenario.
    #[default]
    Fixed,
    /// Doubled from repetition to repetition, from 1, until a host gains less than 3%.
    Doubling,
    /// What the stage before found by doubling, and enough to spread over hashed paths. Until then
    /// `streams` is the max.
    Auto,
}

/// The traffic of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Bulk TCP.
    TcpStream,
    /// Bulk UDP: loss, order, jitter.
    UdpStream,
    /// TCP request and response on a persistent connection: round-trip times.
    TcpRr,
    /// UDP request and response.
    UdpRr,
    /// TCP connect, request, response and close: a connection for every transaction.
    TcpCrr,
    /// ICMP echo; the receiving host's kernel answers.
    Ping,
    /// TCP SYNs with growing TTL from a stream's own 5-tuple: the routers on its path.
    Trace,
    /// Messages of a published distribution's sizes over a pool of TCP connections, each answered
    /// at its end: flow completion times. One at a time, or at a load.
    FlowSizes,
}

/// How fast a flow goes, at most. Nothing given: as fast as it can; request and response then is a
/// closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// Payload of one stream, bulk workloads.
    pub stream_bits_per_sec: Option<f64>,
    /// Payload of a flow over all its streams, bulk workloads.
    pub flow_bits_per_sec: Option<f64>,
    /// Requests of a flow over all its streams, sent at their times whether or not answers came
    /// (open loop).
    pub requests_per_sec: Option<f64>,
    /// A flow's payload as a share of what its two hosts were measured to carry before, the lower
    /// of what one sent and the other received ([`crate::plan::HostRate`]); bulk workloads.
    pub measured_share: Option<f64>,
    /// A flow's payload as a share of its hosts' line rate, which a host's flows divide evenly
    /// ([`crate::plan::LimitedRound`]); messages arrive at random (flow-sizes).
    pub line_share: Option<f64>,
}

/// When a stream is done. What counts is what was sent inside the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// After this much payload.
    Bytes(u64),
    /// After so many sends, datagrams or transactions.
    Messages(u64),
}

/// Settings of a flow's sockets, at both ends. `None`: as the host has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketSettings {
    /// `TCP_NODELAY`: small messages leave at once (Nagle's algorithm off).
    pub nodelay: bool,
    /// `SO_SNDBUF` as asked for; the kernel doubles it for its own bookkeeping (socket(7)).
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` as asked for.
    pub receive_buffer_bytes: Option<u32>,
    /// `TCP_CONGESTION`, such as `cubic` or `bbr`.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG`.
    pub mss_bytes: Option<u32>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// Multipath TCP (RFC 8684) where both kernels have it.
    pub mptcp: bool,
    /// `SO_BINDTODEVICE`.
    pub device: Option<String>,
}

/// How senders hand bytes to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendMode {
    /// send(2): the kernel copies from the application's buffer.
    #[default]
    Copy,
    /// sendfile(2) from a file in memory: the application does not touch the bytes.
    Sendfile,
    /// `MSG_ZEROCOPY`: the kernel sends from the application's pages where it can, and copies where
    /// it cannot.
    Zerocopy,
}

/// How receivers take bytes from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMode {
    /// recv(2): the kernel copies into the application's buffer.
    #[default]
    Copy,
    /// `MSG_TRUNC`: the kernel drops the bytes; the application never sees them (tcp(7)).
    Discard,
    /// `TCP_ZEROCOPY_RECEIVE`: the kernel maps received pages where it can; the application sees
    /// them there.
    Mmap,
}

/// Which CPUs the streams' threads may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// As the kernel schedules them.
    #[default]
    Free,
    /// These, one thread after the other, from the front again when there are more threads.
    Cpus(Vec<u32>),
    /// Those of the NUMA node that the network interface is attached to.
    NearNic,
    /// The CPU that handles the stream's received packets (`SO_INCOMING_CPU`).
    NearReceiveQueue,
}

/// What moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// eastwest's own engine.
    Engine,
    /// The stock iperf3 installed on the hosts, as all that follow.
    Iperf3,
    /// iperf 2.
    Iperf,
    /// netperf with netserver.
    Netperf,
    /// lmbench's bw_tcp, lat_tcp, lat_udp and lat_connect.
    Lmbench,
    /// NetPIPE over TCP (NPtcp).
    Netpipe,
    /// nuttcp.
    Nuttcp,
    /// sockperf.
    Sockperf,
    /// qperf.
    Qperf,
    /// ping of iputils.
    Ping,
}

impl Workload {
    /// The engine with one stream and the field's default message size: 128 KiB for bulk TCP, what
    /// fits an Ethernet frame for bulk UDP, 64 bytes for requests, 56 for echoes.
    #[must_use]
    pub fn of(kind: WorkloadKind) -> Self {
        Self {
            kind,
            streams: 1,
            threads: None,
            message_bytes: match kind {
                WorkloadKind::TcpStream => 128 * 1024,
                WorkloadKind::UdpStream => 1448,
                WorkloadKind::TcpRr | WorkloadKind::UdpRr | WorkloadKind::TcpCrr => 64,
                WorkloadKind::Ping => 56,
                // What answers a message of flow-sizes.
                WorkloadKind::Trace | WorkloadKind::FlowSizes => 1,
            },
            response_bytes: None,
            outstanding: 1,
            pace: Pace::default(),
            limit: None,
            socket: SocketSettings {
                nodelay: Tool::Engine.usual_nodelay(kind),
                ..SocketSettings::default()
            },
            send_mode: SendMode::default(),
            receive_mode: ReceiveMode::default(),
            segmentation: true,
            placement: Placement::default(),
            tool: Tool::Engine,
            confidence_width: None,
            source_ports: SourcePorts::default(),
            stream_count: StreamCount::default(),
            distribution: SizeDistribution::default(),
        }
    }

    /// Its word and its tool: `tcp-stream (engine)`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} ({})", self.kind.name(), self.tool.name())
    }

    /// Bytes per response.
    #[must_use]
    pub fn answer_bytes(&self) -> u64 {
        self.response_bytes.unwrap_or(self.message_bytes)
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self::of(WorkloadKind::TcpStream)
    }
}

impl SocketSettings {
    /// The byte of the IP header that marks packets as asked for: `dscp` is its upper six bits (RFC
    /// 2474, section 3).
    #[must_use]
    pub fn traffic_class(&self) -> Option<u32> {
        self.dscp.map(|dscp| u32::from(dscp) << 2)
    }
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::TcpStream,
        Self::UdpStream,
        Self::TcpRr,
        Self::UdpRr,
        Self::TcpCrr,
        Self::Ping,
        Self::Trace,
        Self::FlowSizes,
    ];

    /// The word used in scenario files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TcpStream => "tcp-stream",
            Self::UdpStream => "udp-stream",
            Self::TcpRr => "tcp-rr",
            Self::UdpRr => "udp-rr",
            Self::TcpCrr => "tcp-crr",
            Self::Ping => "ping",
            Self::Trace => "trace",
            Self::FlowSizes => "flow-sizes",
        }
    }

    /// Whether its figure is a rate; otherwise it is a time per transaction.
    #[must_use]
    pub fn is_bulk(self) -> bool {
        matches!(self, Self::TcpStream | Self::UdpStream)
    }

    /// Whether it moves data over TCP.
    #[must_use]
    pub fn is_tcp(self) -> bool {
        matches!(
            self,
            Self::TcpStream | Self::TcpRr | Self::TcpCrr | Self::FlowSizes
        )
    }

    /// Whether its payload can be kept to a rate.
    #[must_use]
    pub fn keeps_to_a_rate(self) -> bool {
        self.is_bulk() || self == Self::FlowSizes
    }
}

impl Tool {
    /// All of them, our own engine first.
    pub const ALL: [Self; 10] = [
        Self::Engine,
        Self::Iperf3,
        Self::Iperf,
        Self::Netperf,
        Self::Lmbench,
        Self::Netpipe,
        Self::Nuttcp,
        Self::Sockperf,
        Self::Qperf,
        Self::Ping,
    ];

    /// All but our own engine.
    pub fn external() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|tool| *tool != Self::Engine)
    }

    /// The word used in scenario files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Iperf3 => "iperf3",
            Self::Iperf => "iperf",
            Self::Netperf => "netperf",
            Self::Lmbench => "lmbench",
            Self::Netpipe => "netpipe",
            Self::Nuttcp => "nuttcp",
            Self::Sockperf => "sockperf",
            Self::Qperf => "qperf",
            Self::Ping => "ping",
        }
    }

    /// Whether `nodelay` is on where nothing else is asked for. The engine's requests leave at
    /// once; its bulk leaves in full segments, as iperf3, netperf and qperf have it: with
    /// `TCP_NODELAY` each message ends in a segment of its own, which costs a fifth of the CPU
    /// time. Other tools do as they do by themselves.
    #[must_use]
    pub fn usual_nodelay(self, kind: WorkloadKind) -> bool {
        self == Self::Engine && !kind.is_bulk()
    }
}
