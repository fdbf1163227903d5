//! What was measured: one record per flow and round.

use crate::inventory::HostId;
use crate::plan::{FlowId, RoundIndex, StageIndex};
use serde::{Deserialize, Serialize};

/// One flow of one round, as both ends saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// The stage.
    pub stage: StageIndex,
    /// The round in the stage.
    pub round: RoundIndex,
    /// The flow in the plan.
    pub flow: FlowId,
    /// Repetition of the round.
    pub sample: u32,
    /// Sender of the data.
    pub src: HostId,
    /// Receiver of the data.
    pub dst: HostId,
    /// Whether there is a figure, and if not, why.
    pub outcome: FlowOutcome,
    /// The sender's view. `None` when it did not report.
    pub sender: Option<EndRecord>,
    /// The receiver's view: its bytes over its window are the flow's rate.
    pub receiver: Option<EndRecord>,
}

/// Whether a flow was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowOutcome {
    /// Both ends were up for the whole window.
    Measured,
    /// No figure: in reports "-", never 0.
    Missing {
        /// In words, with the failing end and the system's own message.
        reason: String,
    },
}

/// One end's counts inside the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Payload bytes sent or received inside the window.
    pub bytes: u64,
    /// The window as this end achieved it, from the clock reads beside the counter reads.
    pub window_ns: u64,
    /// Achieved minus planned time of the first send (sender) or of the window's first read (receiver), ns.
    pub start_skew_ns: i64,
    /// One figure per stream, in stream order.
    pub streams: Vec<StreamRecord>,
    /// Payload bytes per 100 ms (or the tool's own) interval inside the window.
    pub intervals: Vec<Interval>,
    /// Round-trip times (tcp-rr only).
    pub latency: Option<LatencySummary>,
}

/// One stream's counts at one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// Payload bytes inside the window.
    pub bytes: u64,
    /// Local port, so that a hashed path can be recognised.
    pub local_port: u16,
    /// Peer's port.
    pub peer_port: u16,
    /// `TCP_INFO` at the window's end. `None` where it could not be read.
    pub tcp_info: Option<TcpInfo>,
    /// Segments retransmitted inside the window.
    pub retransmits: Option<u64>,
}

/// Bytes of a part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, from the window's start.
    pub offset_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// Payload bytes.
    pub bytes: u64,
}

/// The fields of Linux' `struct tcp_info` (include/uapi/linux/tcp.h) that say what limits a stream.
/// `None` where the running kernel's struct is too short to hold a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// `tcpi_total_retrans`: segments, since the connection began.
    pub total_retransmits: u32,
    /// `tcpi_rtt`, smoothed.
    pub rtt_us: u32,
    /// `tcpi_rttvar`.
    pub rtt_variation_us: u32,
    /// `tcpi_min_rtt`.
    pub min_rtt_us: Option<u32>,
    /// `tcpi_snd_cwnd`, in segments.
    pub congestion_window_segments: u32,
    /// `tcpi_snd_mss`.
    pub send_mss_bytes: u32,
    /// `tcpi_rcv_mss`.
    pub receive_mss_bytes: u32,
    /// `tcpi_pmtu`.
    pub path_mtu_bytes: u32,
    /// `tcpi_delivery_rate`, bytes per second.
    pub delivery_rate_bytes_per_sec: Option<u64>,
    /// `tcpi_busy_time`: time with data in flight.
    pub busy_us: Option<u64>,
    /// `tcpi_rwnd_limited`: part of busy time limited by the receiver's window.
    pub receive_window_limited_us: Option<u64>,
    /// `tcpi_sndbuf_limited`: part of busy time limited by the send buffer.
    pub send_buffer_limited_us: Option<u64>,
    /// `tcpi_bytes_retrans`.
    pub retransmitted_bytes: Option<u64>,
    /// Whether TCP timestamps are on (`TCPI_OPT_TIMESTAMPS`): 12 bytes less payload a segment.
    pub timestamps: bool,
}

/// Round-trip times of the transactions inside the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of transactions.
    pub count: u64,
    /// Least.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Greatest.
    pub max_ns: u64,
}

impl FlowRecord {
    /// Payload rate by the receiver's count. `None` when missing.
    #[must_use]
    pub fn bits_per_sec(&self) -> Option<f64> {
        if self.outcome != FlowOutcome::Measured {
            return None;
        }
        let end = self.receiver.as_ref()?;
        (end.window_ns > 0).then(|| end.bytes as f64 * 8e9 / end.window_ns as f64)
    }

    /// Segments retransmitted by the sender inside the window, over all streams. `None` when unknown.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        self.sender
            .as_ref()?
            .streams
            .iter()
            .map(|s| s.retransmits)
            .sum()
    }
}
