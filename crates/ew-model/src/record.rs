//! What was measured: one record per flow and round.

use crate::inventory::HostId;
use crate::latency::{Histogram, Latency};
use crate::place::{FlowId, RoundIndex, StageIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

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
    /// Whether it was there to be in the way of the stage's other flows, and is no result by
    /// itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aggressor: bool,
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
    /// The window as this end achieved it, from the clock reads next to the counter reads.
    pub window_ns: u64,
    /// When the window was to begin, agent's monotonic clock: what the host's counters are laid
    /// against. `None` in runs of before this was recorded.
    #[serde(default)]
    pub window_start_ns: Option<u64>,
    /// Achieved minus planned time of the first send (sender) or of the window's first read
    /// (receiver), ns.
    pub start_skew_ns: i64,
    /// This end's clock was known within this when the round was over. `None` in runs of before it
    /// was recorded.
    #[serde(default)]
    pub clock_error_ns: Option<u64>,
    /// One figure per stream, in stream order.
    pub streams: Vec<StreamRecord>,
    /// The kernel's congestion control of the first stream, for example `cubic`. `None` when the
    /// data is not on TCP connections of the engine's.
    #[serde(default)]
    pub congestion: Option<String>,
    /// Payload bytes per 100 ms (or the tool's own) interval inside the window.
    pub intervals: Vec<Interval>,
    /// Transactions completed inside the window, at the requesting end.
    #[serde(default)]
    pub transactions: Option<u64>,
    /// Times of transactions, at the requesting end.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// Times of connecting, at the requesting end (tcp-crr).
    #[serde(default)]
    pub connect_latency: Option<Histogram>,
    /// Times of messages by their size, from their arrival to the answer to their end, at the
    /// sending end (flow-sizes); ascending, without sizes of which none was completed.
    #[serde(default)]
    pub completions: Vec<SizeTimes>,
    /// Loss and order, at the receiving end (udp-stream).
    #[serde(default)]
    pub datagrams: Option<DatagramCounts>,
    /// From the sender's call to the receiver's, at the receiving end (udp-stream), of the
    /// datagrams that came inside the window: each end's time since the round's start, which the
    /// controller gave each in its own clock. What is wrong with the clocks is in it
    /// ([`EndRecord::clock_error_ns`], of both ends).
    #[serde(default)]
    pub one_way_delay: Option<Histogram>,
    /// What it cost this host. `None` where the host's counters could not be read.
    #[serde(default)]
    pub cpu: Option<CpuUse>,
    /// Ascending, each once.
    #[serde(default, rename = "remarks")]
    pub notes: Vec<FigureNote>,
    /// What an external tool reported besides its counts.
    #[serde(default)]
    #[serde(alias = "told")]
    pub reported: Option<Reported>,
}

/// Times of messages of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeTimes {
    /// Of each message.
    pub bytes: u64,
    /// Of those that were answered inside the window.
    pub times: Histogram,
}

/// What an external tool reports in figures of its own, which are kept as it means them
/// ([`crate::tools::Meaning`]). `None`: it does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reported {
    /// Min time of a transaction.
    pub min_ns: Option<u64>,
    /// Arithmetic mean.
    pub mean_ns: Option<u64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Max.
    pub max_ns: Option<u64>,
    /// `SO_SNDBUF` of the sender (client) as the kernel has it.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` of the receiver (server) as the kernel has it.
    pub receive_buffer_bytes: Option<u64>,
    /// What the receiver asks for in one call.
    pub receive_bytes: Option<u64>,
    /// Of how many tests inside the window its figure is the mean.
    pub tests: Option<u32>,
    /// Width of the 95% interval of that mean, in millionths of the mean.
    pub width_ppm: Option<u32>,
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
    /// Those that the peer reported to have got twice (DSACK, RFC 2883): late, not lost. `None`
    /// where the kernel or the tool does not report.
    #[serde(default)]
    pub spurious_retransmits: Option<u64>,
    /// The routers on the stream's path, at the end that traced it (trace).
    #[serde(default)]
    pub path: Option<TracedPath>,
}

/// Who answered for packets of one 5-tuple as their TTL ran out (RFC 792, RFC 4443: time exceeded).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedPath {
    /// By TTL from 1 on. `None`: no answer.
    pub hops: Vec<Option<IpAddr>>,
    /// Whether a packet with the next TTL came to the peer.
    pub is_complete: bool,
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

/// The fields of Linux' `struct tcp_info` (include/uapi/linux/tcp.h) that show what limits a
/// stream. `None` where the running kernel's struct is too short for a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
    /// What the kernel lets wait in the socket to be sent or acknowledged (`SO_SNDBUF`, its own
    /// overhead included). The kernel grows it up to `net.ipv4.tcp_wmem`. `None` in runs of before
    /// this was recorded.
    #[serde(default)]
    pub send_buffer_bytes: Option<u64>,
    /// `tcpi_bytes_retrans`.
    pub retransmitted_bytes: Option<u64>,
    /// Whether TCP timestamps are on (`TCPI_OPT_TIMESTAMPS`): 12 bytes less payload a segment.
    pub timestamps: bool,
}

/// What the receiving end of a bulk UDP flow saw inside the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Datagrams that came, duplicates not counted.
    pub received: u64,
    /// Sequence numbers that never came.
    pub lost: u64,
    /// Datagrams that came after one with a greater sequence number.
    pub reordered: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Interarrival jitter at the window's end (RFC 3550, section 6.4.1), the mean over the
    /// streams.
    pub jitter_ns: u64,
}

/// What moving the bytes cost a host in one window: of the whole host, so the same in all records
/// of a host and round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUse {
    /// User and system time of the threads that drove the host's streams.
    pub engine_ns: u64,
    /// Time those threads could have run and waited for a CPU (`/proc/PID/task/TID/schedstat`).
    /// `None` where the kernel does not report.
    #[serde(default)]
    pub engine_wait_ns: Option<u64>,
    /// Time all CPUs were busy, whoever used them: everything but idle and waiting for disks.
    /// Counted in ticks.
    pub busy_ns: u64,
    /// Part of `busy_ns` in softirq, where the kernel handles packets.
    pub softirq_ns: u64,
    /// Time a hypervisor gave to others.
    pub steal_ns: u64,
    /// The rest of the time, apart. `None` in runs of before it was read.
    #[serde(default)]
    pub split: Option<CpuSplit>,
    /// CPUs of the host.
    pub cpus: u32,
    /// Payload that all the host's streams sent and received in the window: service demand is time
    /// over this.
    pub moved_bytes: u64,
    /// Transactions that all the host's streams completed in the window.
    pub transactions: u64,
}

/// What all CPUs of a host did in one window besides softirq and what a hypervisor took: the
/// columns of `/proc/stat` (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSplit {
    /// Programs.
    pub user_ns: u64,
    /// Programs of low priority.
    pub nice_ns: u64,
    /// The kernel, for programs.
    pub system_ns: u64,
    /// Idle, waiting for disks.
    pub iowait_ns: u64,
    /// Interrupts.
    pub irq_ns: u64,
}

/// What a reader must know about how a figure came about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum FigureNote {
    /// The sender's application did not touch the bytes (sendfile).
    SenderDidNotTouchBytes,
    /// The receiver's application did not see the bytes (discarded in the kernel).
    ReceiverDidNotSeeBytes,
    /// The kernel copied although zero-copy sending was asked for.
    ZerocopySendCopied,
    /// Received bytes were copied although mapping them was asked for.
    MappedReceiveCopied,
    /// A zero-copy mode is not there on this host; ordinary copying was used.
    ZerocopyUnavailable,
    /// The kernel paced the sender (`SO_MAX_PACING_RATE`).
    PacedByKernel,
    /// The engine paced the sender.
    PacedByEngine,
    /// UDP went through the kernel in trains (GSO, GRO).
    Segmented,
    /// A part of the sockets' settings was refused, and the host's own was used.
    SettingRefused,
    /// No data port was free for a socket next to the listener's, so the kernel chose one outside
    /// their range.
    PortOutsideRange,
    /// Multipath TCP was asked for, and plain TCP was used.
    MptcpUnavailable,
    /// A chosen source port was busy, and another was used.
    SourcePortBusy,
}

impl EndRecord {
    /// See [`FlowRecord::figures`].
    fn figures(&self) -> Self {
        Self {
            streams: Vec::new(),
            congestion: None,
            intervals: Vec::new(),
            latency: self.latency.clone(),
            connect_latency: None,
            completions: Vec::new(),
            one_way_delay: None,
            notes: self.notes.clone(),
            ..*self
        }
    }

    /// Payload rate over the window, bits per second. `None` without a window.
    #[must_use]
    pub fn bits_per_sec(&self) -> Option<f64> {
        bits_per_sec(self.bytes, self.window_ns)
    }

    /// Share of the window that a thread of the engine was ready and waited for a CPU, if only
    /// those of one direction waited: the kernel's count is the sum over the host's threads, and a
    /// host that sends and receives has a thread for each of its `streams` of either. More threads
    /// than CPUs wait for one another; what counts is how much all CPUs were short.
    #[must_use]
    pub fn waited_share(&self, streams: u32) -> Option<f64> {
        let cpu = self.cpu.as_ref()?;
        let threads = f64::from(streams.div_ceil(2).min(cpu.cpus).max(1));
        let waited_ns = cpu.engine_wait_ns? as f64;
        (self.window_ns > 0).then(|| waited_ns / threads / self.window_ns as f64)
    }

    /// Payload rates of the intervals, in bits per second and their order; those without a length
    /// have none.
    pub fn interval_bits_per_sec(&self) -> impl Iterator<Item = f64> {
        let intervals = self.intervals.iter();
        intervals.filter_map(|interval| bits_per_sec(interval.bytes, interval.length_ns))
    }
}

fn bits_per_sec(bytes: u64, time_ns: u64) -> Option<f64> {
    (time_ns > 0).then(|| bytes as f64 * 8e9 / time_ns as f64)
}

impl FlowRecord {
    /// A copy of its figures, without streams, intervals and those times that say nothing of a
    /// typical transaction: what is kept of every flow of a large run.
    #[must_use]
    pub fn figures(&self) -> Self {
        Self {
            outcome: self.outcome.clone(),
            sender: self.sender.as_ref().map(EndRecord::figures),
            receiver: self.receiver.as_ref().map(EndRecord::figures),
            ..*self
        }
    }

    /// Payload rate by the receiver's count. `None` when missing.
    #[must_use]
    pub fn bits_per_sec(&self) -> Option<f64> {
        if self.outcome != FlowOutcome::Measured {
            return None;
        }
        self.receiver.as_ref()?.bits_per_sec()
    }

    /// Segments retransmitted by the sender inside the window, over all streams. `None` when
    /// unknown.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        self.sum(|stream| stream.retransmits)
    }

    /// Those of [`FlowRecord::retransmits`] that were spurious. `None` when unknown.
    #[must_use]
    pub fn spurious_retransmits(&self) -> Option<u64> {
        self.sum(|stream| stream.spurious_retransmits)
    }

    /// Segments that were lost, by what the sender retransmitted, inside the window, over all
    /// streams. `None` when unknown.
    #[must_use]
    pub fn lost_segments(&self) -> Option<u64> {
        self.sum(StreamRecord::lost_segments)
    }

    fn sum(&self, count: impl Fn(&StreamRecord) -> Option<u64>) -> Option<u64> {
        self.sender.as_ref()?.streams.iter().map(count).sum()
    }
}

impl StreamRecord {
    /// Segments that were lost, by what was retransmitted. `None` when unknown.
    #[must_use]
    pub fn lost_segments(&self) -> Option<u64> {
        let spurious = self.spurious_retransmits.unwrap_or(0);
        self.retransmits.map(|count| count.saturating_sub(spurious))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_twice_was_not_lost() {
        let lost = |retransmits, spurious_retransmits| {
            let stream = StreamRecord {
                retransmits,
                spurious_retransmits,
                ..StreamRecord::default()
            };
            stream.lost_segments()
        };
        assert_eq!(lost(Some(5), Some(3)), Some(2));
        assert_eq!(lost(Some(5), None), Some(5));
        // Reports of what was repeated before the window.
        assert_eq!(lost(Some(1), Some(3)), Some(0));
        assert_eq!(lost(None, Some(3)), None);
    }
}
