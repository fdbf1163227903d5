//! What both ends of a flow report, from what its streams did.

use crate::dice::Dice;
use crate::network::CPUS;
use crate::paths::FiveTuple;
use crate::round_run::RoundRun;
use ew_model::latency::{Histogram, Latency};
use ew_model::plan::{Flow, Round};
use ew_model::record::{CpuUse, DatagramCounts, EndRecord, Interval, StreamRecord, TcpInfo};
use ew_model::topology::CongestionControl;
use ew_model::{HostId, WorkloadKind};

/// The engine reads its counters this often.
const INTERVAL_NS: u64 = 100_000_000;
/// Clock reads at a window's edges are this far off, one sigma.
const EDGE_NS: f64 = 20_000.0;
/// A start is this far off, one sigma.
const SKEW_NS: f64 = 60_000.0;
/// Part of the CPU time per byte that is the kernel's packet handling.
const SOFTIRQ_PART: f64 = 0.4;
/// What an idle host's CPUs do, of one.
const IDLE_CORES: f64 = 0.02;

/// What limits a stream that no shared resource limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitedBy {
    Nothing,
    Pace,
    FlowCap,
    ReceiveWindow,
    SendBuffer,
    Loss,
    Core,
}

/// What one stream did in the window.
#[derive(Clone, Debug)]
pub(crate) struct StreamResult {
    pub(crate) tuple: FiveTuple,
    pub(crate) payload_bits_per_sec: f64,
    pub(crate) base_round_trip_ns: u64,
    pub(crate) round_trip_ns: u64,
    pub(crate) window_segments: f64,
    /// Segments retransmitted over segments sent.
    pub(crate) loss_share: f64,
    /// Whether packets are lost at random on its way.
    pub(crate) is_lossy: bool,
    pub(crate) limited_by: LimitedBy,
}

/// What one flow did.
#[derive(Clone, Debug)]
pub(crate) struct FlowResult {
    pub(crate) streams: Vec<StreamResult>,
    pub(crate) control: CongestionControl,
    pub(crate) segment_bytes: f64,
    /// Windows that its slower end waited for a CPU.
    pub(crate) wait: f64,
    /// Why there is no figure.
    pub(crate) missing: Option<String>,
}

impl FlowResult {
    pub(crate) fn missing(reason: &str) -> Self {
        Self {
            streams: Vec::new(),
            control: CongestionControl::Cubic,
            segment_bytes: 1.0,
            wait: 0.0,
            missing: Some(reason.into()),
        }
    }

    fn payload_bits_per_sec(&self) -> f64 {
        self.streams.iter().map(|s| s.payload_bits_per_sec).sum()
    }
}

/// What each host moved in a round.
#[derive(Debug)]
pub(crate) struct HostTotals {
    moved_bytes: Vec<f64>,
}

impl HostTotals {
    pub(crate) fn new(run: &RoundRun<'_>, round: &Round, results: &[FlowResult]) -> Self {
        let mut moved_bytes = vec![0.0; run.network.hosts.len()];
        if run.stage.workload.kind.is_bulk() {
            for (flow, result) in round.flows.iter().zip(results) {
                let bytes = result.payload_bits_per_sec() * run.stage.duration_ns as f64 / 8e9;
                moved_bytes[flow.src.index()] += bytes;
                moved_bytes[flow.dst.index()] += bytes;
            }
        }
        Self { moved_bytes }
    }

    fn cpu(&self, run: &RoundRun<'_>, host: HostId, window_ns: u64) -> CpuUse {
        let spec = run.network.host(host).spec;
        let cpus = if spec.cpu_hog_share.is_some() {
            1
        } else {
            spec.cpus.unwrap_or(CPUS)
        };
        let window = window_ns as f64;
        let work_ns = self.moved_bytes[host.index()] * run.noise.cpu_ns_per_byte;
        let softirq_ns = work_ns * SOFTIRQ_PART;
        let wait_ns = run.waits.of(host) * window;
        let hog = spec.cpu_hog_share.unwrap_or(0.0);
        let steal_ns = wait_ns * run.noise.starvation.steal_share;
        let all_ns = f64::from(cpus) * window;
        let busy_ns = work_ns + (IDLE_CORES + hog) * window;
        CpuUse {
            // The kernel's part is done in the name of the thread that calls it.
            engine_ns: work_ns as u64,
            engine_wait_ns: Some((wait_ns + hog * window) as u64),
            busy_ns: busy_ns.min(all_ns) as u64,
            softirq_ns: softirq_ns.min(all_ns) as u64,
            steal_ns: steal_ns.min(all_ns) as u64,
            split: None,
            cpus,
            moved_bytes: self.moved_bytes[host.index()] as u64,
            transactions: 0,
        }
    }
}

/// Bulk TCP.
pub(crate) fn stream_ends(
    run: &RoundRun<'_>,
    flow: &Flow,
    result: &FlowResult,
    hosts: &HostTotals,
    dice: &mut Dice,
) -> (EndRecord, EndRecord) {
    let mut sender = end(run, flow.src, result.wait, hosts, dice);
    let mut receiver = end(run, flow.dst, result.wait, hosts, dice);
    for stream in &result.streams {
        let bytes = bytes_in(stream.payload_bits_per_sec, receiver.window_ns);
        receiver.streams.push(StreamRecord {
            bytes,
            local_port: stream.tuple.dst_port,
            peer_port: stream.tuple.src_port,
            tcp_info: Some(tcp_info(run, stream, result, 0)),
            retransmits: Some(0),
            spurious_retransmits: Some(0),
            path: None,
        });
        let sent = bytes_in(stream.payload_bits_per_sec, sender.window_ns);
        let segments = sent as f64 / result.segment_bytes;
        let retransmits = (segments * stream.loss_share + dice.unit()).floor() as u64;
        sender.streams.push(StreamRecord {
            bytes: sent,
            local_port: stream.tuple.src_port,
            peer_port: stream.tuple.dst_port,
            tcp_info: Some(tcp_info(run, stream, result, retransmits)),
            retransmits: Some(retransmits),
            spurious_retransmits: Some(0),
            path: None,
        });
    }
    receiver.bytes = receiver.streams.iter().map(|s| s.bytes).sum();
    sender.bytes = sender.streams.iter().map(|s| s.bytes).sum();
    sender.congestion = Some(result.control.name().into());
    receiver.congestion = Some(result.control.name().into());
    receiver.intervals = intervals(run, result, &receiver, dice);
    sender.intervals = scaled(&receiver.intervals, &sender);
    (sender, receiver)
}

/// Bulk UDP: what is not carried is lost.
pub(crate) fn datagram_ends(
    run: &RoundRun<'_>,
    flow: &Flow,
    result: &FlowResult,
    efficiency: f64,
    hosts: &HostTotals,
    dice: &mut Dice,
) -> (EndRecord, EndRecord) {
    let workload = &run.stage.workload;
    let nic = run.network.host(flow.src).spec.nic.tx_bits_per_sec as f64 * efficiency;
    let offered = workload.pace.flow_bits_per_sec.unwrap_or_else(|| {
        let stream = workload.pace.stream_bits_per_sec;
        stream.map_or(nic, |rate| rate * result.streams.len() as f64)
    });
    let mut sender = end(run, flow.src, result.wait, hosts, dice);
    let mut receiver = end(run, flow.dst, result.wait, hosts, dice);
    let arrived: f64 = result
        .streams
        .iter()
        .map(|s| s.payload_bits_per_sec * (1.0 - s.loss_share))
        .sum();
    sender.bytes = bytes_in(offered.min(nic), sender.window_ns);
    receiver.bytes = bytes_in(arrived.min(offered), receiver.window_ns).min(sender.bytes);
    let datagram = workload.message_bytes.max(1);
    receiver.datagrams = Some(DatagramCounts {
        received: receiver.bytes / datagram,
        lost: (sender.bytes - receiver.bytes) / datagram,
        jitter_ns: 2_000 + dice.below(8_000) as u64,
        ..DatagramCounts::default()
    });
    for stream in &result.streams {
        let share = |all: u64| all / result.streams.len() as u64;
        sender.streams.push(StreamRecord {
            bytes: share(sender.bytes),
            local_port: stream.tuple.src_port,
            peer_port: stream.tuple.dst_port,
            ..StreamRecord::default()
        });
        receiver.streams.push(StreamRecord {
            bytes: share(receiver.bytes),
            local_port: stream.tuple.dst_port,
            peer_port: stream.tuple.src_port,
            ..StreamRecord::default()
        });
    }
    receiver.intervals = intervals(run, result, &receiver, dice);
    (sender, receiver)
}

/// Requests and answers: round trips at the requesting end.
pub(crate) fn request_ends(
    run: &RoundRun<'_>,
    flow: &Flow,
    result: &FlowResult,
    hosts: &HostTotals,
    dice: &mut Dice,
) -> (EndRecord, EndRecord) {
    let mut sender = end(run, flow.src, result.wait, hosts, dice);
    let receiver = end(run, flow.dst, result.wait, hosts, dice);
    let base_ns = result.streams.first().map_or(1, |s| s.base_round_trip_ns) as f64;
    let trips = if run.stage.workload.kind == WorkloadKind::TcpCrr {
        3.0
    } else {
        1.0
    };
    let typical_ns =
        base_ns * trips * (1.0 + 0.1 * run.noise.level * dice.normal().abs()) * (1.0 + result.wait);
    let workload = &run.stage.workload;
    let parallel = f64::from(workload.streams.max(1)) * f64::from(workload.outstanding.max(1));
    let closed_loop = run.stage.duration_ns as f64 / typical_ns * parallel;
    let open_loop = workload
        .pace
        .requests_per_sec
        .map(|rate| rate * run.stage.duration_ns as f64 / 1e9);
    let count = open_loop
        .map_or(closed_loop, |open| open.min(closed_loop))
        .max(1.0) as u64;
    let times = times(typical_ns, count, dice);
    sender.transactions = Some(count);
    sender.bytes = count * workload.message_bytes;
    sender.latency = Some(Latency {
        uncorrected: open_loop.map(|_| times.clone()),
        times: times.clone(),
    });
    sender.connect_latency = (workload.kind == WorkloadKind::TcpCrr).then_some(times);
    (sender, receiver)
}

/// The path of every stream, and the round trip of the SYNs that arrive.
pub(crate) fn traced_ends(
    run: &RoundRun<'_>,
    flow: &Flow,
    result: &FlowResult,
    hosts: &HostTotals,
    dice: &mut Dice,
) -> (EndRecord, EndRecord) {
    let mut sender = end(run, flow.src, result.wait, hosts, dice);
    let receiver = end(run, flow.dst, result.wait, hosts, dice);
    for number in 0..run.streams() {
        let tuple = run.tuple(flow, number, dice);
        sender.streams.push(StreamRecord {
            local_port: tuple.src_port,
            peer_port: tuple.dst_port,
            path: Some(run.network.trace(flow.src, flow.dst, tuple)),
            ..StreamRecord::default()
        });
    }
    let answered = result.streams.len() as u64;
    let round_trip_ns = result.streams.first().map_or(0, |s| s.base_round_trip_ns);
    sender.transactions = (answered > 0).then_some(answered);
    sender.latency = (answered > 0).then(|| Latency {
        times: Histogram::of(round_trip_ns, answered),
        uncorrected: None,
    });
    (sender, receiver)
}

/// A distribution with a tail: most at the typical time, one in a hundred at two to five times.
fn times(typical_ns: f64, count: u64, dice: &mut Dice) -> Histogram {
    const SHAPE: [(f64, f64); 6] = [
        (0.9, 0.2),
        (1.0, 0.4),
        (1.1, 0.25),
        (1.3, 0.13),
        (1.8, 0.015),
        (3.0, 0.005),
    ];
    let mut histogram = Histogram::default();
    let mut left = count;
    for (factor, share) in SHAPE {
        let here = ((count as f64 * share).ceil() as u64).min(left);
        left -= here;
        if here > 0 {
            let time_ns = (typical_ns * factor * (1.0 + 0.05 * dice.unit())) as u64;
            histogram.merge(&Histogram::of(time_ns, here));
        }
    }
    if !histogram.buckets.is_empty() {
        histogram.min_ns = histogram.buckets[0].0;
        histogram.max_ns = histogram.buckets[histogram.buckets.len() - 1].0;
    }
    histogram
}

fn end(
    run: &RoundRun<'_>,
    host: HostId,
    wait: f64,
    hosts: &HostTotals,
    dice: &mut Dice,
) -> EndRecord {
    let level = run.noise.level;
    let edge_ns = (dice.normal() * EDGE_NS * level) as i64;
    let window_ns = run.stage.duration_ns.saturating_add_signed(edge_ns);
    let late_ns = wait * run.noise.starvation.skew_ns as f64 * dice.between(0.3, 2.0);
    EndRecord {
        window_ns,
        window_start_ns: Some(run.clocks.agent_ns(host, run.window_start_ns)),
        start_skew_ns: (dice.normal().abs() * SKEW_NS * level + late_ns) as i64,
        cpu: Some(hosts.cpu(run, host, window_ns)),
        ..EndRecord::default()
    }
}

fn bytes_in(bits_per_sec: f64, window_ns: u64) -> u64 {
    (bits_per_sec * window_ns as f64 / 8e9) as u64
}

fn tcp_info(
    run: &RoundRun<'_>,
    stream: &StreamResult,
    result: &FlowResult,
    retransmits: u64,
) -> TcpInfo {
    let window_us = run.stage.duration_ns / 1000;
    let limited_us = |by| {
        Some(if stream.limited_by == by {
            window_us * 9 / 10
        } else {
            0
        })
    };
    TcpInfo {
        // The start overshoots.
        total_retransmits: retransmits as u32 + (stream.loss_share > 0.0) as u32,
        rtt_us: (stream.round_trip_ns / 1000) as u32,
        rtt_variation_us: (stream.round_trip_ns / 10_000) as u32,
        min_rtt_us: Some((stream.base_round_trip_ns / 1000) as u32),
        congestion_window_segments: stream.window_segments.ceil().max(2.0) as u32,
        send_mss_bytes: result.segment_bytes as u32,
        receive_mss_bytes: result.segment_bytes as u32,
        path_mtu_bytes: result.segment_bytes as u32
            + if stream.tuple.src.is_ipv4() { 52 } else { 72 },
        delivery_rate_bytes_per_sec: Some((stream.payload_bits_per_sec / 8.0) as u64),
        busy_us: Some(window_us),
        receive_window_limited_us: limited_us(LimitedBy::ReceiveWindow),
        send_buffer_limited_us: limited_us(LimitedBy::SendBuffer),
        send_buffer_bytes: None,
        retransmitted_bytes: Some((retransmits as f64 * result.segment_bytes) as u64),
        timestamps: true,
    }
}

/// Bytes of 100 ms each, with a swing that depends on what limits the flow; the sum is the flow's.
fn intervals(
    run: &RoundRun<'_>,
    result: &FlowResult,
    end: &EndRecord,
    dice: &mut Dice,
) -> Vec<Interval> {
    let count = (end.window_ns as f64 / INTERVAL_NS as f64).round().max(1.0) as usize;
    let is_lossy = result.streams.iter().any(|s| s.is_lossy);
    let is_shared = result.streams.iter().any(|s| s.loss_share > 0.0);
    let kind = match (is_lossy, is_shared || result.wait > 0.2) {
        (true, _) => 10.0,
        (_, true) => 3.0,
        _ => 1.0,
    };
    let spread = run.noise.interval_spread * run.noise.level * kind;
    let parts: Vec<f64> = (0..count)
        .map(|_| (1.0 + spread * dice.normal()).clamp(0.05, 2.0))
        .collect();
    let all: f64 = parts.iter().sum();
    let length_ns = end.window_ns / count as u64;
    let intervals = (0..).zip(parts).map(|(number, part)| Interval {
        offset_ns: number * length_ns,
        length_ns,
        bytes: (end.bytes as f64 * part / all) as u64,
    });
    intervals.collect()
}

/// The same intervals at the other end.
fn scaled(intervals: &[Interval], end: &EndRecord) -> Vec<Interval> {
    let all: u64 = intervals.iter().map(|interval| interval.bytes).sum();
    let factor = end.bytes as f64 / all.max(1) as f64;
    let scaled = intervals.iter().map(|interval| Interval {
        bytes: (interval.bytes as f64 * factor) as u64,
        ..*interval
    });
    scaled.collect()
}
