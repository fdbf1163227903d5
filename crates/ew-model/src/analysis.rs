//! A run's numbers after analysis: what reports show. Made by `ew-analyze`, read by `ew-report`.

pub use crate::estimate::{Estimate, LatencyFigures};

use crate::ceiling::Framing;
use crate::completion::FlowCompletion;
use crate::congestion::CongestionImpact;
use crate::facts::InterfaceFacts;
use crate::finding::Verdict;
use crate::inventory::{HostId, Inventory, RackId};
use crate::pods::PodComparison;
use crate::record::{FigureNote, TcpInfo};
use crate::run::RunManifest;
use crate::scenario::AutoSamples;
use crate::setting::Setting;
use crate::sweep::SweepAnalysis;
use crate::threshold::Checked;
use crate::tools::ToolComparison;
use crate::workload::WorkloadKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Everything a report may show. Derived from one run and nothing else.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Analysis {
    /// The run's manifest.
    pub run: RunManifest,
    /// The answer. Whoever writes it adds its sentences
    /// ([`WordedVerdict`](crate::finding::WordedVerdict)), as to all that is skipped here.
    #[serde(skip_serializing)]
    pub verdict: Verdict,
    /// Per stage, in order.
    #[serde(skip_serializing)]
    pub stages: Vec<StageAnalysis>,
    /// Per host, in inventory order.
    pub hosts: Vec<HostAnalysis>,
    /// Ordered pairs that were planned in a single-flow-per-host stage (the mesh when there is
    /// one), by (src, dst).
    #[serde(rename = "cells")]
    pub host_pairs: Vec<HostPair>,
    /// The stage the host pairs come from.
    #[serde(rename = "cells_stage")]
    pub host_pairs_stage: Option<String>,
    /// Ordered pairs of the other stages with rates, in order of the stages.
    #[serde(default)]
    pub pair_maps: Vec<PairMap>,
    /// Single measurements behind the figures of pairs, by (src, dst) and stage. Of a large run
    /// only those of the pairs furthest below their expectation.
    #[serde(default)]
    pub pair_details: Vec<PairDetail>,
    /// Traced paths of pairs, by (src, dst), each path once.
    #[serde(default)]
    pub pair_paths: Vec<PairPath>,
    /// Ordered rack pairs.
    #[serde(skip_serializing)]
    pub rack_pairs: Vec<RackPairAnalysis>,
    /// Racks, in inventory order. Empty without racks, where nothing was measured, and in analyses
    /// of before it was computed.
    #[serde(default)]
    pub racks: Vec<RackAnalysis>,
    /// How the expectation was made: declared or discovered capacities, MTU, efficiency.
    #[serde(skip_serializing)]
    pub basis: Basis,
    /// What the user should know of the run itself, in order of time.
    #[serde(default, rename = "warning_details")]
    pub warnings: Vec<Warning>,
    /// Sweeps over message sizes, in the plan's order.
    #[serde(default, skip_serializing)]
    pub sweeps: Vec<SweepAnalysis>,
    /// External tools side by side with the engine, per kind of workload; empty in a run of the
    /// engine alone.
    #[serde(default, skip_serializing)]
    pub tools: Vec<ToolComparison>,
    /// Pods against their nodes; empty but for `run pods`.
    #[serde(default, skip_serializing)]
    pub pods: Vec<PodComparison>,
    /// Victims under load; empty but for `run congestion`.
    #[serde(default, skip_serializing)]
    pub congestion: Vec<CongestionImpact>,
    /// Messages at a load, against the same alone; empty but for `run flow-completion`.
    #[serde(default, skip_serializing)]
    pub flow_completion: Vec<FlowCompletion>,
    /// The scenario's thresholds, and whether they were met.
    #[serde(default)]
    pub thresholds: Vec<Checked>,
}

/// What the user should know of a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// As the run recorded it.
    Recorded {
        /// In the words of who noticed.
        message: String,
    },
    /// A host's cleanup was not confirmed.
    Unclean {
        /// The host's name.
        name: String,
        /// Why, as recorded.
        message: String,
    },
    /// Tests that were not run.
    Skipped {
        /// Their names, and why, as the plan has it.
        tests: String,
    },
    /// Rounds from which nothing is concluded: flows missing or started late.
    RoundsExcluded {
        /// How many.
        rounds: u32,
    },
    /// A threshold of the scenario that was not met.
    ThresholdMissed(Checked),
    /// What the scenario expects of the network, where no stage could show it.
    NotTested {
        /// What is expected.
        expectation: Expectation,
    },
}

/// An expectation of the network that only some stages can test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// `expect.oversubscription`.
    Oversubscription,
    /// `expect.paths`.
    Paths,
    /// `expect.rtt`.
    Rtt,
}

/// What rates were compared with.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Basis {
    /// Line rate of a reference host. `None` when nothing was measured or configured.
    pub nic_bits_per_sec: Option<f64>,
    /// Where that came from.
    pub nic_rate_source: NicRateSource,
    /// Payload over wire bytes.
    pub efficiency: f64,
    /// What makes that efficiency.
    pub framing: KnownFraming,
}

/// Where the line rate of a reference host comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicRateSource {
    /// The run was not allowed more (`--max-rate`).
    MaxRate,
    /// The scenario or `--expect-nic`.
    Configured,
    /// The hosts' link speed, which the measured rates make plausible.
    LinkSpeed,
    /// The measured rates: median over hosts.
    MedianOfHosts,
    /// Nothing was measured or configured.
    Unknown,
}

impl NicRateSource {
    /// Whether the run's own rates are all that it rests on.
    #[must_use]
    pub fn is_measured(self) -> bool {
        self == Self::MedianOfHosts
    }
}

/// What the flows' packets look like on the link, and what of it was seen.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct KnownFraming {
    /// As calculated with.
    #[serde(flatten)]
    pub framing: Framing,
    /// Whether a host reported the MTU; else it is assumed.
    pub is_mtu_known: bool,
    /// Whether a connection reported its timestamps option; else it is assumed.
    pub are_timestamps_known: bool,
}

/// One stage's totals.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StageAnalysis {
    /// Name in the plan.
    pub name: String,
    /// Pattern word.
    pub pattern: String,
    /// Workload word and tool, for example "tcp-stream (engine)".
    pub workload: String,
    /// The traffic.
    pub kind: WorkloadKind,
    /// What was set otherwise than by default.
    #[serde(default, rename = "setting_details")]
    pub settings: Vec<Setting>,
    /// Whether its rates were compared with what hosts and paths can do. Not so when something else
    /// limited them (pace, limit) or when they cannot be compared with the other stages' (UDP,
    /// another way to the bytes).
    pub judged: bool,
    /// What a reader must know about how the figures came about; ascending, each note once.
    pub labels: Vec<Label>,
    /// Rounds that ran.
    pub rounds: u32,
    /// Flows planned over all rounds.
    pub flows: u32,
    /// Flows without a figure.
    pub missing: u32,
    /// Sum of the flows' rates, median over rounds, bits per second.
    pub aggregate_bits_per_sec: Option<Estimate>,
    /// Median rate of a flow.
    pub flow_bits_per_sec: Option<Estimate>,
    /// Slowest flow.
    pub slowest_bits_per_sec: Option<f64>,
    /// Fastest flow.
    pub fastest_bits_per_sec: Option<f64>,
    /// Median of measured over expected, per flow. `None` without an expectation.
    pub of_expected: Option<f64>,
    /// What the hosts' links alone would have carried. `None` for stages without rates, without a
    /// line rate to count from, and in analyses of before it was computed.
    #[serde(default)]
    pub ceiling: Option<StageCeiling>,
    /// Retransmitted segments, all flows.
    pub retransmits: Option<u64>,
    /// Round-trip time medians (tcp-rr, udp-rr, ping): min, median, max over pairs.
    pub rtt_ns: Option<(u64, u64, u64)>,
    /// Times of transactions. `None` for bulk stages.
    pub latency: Option<LatencyAnalysis>,
    /// Loss and order (udp-stream).
    pub datagrams: Option<DatagramAnalysis>,
    /// Ordered pairs of a stage with transactions or datagrams, by (src, dst).
    pub pairs: Vec<PairAnalysis>,
    /// What it cost the hosts that sent (or asked). `None` where no host reported its counters.
    pub sender_cpu: Option<CpuAnalysis>,
    /// What it cost the hosts that received (or answered).
    pub receiver_cpu: Option<CpuAnalysis>,
    /// Achieved minus planned start over flows: median and 99th percentile of the absolute value,
    /// and the largest.
    pub start_skew_ns: Option<(u64, u64, u64)>,
    /// Each start was on its own host's clock, which was off by this at most. `None` where a clock
    /// was never compared.
    #[serde(default)]
    pub start_skew_error_ns: Option<u64>,
    /// Begin of the first window and end of the last one, since the first reading of any host's
    /// counters, on the controller's clock. `None` in runs of before this was recorded.
    #[serde(default)]
    pub span_ns: Option<(u64, u64)>,
    /// What was asked of `samples: auto`. `None`: the number of repetitions was given.
    #[serde(default)]
    pub auto: Option<AutoSamples>,
    /// Figures whose intervals are wider than was asked, the widest first.
    #[serde(default, rename = "unsettled")]
    pub unconverged: Vec<UnconvergedFigure>,
    /// The sweep ([`Analysis::sweeps`]) that this stage is one message size of.
    #[serde(default)]
    pub sweep: Option<String>,
    /// Sum over flows, per interval, time from the first round's window.
    pub timeline: Vec<TimePoint>,
    /// For `pick: random`: choices that the stock iperf3 would have refused because the selected
    /// server port was taken.
    pub random_collisions: Option<u32>,
}

/// A stage against the max goodput of its hosts' links, with nothing else limiting: line rate
/// ([`Basis`]) times payload over wire bytes for what the stage's flows carry, shared max-min among
/// the flows that ran together.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StageCeiling {
    /// Of one host's link.
    pub link_bits_per_sec: f64,
    /// Sum over the flows of a round, median over rounds.
    pub aggregate_bits_per_sec: f64,
    /// Measured over that, median over rounds: 1.0 is the ceiling.
    pub reached: f64,
}

/// A flow's figure that has not converged: its rate in bits per second (bulk), else its median time
/// in ns.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "UnsettledFigure")]
pub struct UnconvergedFigure {
    /// Sender of the data, or of the requests.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// In a ramp, how many sent at once.
    pub senders_per_rack: Option<u32>,
    /// Median over repetitions.
    pub estimate: Estimate,
    /// Width of its interval over the median. `None` below six repetitions.
    pub width: Option<f64>,
}

/// A note and how many of a stage's flows, counted over rounds, carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Label {
    /// What a reader must know.
    #[serde(rename = "remark")]
    pub note: FigureNote,
    /// Measured flows with it, at either end.
    pub flows: u32,
    /// Measured flows of the stage.
    pub of_flows: u32,
}

/// The transactions of a stage: distributions merged over streams, flows, hosts and rounds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LatencyAnalysis {
    /// Transactions a second, sum over flows, median over rounds.
    pub transactions_per_sec: Option<Estimate>,
    /// From when a request was due to its answer.
    pub times: LatencyFigures,
    /// Open loop only: from when it was really sent.
    pub uncorrected: Option<LatencyFigures>,
    /// Times of connecting (tcp-crr).
    pub connect: Option<LatencyFigures>,
    /// `times` as a curve.
    pub spectrum: Vec<SpectrumPoint>,
    /// `uncorrected` as a curve; empty in a closed loop.
    pub uncorrected_spectrum: Vec<SpectrumPoint>,
}

/// One point of a percentile spectrum.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SpectrumPoint {
    /// Share of the transactions that take longer than `time_ns`, 0 to 1.
    pub share_above: f64,
    /// A time.
    pub time_ns: u64,
}

/// The datagrams of a stage, over all flows and rounds.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DatagramAnalysis {
    /// Received datagrams a second, sum over flows, median over rounds.
    pub received_per_sec: Option<Estimate>,
    /// Datagrams that came, duplicates not counted.
    pub received: u64,
    /// Sequence numbers that never came.
    pub lost: u64,
    /// Lost over lost and received, 0 to 1. `None` when there were neither.
    pub loss: Option<f64>,
    /// The max loss of a flow in a round.
    pub worst_loss: Option<f64>,
    /// Datagrams that came after one with a greater sequence number.
    pub reordered: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1), median over flows and rounds.
    pub jitter_ns: u64,
    /// The largest of them.
    pub worst_jitter_ns: u64,
    /// How long they were under way. `None` where a host's clock is not known to the controller's,
    /// or the tool does not report it.
    #[serde(default)]
    pub one_way: Option<OneWayDelay>,
}

/// Times from a sender's call to its receiver's.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OneWayDelay {
    /// Over all datagrams.
    pub times: LatencyFigures,
    /// How far a time may be off: the errors of both hosts' clocks, the max sum of a pair.
    /// They are those of the last stage's start; clocks drift by some parts per million from there.
    pub clock_error_ns: u64,
}

/// One ordered pair in a stage with transactions or datagrams, over all rounds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PairAnalysis {
    /// Sender of the data, or of the requests.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Measured rounds.
    pub samples: u32,
    /// Median rate, bulk only.
    pub bits_per_sec: Option<f64>,
    /// Transactions a second, median over rounds.
    pub transactions_per_sec: Option<f64>,
    /// Times of its transactions.
    pub times: Option<LatencyFigures>,
    /// Its datagrams.
    pub datagrams: Option<DatagramAnalysis>,
}

/// CPU of the hosts at one end of a stage, summed over hosts and rounds, each host counted once a
/// round.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuAnalysis {
    /// Different hosts.
    pub hosts: u32,
    /// CPUs' worth of time that the engine's threads used on a host, in the mean: 1.0 is one CPU
    /// all the time.
    pub engine_cpus: f64,
    /// The same of everything that ran on a host.
    pub busy_cpus: f64,
    /// Busy time over the time of all CPUs, 0 to 1.
    pub busy_share: f64,
    /// Time in softirq over the time of all CPUs.
    pub softirq_share: f64,
    /// Time a hypervisor gave to others over the time of all CPUs.
    pub steal_share: f64,
    /// The rest of the time. `None` where a host did not report it.
    #[serde(default)]
    pub split: Option<CpuSplitShares>,
    /// Service demand as netperf defines it: whole-host CPU microseconds per KiB that a host sent
    /// and received. `None` when nothing moved, and for stages of transactions.
    pub micros_per_kib: Option<f64>,
    /// The same per transaction. `None` for bulk stages.
    pub micros_per_transaction: Option<f64>,
}

/// Parts of the time of all CPUs, 0 to 1: the columns of `/proc/stat` besides idle, softirq and
/// steal.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuSplitShares {
    /// Programs.
    pub user: f64,
    /// Programs of low priority.
    pub nice: f64,
    /// The kernel, for programs.
    pub system: f64,
    /// Idle, waiting for disks.
    pub iowait: f64,
    /// Interrupts.
    pub irq: f64,
}

/// One point of a stage's throughput over time.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TimePoint {
    /// From the stage's first window; pauses between rounds are excluded from the data, not
    /// from the axis.
    pub t_ns: u64,
    /// Sum over flows.
    pub bits_per_sec: f64,
}

/// Whether a host took part.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
pub enum HostState {
    /// To the end.
    Alive,
    /// Lost on the way.
    Lost {
        /// How it was noticed.
        message: String,
    },
    /// Never came up.
    Failed {
        /// In the launcher's words.
        message: String,
    },
}

/// One host's figures.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HostAnalysis {
    /// Which.
    pub host: HostId,
    /// Whether it took part.
    pub state: HostState,
    /// Rate sent when nothing but the hosts should limit (intra-rack, isolated), median over
    /// flows.
    pub tx_bits_per_sec: Option<Estimate>,
    /// The same, received.
    pub rx_bits_per_sec: Option<Estimate>,
    /// Sending side against peers from the two-way model: 1.0 is typical, 0.5 is half.
    pub tx_effect: Option<f64>,
    /// Receiving side.
    pub rx_effect: Option<f64>,
    /// The interface that carries the host's address.
    pub interface: Option<InterfaceFacts>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Congestion control of the TCP connections it sent over, the engine's only; the first
    /// measured flow's.
    #[serde(default)]
    pub congestion: Option<String>,
    /// Median idle round trip to the peers probed.
    pub idle_rtt_ns: Option<u64>,
    /// Segments it retransmitted, all stages.
    pub retransmits: Option<u64>,
    /// Clock offset error bound.
    pub clock_error_ns: Option<u64>,
    /// Connections its data port refused.
    #[serde(alias = "strangers")]
    pub rejected_connections: u64,
    /// Busiest CPU's busy share in the busiest second, 0 to 1.
    pub busiest_cpu: Option<f64>,
    /// What connection tracking of its network namespace refused during the run. `None` where that
    /// was nothing, or is not known.
    #[serde(default)]
    pub conntrack: Option<ConntrackRefusals>,
    /// What its counters show of each stage it took part in, in order of the stages.
    #[serde(default)]
    pub stages: Vec<HostStageAnalysis>,
    /// Its counters over the run, in order of time.
    #[serde(default)]
    pub series: Vec<HostPoint>,
}

/// What connection tracking (conntrack) of a host's network namespace refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ConntrackRefusals {
    /// Packets dropped, nearly all of new connections.
    pub packets: u64,
    /// Most entries that the table had in a reading.
    pub entries: u64,
    /// Max number of entries. `None` where the namespace does not show it.
    pub max_entries: Option<u64>,
}

impl ConntrackRefusals {
    /// Part of the entries from which on a table is full: its count runs a little behind.
    const FULL: f64 = 0.98;

    /// Whether the table was full. Otherwise translated addresses and ports were used up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let is_near = |max: u64| self.entries as f64 >= Self::FULL * max as f64;
        self.max_entries.is_some_and(is_near)
    }
}

/// One host in one stage: rates and shares over the windows of the rounds it took part in. `None`
/// is not reported by the host, or read too seldom for windows so short.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HostStageAnalysis {
    /// Index of the stage in [`Analysis::stages`].
    pub stage: u32,
    /// Rounds it took part in whose windows the readings cover.
    pub rounds: u32,
    /// The busiest CPU.
    pub busiest_cpu: Option<CpuShare>,
    /// Busy time over the time of all CPUs, 0 to 1.
    pub busy_share: Option<f64>,
    /// Time in which the CPU quota of the agent's control group, or of one above it, throttled the
    /// agent, over the windows' time. Counted for every CPU, so it may exceed 1.
    pub throttled_share: Option<f64>,
    /// Bits the data interface sent, headers as the kernel counts them.
    pub tx_bits_per_sec: Option<f64>,
    /// Bits it received.
    pub rx_bits_per_sec: Option<f64>,
    /// What its link carries: its speed where that is known and believed, else what a reference
    /// host does (as the kernel counts).
    pub link_bits_per_sec: Option<f64>,
    /// Payload of the host's flows, sent: median over rounds.
    pub sent_bits_per_sec: Option<f64>,
    /// Payload of the host's flows, received: median over rounds.
    pub received_bits_per_sec: Option<f64>,
    /// Sent, max over rounds.
    #[serde(rename = "most_sent_bits_per_sec")]
    pub max_sent_bits_per_sec: Option<f64>,
    /// Received, max over rounds.
    #[serde(rename = "most_received_bits_per_sec")]
    pub max_received_bits_per_sec: Option<f64>,
    /// The busiest disk.
    pub disk: Option<DiskShare>,
    /// Segments that the host's flows retransmitted.
    pub retransmits: Option<u64>,
    /// TCP connections of the whole host, max over readings.
    pub tcp_established: Option<u64>,
    /// Packets the host received and dropped: at the interface, in the backlog, at sockets.
    pub receive_drops: Option<u64>,
}

impl HostStageAnalysis {
    /// Share of the link that sending took, 0 to 1.
    #[must_use]
    pub fn tx_link_share(&self) -> Option<f64> {
        Some(self.tx_bits_per_sec? / self.link_bits_per_sec?)
    }

    /// Share of the link that receiving took, 0 to 1.
    #[must_use]
    pub fn rx_link_share(&self) -> Option<f64> {
        Some(self.rx_bits_per_sec? / self.link_bits_per_sec?)
    }
}

/// How one CPU spent its time, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuShare {
    /// Its number.
    pub cpu: u32,
    /// Everything but idle and waiting for disks; stolen time too.
    pub busy_share: f64,
    /// Programs, nice ones too.
    pub user_share: f64,
    /// The kernel on behalf of programs.
    pub system_share: f64,
    /// Interrupts and softirq, where the kernel handles packets.
    pub softirq_share: f64,
    /// Given to others by a hypervisor.
    pub steal_share: f64,
    /// Median of what it ran at, Hz. `None` where the kernel does not report, and while other CPUs
    /// worked more.
    #[serde(default)]
    pub frequency_hz: Option<f64>,
}

/// What one disk did.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DiskShare {
    /// For example `nvme0n1`.
    pub name: String,
    /// Time with at least one request in flight over all time, 0 to 1.
    pub busy_share: f64,
    /// Bytes read.
    pub read_bytes_per_sec: f64,
    /// Bytes written.
    pub written_bytes_per_sec: f64,
    /// Mean time of a request, waiting included. `None` when there was none.
    pub await_ns: Option<u64>,
}

/// A host between two readings of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HostPoint {
    /// End of the span, on the axis of [`StageAnalysis::span_ns`].
    pub t_ns: u64,
    /// Busy share of the busiest CPU, 0 to 1.
    pub busiest_cpu: Option<f64>,
    /// The part of it in interrupts and softirq.
    #[serde(default)]
    pub softirq_share: Option<f64>,
    /// The part of it that a hypervisor gave to others.
    #[serde(default)]
    pub steal_share: Option<f64>,
    /// Bits the data interface sent a second.
    pub tx_bits_per_sec: Option<f64>,
    /// Bits it received a second.
    pub rx_bits_per_sec: Option<f64>,
    /// Busy share of the busiest disk, 0 to 1.
    pub disk_busy_share: Option<f64>,
    /// TCP segments that the whole host retransmitted a second.
    pub retransmits_per_sec: Option<f64>,
}

/// One ordered pair.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HostPair {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Median over samples; `None` is missing, shown as "-".
    pub bits_per_sec: Option<f64>,
    /// Max-min fair expectation times protocol efficiency.
    pub expected_bits_per_sec: Option<f64>,
    /// Number of measured rounds.
    pub samples: u32,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time under load, from `TCP_INFO`.
    pub rtt_us: Option<u32>,
    /// Why it is missing.
    pub missing: Option<String>,
}

/// What a stage measured of its ordered pairs.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PairMap {
    /// Index of the stage in [`Analysis::stages`].
    pub stage: u32,
    /// By (src, dst).
    #[serde(rename = "cells")]
    pub host_pairs: Vec<HostPair>,
}

/// What a stage measured of one ordered pair, one by one.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PairDetail {
    /// Index of the stage in [`Analysis::stages`].
    pub stage: u32,
    /// Sender of the data, or of the requests.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Measured rounds, in order of time.
    pub samples: Vec<PairSample>,
    /// `TCP_INFO` of the sender at the end of the last window, of the stream that moved least.
    /// `None` without TCP, and where the tool does not report it.
    pub tcp: Option<TcpInfo>,
    /// TCP connections of the flow in the last round. `None` as for `tcp`.
    pub streams: Option<u32>,
}

/// One ordered pair in one round. `None` is not measured, or has no meaning in the stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PairSample {
    /// Start of the window, on the axis of [`StageAnalysis::span_ns`].
    pub t_ns: Option<u64>,
    /// Receiver's rate.
    pub bits_per_sec: Option<f64>,
    /// Segments retransmitted in the window.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time at the window's end, from `TCP_INFO`.
    pub rtt_us: Option<u32>,
    /// Median time of a transaction.
    pub time_ns: Option<u64>,
    /// Datagrams lost over lost and received, 0 to 1.
    pub loss: Option<f64>,
}

/// A path that connections of an ordered pair took.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PairPath {
    /// Sender of the data.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Routers by TTL from 1 on. `None`: no answer.
    pub hops: Vec<Option<IpAddr>>,
    /// Connections traced over it.
    pub connections: u32,
}

/// One of a rack's parallel paths, as traces show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RackPath {
    /// The router at which the rack's paths part.
    pub router: IpAddr,
    /// Traced connections out of the rack over it.
    pub connections: u32,
    /// Whether a finding names it.
    pub is_bad: bool,
}

/// One rack's uplinks.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RackAnalysis {
    /// Which.
    pub rack: RackId,
    /// Out of the rack.
    pub tx: UplinkAnalysis,
    /// Into the rack.
    pub rx: UplinkAnalysis,
    /// Its parallel paths, by address. Empty where no trace shows them.
    #[serde(default)]
    pub paths: Vec<RackPath>,
}

/// One direction of a rack's uplinks, in payload.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct UplinkAnalysis {
    /// What the rack's hosts can do together.
    pub hosts_bits_per_sec: f64,
    /// The max that was carried in a round.
    pub carried_bits_per_sec: f64,
    /// What the uplinks carry. `None` where they were not seen to limit.
    pub capacity_bits_per_sec: Option<Estimate>,
    /// Hosts over capacity, to one: the rack's own ratio. `None` where that was not tested.
    pub oversubscription: Option<Estimate>,
    /// Whether the uplinks limit the hosts. `None`: nothing asked as much of them as the hosts can
    /// do.
    pub limited: Option<bool>,
}

/// One direction between two racks.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RackPairAnalysis {
    /// Sending rack.
    pub from: RackId,
    /// Receiving rack.
    pub to: RackId,
    /// Per-host goodput inside the sending rack.
    pub inside_bits_per_sec: Option<Estimate>,
    /// Sum over hosts across, every host active.
    pub across_bits_per_sec: Option<Estimate>,
    /// Ratio to one. `None` when not determined.
    pub oversubscription: Option<Estimate>,
    /// Whether the path limited at all; when not, the ratio is an upper bound shown as "none
    /// found".
    pub limited: Option<bool>,
    /// Senders and aggregate rate, from the ramp.
    pub ramp: Vec<(u32, f64)>,
    /// Senders at which the uplink filled. `None` when it did not, or without a ramp.
    pub knee_senders: Option<f64>,
    /// Uplink capacity from the knee, payload bits per second.
    pub uplink_bits_per_sec: Option<f64>,
    /// Why it is not determined whether the path limits.
    pub details: Option<Undetermined>,
}

/// Why it is not determined whether the path between two racks limits.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Undetermined {
    /// Nothing was measured.
    NotMeasured,
    /// Nothing asked as much of it as its hosts can do.
    NotLoaded,
    /// It loses packets at random, so that what crosses it shows what loss leaves.
    Lossy,
    /// Only single connections crossed it, of which several may have shared one of its paths.
    SingleConnections,
    /// The hosts' rates are so far below line rate that more was not asked of it.
    TestedUpTo {
        /// Of the line rate.
        share: f64,
    },
}

impl Analysis {
    /// The hosts as run.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.run.inventory
    }
}
