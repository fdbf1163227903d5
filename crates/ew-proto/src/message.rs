//! The messages of controller and agent.
//!
//! All `*_ns` times in messages to an agent are on that agent's own monotonic clock
//! (CLOCK_MONOTONIC), converted by the controller with its offset estimate; durations are plain
//! nanoseconds.

use crate::clock_line::Timeline;
use ew_model::claim::Claim;
use ew_model::facts::{HostFacts, HostSample};
use ew_model::inventory::HostId;
use ew_model::network::NetworkChoice;
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::record::EndRecord;
use ew_model::storage::{StorageOrder, StorageReport};
use ew_model::telemetry::HostReading;
use ew_model::workload::{Tool, Workload};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Wire format version; both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// The secret of one run that data connections present.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunToken(pub [u8; 16]);

/// With which hosts that are being launched ask their neighbours for the agent's program. Host's
/// users may see it in a command line; it opens nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayKey(pub [u8; 16]);

/// From the controller to one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToAgent {
    /// Answer to a fitting hello.
    Welcome(Welcome),
    /// One of the exchanges of a clock estimate; answered at once.
    ClockProbe {
        /// Echoed.
        sequence: u32,
    },
    /// A stage's rounds, sent ahead.
    Stage(StageOrder),
    /// Start the accepted stage: round offsets count along this timeline.
    Go {
        /// Which stage.
        stage: StageIndex,
        /// Of the stage.
        timeline: Timeline,
    },
    /// Drop the running stage; end the storage step and report it.
    Abort,
    /// The controller lives. An agent that hears nothing for the session's deadline ends itself.
    Heartbeat,
    /// Probe data ports of peers: answered by `PortsChecked`.
    CheckPorts(PortCheck),
    /// Clean up and exit.
    Goodbye,
    /// Do a step of a storage job; answered by `StorageReport`, after an abort early.
    Storage(StorageOrder),
    /// The running stage's timeline, as the agent's clock is known by now: for rounds that have not
    /// begun.
    Retime {
        /// Which stage.
        stage: StageIndex,
        /// In place of the one before.
        timeline: Timeline,
    },
}

/// Whose data ports to probe, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCheck {
    /// Peers' data listeners.
    pub peers: Vec<SocketAddr>,
    /// Whether UDP must get there and back, too.
    pub with_udp: bool,
}

/// How one peer's data port answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortAnswer {
    /// As the run's agent does.
    Reached {
        /// The shortest that the kernel has seen on the connection. `None`: it does not report.
        round_trip_ns: Option<u64>,
    },
    /// Not so.
    Unreached {
        /// Why, in words.
        error: String,
    },
}

impl PortAnswer {
    /// Why it is not reached.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Reached { .. } => None,
            Self::Unreached { error } => Some(error),
        }
    }
}

/// What an agent needs to know before anything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Who the agent is.
    pub host: HostId,
    /// The address data flows use, unless `network` specifies another.
    pub address: IpAddr,
    /// The network data flows use: the host has its own address there.
    pub network: Option<NetworkChoice>,
    /// What data connections must present.
    pub token: RunToken,
    /// Hand the agent's own program on, at the data port, to who presents this. `None`: to nobody.
    pub relay_key: Option<RelayKey>,
    /// First and last port the data listener may take.
    pub data_ports: (u16, u16),
    /// Time between raw host samples.
    pub sample_interval_ns: u64,
    /// Serve stock iperf3 clients at this port during the run. `None`: do not.
    pub offer_iperf3_port: Option<u16>,
    /// Somebody watches this host: send whole readings ([`ToController::Reading`]) at this
    /// interval, also while a stage runs. `None`: do not.
    pub watch_interval_ns: Option<u64>,
    /// Take the host for this run alone, and report which other run has it
    /// ([`HostFacts::in_use_by`]). `None`: share it.
    pub claim: Option<Claim>,
    /// Write a line to the host's log when the run begins and ends.
    pub syslog: bool,
    /// External tools to look for ([`HostFacts::tools`]). Asking a package manager for a version
    /// takes more CPU time than all else of an agent's start.
    pub tools: Vec<Tool>,
}

/// The rounds of one stage that concern one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageOrder {
    /// Which.
    pub stage: StageIndex,
    /// What flows carry, and by which tool.
    pub workload: Box<Workload>,
    /// From the common start to the window.
    pub warm_up_ns: u64,
    /// Window length.
    pub duration_ns: u64,
    /// Pause before each round's start, in which its flows connect.
    pub gap_ns: u64,
    /// Only the rounds this agent takes part in, in order.
    pub rounds: Vec<RoundOrder>,
}

/// One round of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundOrder {
    /// Which.
    pub round: RoundIndex,
    /// Common start, from the stage's start; connecting begins `gap_ns` before.
    pub offset_ns: u64,
    /// Parallel connections per flow in this round.
    pub streams: u32,
    /// This agent's ends of flows.
    pub flows: Vec<FlowOrder>,
    /// Flows of which this agent reports every second of the window how they go ([`FlowProgress`]):
    /// those that it can distinguish by their TCP connections or the engine's totals. Empty unless
    /// somebody watches.
    pub followed: Vec<FlowId>,
}

/// One end of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOrder {
    /// Which.
    pub flow: FlowId,
    /// Send or receive data.
    pub role: Role,
    /// Whether this end opens the connections.
    pub opens: bool,
    /// The peer's data listener, or for a tool the port its server takes at the accepting end.
    pub peer: SocketAddr,
    /// The peer's address in the inventory. Another one than `peer`'s where a translated address
    /// leads to it, as a Service's.
    pub peer_host: IpAddr,
    /// The port this end's tool server takes when it accepts; 0 for the engine.
    pub server_port: u16,
    /// What the source ports of its streams are chosen from ([`ew_model::ports::source_port`]).
    /// `None`: the kernel chooses.
    pub port_seed: Option<u64>,
    /// The number, for its source port, of the flow's first stream.
    pub first_stream: u16,
    /// Payload of the flow over all its streams, at most, where flows of a round differ in it.
    /// `None`: as the workload has it.
    pub bits_per_sec: Option<f64>,
    /// Where a Service leads to the accepting end, and the workload has sockets besides its
    /// connections: the ports these take. `None`: any data port.
    pub service: Option<Box<ServicePorts>>,
}

/// Ports of the accepting end that a Service leads to, in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePorts {
    /// The first one, as the accepting end binds it.
    pub first_port: u16,
    /// What each of them is at the Service's address.
    pub translated: Vec<u16>,
}

impl ServicePorts {
    /// First and last port that the accepting end may bind. `None`: there is none.
    #[must_use]
    pub fn range(&self) -> Option<(u16, u16)> {
        let more = u16::try_from(self.translated.len().checked_sub(1)?).ok()?;
        Some((self.first_port, self.first_port.checked_add(more)?))
    }

    /// What a port of the accepting end is at the Service's address. `None`: the Service does not
    /// lead to it.
    #[must_use]
    pub fn translated(&self, port: u16) -> Option<u16> {
        let position = port.checked_sub(self.first_port)?;
        self.translated.get(usize::from(position)).copied()
    }
}

impl FlowOrder {
    /// One end of a flow that the engine carries; `peer` is the other end's data listener.
    #[must_use]
    pub fn new(flow: FlowId, role: Role, opens: bool, peer: SocketAddr) -> Self {
        Self {
            flow,
            role,
            opens,
            peer,
            peer_host: peer.ip(),
            server_port: 0,
            port_seed: None,
            first_stream: 0,
            bits_per_sec: None,
            service: None,
        }
    }

    /// The same end with source ports chosen from a seed.
    #[must_use]
    pub fn with_ports(self, seed: u64) -> Self {
        Self {
            port_seed: Some(seed),
            ..self
        }
    }

    /// The same end, with its connections opened to an address that is translated to the peer's.
    #[must_use]
    pub fn through(self, address: SocketAddr) -> Self {
        Self {
            peer: address,
            ..self
        }
    }

    /// The same end, carried by a tool whose server takes `port` at the accepting end.
    #[must_use]
    pub fn by_tool(self, port: u16) -> Self {
        Self {
            peer: SocketAddr::new(self.peer.ip(), port),
            server_port: if self.opens { 0 } else { port },
            ..self
        }
    }
}

/// An end's part in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Sends data (tcp-rr: requests).
    Send,
    /// Receives data (tcp-rr: responds).
    Receive,
}

/// From one agent to the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToController {
    /// Facts are read and the data listener is up.
    Ready {
        /// Facts of the host.
        facts: HostFacts,
        /// The data listener's port.
        data_port: u16,
    },
    /// Answer to a clock probe.
    ClockReply {
        /// Of the probe.
        sequence: u32,
        /// Agent's monotonic clock.
        agent_ns: u64,
    },
    /// The stage is understood and can start.
    StageAccepted {
        /// Which.
        stage: StageIndex,
    },
    /// The stage cannot run on this host.
    StageRefused {
        /// Which.
        stage: StageIndex,
        /// In words, with the remedy.
        reason: String,
    },
    /// A round is over.
    RoundReport(RoundReport),
    /// All rounds of the stage are reported.
    StageDone {
        /// Which.
        stage: StageIndex,
        /// Connections the data port refused since the agent's start.
        rejected_connections: u64,
    },
    /// Answer to a heartbeat, with the engine's totals since the agent's start.
    Alive {
        /// Agent's monotonic clock.
        agent_ns: u64,
        /// Payload bytes sent.
        tx_bytes: u64,
        /// Payload bytes received.
        rx_bytes: u64,
        /// What the host's other TCP connections sent. `None` when it cannot be seen.
        others: Option<OthersTcp>,
    },
    /// Raw host counters.
    Sample(HostSample),
    /// Answer to `CheckPorts`, in its order.
    PortsChecked {
        /// One per peer.
        answers: Vec<PortAnswer>,
    },
    /// Something went wrong that is not a flow's failure.
    Fault {
        /// In words.
        message: String,
    },
    /// Everything is stopped; the agent exits now.
    Farewell,
    /// How a followed flow goes.
    FlowProgress(FlowProgress),
    /// All counters of a watched host.
    Reading(Box<HostReading>),
    /// Answer to `Storage`.
    StorageReport(Box<StorageReport>),
    /// How the storage step at hand goes, where a job of others does it.
    StorageProgress {
        /// Which.
        step: u32,
        /// In words.
        words: String,
    },
}

/// What a host's TCP connections that are not the run's sent since the agent's first reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OthersTcp {
    /// Segments with payload, retransmitted ones included.
    pub sent_segments: u64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
}

impl OthersTcp {
    /// Retransmitted segments per segment sent. `None` where none was sent.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let (sent, again) = (self.sent_segments, self.retransmitted_segments);
        (sent > 0).then(|| again as f64 / sent as f64)
    }
}

/// How a flow went for a part of its window, reported while the round goes on. For who watches; the
/// round's report has the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowProgress {
    /// Which stage.
    pub stage: StageIndex,
    /// Which round.
    pub round: RoundIndex,
    /// Which flow.
    pub flow: FlowId,
    /// Start of the part, from the window's start.
    pub offset_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Payload bytes in it; of requests' answers where there are requests.
    pub bytes: u64,
    /// Transactions in it, where there are requests.
    pub transactions: Option<u64>,
    /// TCP segments retransmitted in it, where the sender of bulk data reports.
    pub retransmits: Option<u64>,
}

/// An agent's part of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// Which stage.
    pub stage: StageIndex,
    /// Which round.
    pub round: RoundIndex,
    /// In the order of the `RoundOrder`.
    pub flows: Vec<FlowReport>,
}

/// One end's result for a flow. A tool's client may know both ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Which.
    pub flow: FlowId,
    /// The sender's counts, when this end knows them.
    pub sender: Option<Box<EndRecord>>,
    /// The receiver's counts, when this end knows them.
    pub receiver: Option<Box<EndRecord>>,
    /// State of this end at the window's end. `None` for a tool, whose sockets are its own, and
    /// where there is an error.
    pub standing: Option<EndState>,
    /// Why there is no figure: in words, with the system's or the tool's own message.
    pub error: Option<String>,
}

/// State of one end of a flow at the window's end: facts, from which the controller judges
/// whether a silent flow is dead or only starved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndState {
    /// The stream that heard its peer last, from 0: while one does, the flow is alive.
    pub stream: u16,
    /// Since that stream last heard its peer, ms: a sender acknowledgements, a receiver data
    /// (`tcpi_last_ack_recv`, `tcpi_last_data_recv` of include/uapi/linux/tcp.h).
    pub silent_ms: u32,
    /// Retransmission timeouts in a row that its peer has not answered (`tcpi_retransmits`).
    pub unanswered_timeouts: u8,
    /// Since another flow of the round last brought this host data, ms. `None` when no other flow
    /// does.
    pub others_silent_ms: Option<u32>,
    /// Whether the interface that owns the host's data address is up and has a carrier; false also
    /// when unknown.
    pub link_up: bool,
}

impl std::fmt::Debug for RunToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunToken(..)")
    }
}

impl std::fmt::Debug for RelayKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RelayKey(..)")
    }
}

/// 32 hexadecimal digits.
impl std::fmt::Display for RelayKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
