//! Where a curve breaks: sizes that wait for a timer, and steps at the boundaries of the protocol.

use super::points::Measured;
use ew_model::sweep::{
    Boundary, RoundTripOfSize, SizeBoundary, StepFacts, StepKind, SweepStep, TimeOfSize, TimerWait,
};
use ew_model::workload::Workload;
use ew_stats::median;
use std::ops::Range;

const MS: f64 = 1e6;
/// Linux delays an acknowledgement by at least 40 ms (TCP_DELACK_MIN, include/net/tcp.h: HZ / 25),
/// counted in ticks of up to 10 ms.
const DELAYED_ACK_NS: Range<f64> = 38.0 * MS..52.0 * MS;
/// Linux sends a segment again after at least 200 ms and a round trip (TCP_RTO_MIN).
const RETRANSMISSION_NS: Range<f64> = 195.0 * MS..260.0 * MS;
/// Sizes this near to each other take the same time but for what lies between them.
const NEAR: f64 = 1.1;
/// A step takes this much longer than size explains, at least.
const MIN_STEP: f64 = 0.1;
/// And this many times more than near sizes differ anyway.
const STEP_OVER_NOISE: f64 = 4.0;
/// One segment more matters up to this many.
const MAX_SEGMENTS: u64 = 4;
/// RFC 6928.
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// A sender throttled for this share of its busy time is limited by a buffer.
const LIMITED_SHARE: f64 = 0.2;
/// Sizes whose round trips are shown.
const MAX_EVIDENCE: usize = 3;

/// Neighbouring sizes whose round trips, or one in a hundred of them, wait for a timer of TCP.
pub(super) fn timers(curve: &[Measured], workload: &Workload) -> Vec<SweepStep> {
    let Some(shortest) = ShortestRoundTrip::of(curve) else {
        return Vec::new();
    };
    let kinds: Vec<Option<Wait>> = curve.iter().map(|p| shortest.wait(p)).collect();
    let mut steps = Vec::new();
    let mut at = 0;
    while at < curve.len() {
        let kind = kinds[at].map(|wait| wait.kind);
        let alike = kinds[at..]
            .iter()
            .take_while(|wait| wait.map(|w| w.kind) == kind);
        let end = at + alike.count().max(1);
        if let Some(kind) = kind {
            let waits: Vec<Wait> = kinds[at..end].iter().copied().flatten().collect();
            steps.push(timer_step(kind, &curve[at..end], &waits, workload));
        }
        at = end;
    }
    steps
}

/// The curve without the sizes whose median waits for a timer: they show nothing of the others.
pub(super) fn without(curve: &[Measured], timers: &[SweepStep]) -> Vec<Measured> {
    let waits = |point: &&Measured| {
        let is_in = |step: &SweepStep| (step.from_bytes..=step.to_bytes).contains(&point.bytes);
        timers.iter().any(|step| is_in(step) && step.factor > 1.5)
    };
    curve
        .iter()
        .filter(|point| !waits(point))
        .cloned()
        .collect()
}

/// The shortest round trip of a size: the min of all sizes, and its time on the wire.
struct ShortestRoundTrip {
    min_ns: f64,
    bits_per_sec: f64,
}

/// How a size waits.
#[derive(Clone, Copy)]
struct Wait {
    kind: StepKind,
    excess_ns: f64,
    /// Median round trip over the shortest one of the size.
    factor: f64,
    /// Whether most round trips wait, not only one in a hundred.
    most: bool,
}

impl ShortestRoundTrip {
    /// Of a ping-pong; streaming has no round trips.
    fn of(curve: &[Measured]) -> Option<Self> {
        let seen = curve.iter().filter_map(|p| Some(p.round_trip?.min_ns));
        let reported = curve.iter().filter_map(|p| p.min_rtt_ns);
        curve.iter().find(|p| p.round_trip.is_some())?;
        Some(Self {
            min_ns: seen.chain(reported).min()? as f64,
            bits_per_sec: curve.iter().map(Measured::bits_per_sec).fold(1.0, f64::max),
        })
    }

    fn wait(&self, point: &Measured) -> Option<Wait> {
        let times = point.round_trip?;
        let shortest_ns = self.min_ns + 2.0 * 8e9 * point.bytes as f64 / self.bits_per_sec;
        let median_ns = times.p50_ns as f64;
        let wait = |excess_ns: f64, most: bool| {
            let kind = if DELAYED_ACK_NS.contains(&excess_ns) {
                StepKind::DelayedAck
            } else if RETRANSMISSION_NS.contains(&excess_ns) {
                StepKind::RetransmissionTimeout
            } else {
                return None;
            };
            // Great messages take such times by themselves.
            (excess_ns > shortest_ns).then_some(Wait {
                kind,
                excess_ns,
                factor: median_ns / shortest_ns,
                most,
            })
        };
        let rare = times.p99_ns.map(|p99_ns| p99_ns as f64 - median_ns);
        wait(median_ns - shortest_ns, true).or_else(|| wait(rare?, false))
    }
}

fn timer_step(
    kind: StepKind,
    points: &[Measured],
    waits: &[Wait],
    workload: &Workload,
) -> SweepStep {
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let over = |figure: fn(&Wait) -> f64| median(&waits.iter().map(figure).collect::<Vec<_>>());
    let excess_ns = over(|wait| wait.excess_ns).unwrap_or_default();
    let retransmits: u64 = points.iter().map(|point| point.retransmits).sum();
    SweepStep {
        kind,
        from_bytes: first.bytes,
        to_bytes: last.bytes,
        factor: over(|wait| wait.factor).unwrap_or(1.0),
        // Nagle's algorithm waits for an acknowledgement; a loss has its counter.
        certain: match kind {
            StepKind::DelayedAck => !workload.socket.nodelay,
            _ => retransmits > 0,
        },
        facts: StepFacts::Timer(TimerWait {
            excess_ns: excess_ns as u64,
            is_rare: !waits.iter().any(|wait| wait.most),
            sizes: points
                .iter()
                .take(MAX_EVIDENCE)
                .filter_map(round_trip)
                .collect(),
        }),
    }
}

fn round_trip(point: &Measured) -> Option<RoundTripOfSize> {
    let times = point.round_trip?;
    Some(RoundTripOfSize {
        message_bytes: point.bytes,
        stage: point.stage.clone(),
        p50_ns: times.p50_ns,
        p99_ns: times.p99_ns,
        retransmits: point.retransmits,
    })
}

/// Sizes at which a message takes longer than the size before it and the sizes' ratio explain, and
/// stays so.
pub(super) fn steps(curve: &[Measured], workload: &Workload) -> Vec<SweepStep> {
    let min = MIN_STEP.max(STEP_OVER_NOISE * noise(curve));
    let is_step = |at: &usize| {
        let jump = excess(&curve[*at], &curve[at + 1]);
        jump > min && stays(curve, *at, jump)
    };
    (0..curve.len().saturating_sub(1))
        .filter(is_step)
        .map(|at| step(&curve[at], &curve[at + 1], workload))
        .collect()
}

/// How much more time than its size explains a message takes after another, as a logarithm: at most
/// in proportion is smooth.
fn excess(before: &Measured, after: &Measured) -> f64 {
    (after.message_ns / before.message_ns).ln() - (after.bytes as f64 / before.bytes as f64).ln()
}

fn are_near(before: &Measured, after: &Measured) -> bool {
    after.bytes as f64 <= NEAR * before.bytes as f64
}

/// How much near sizes differ for no reason, as a logarithm.
fn noise(curve: &[Measured]) -> f64 {
    let near = curve.windows(2).filter(|pair| are_near(&pair[0], &pair[1]));
    let distances: Vec<f64> = near.map(|pair| excess(&pair[0], &pair[1]).abs()).collect();
    median(&distances).unwrap_or_default()
}

/// Whether the sizes beyond are as slow, and those before as fast: one odd size is noise.
fn stays(curve: &[Measured], at: usize, jump: f64) -> bool {
    let half = (jump / 2.0).exp();
    let slow_after = curve[at + 2..]
        .iter()
        .take(2)
        .all(|p| p.message_ns >= curve[at].message_ns * half);
    let fast_before = curve[..at]
        .iter()
        .rev()
        .take(2)
        .all(|p| p.message_ns <= curve[at + 1].message_ns / half);
    slow_after && fast_before && (at > 0 || at + 2 < curve.len())
}

fn step(before: &Measured, after: &Measured, workload: &Workload) -> SweepStep {
    let (kind, certain, between) = name(before, after, workload);
    SweepStep {
        kind,
        from_bytes: before.bytes,
        to_bytes: after.bytes,
        factor: excess(before, after).exp(),
        certain,
        facts: StepFacts::Boundary(SizeBoundary {
            between,
            sizes: [before, after].map(time),
        }),
    }
}

/// What lies between two sizes: the counters first, then the boundaries.
fn name(before: &Measured, after: &Measured, workload: &Workload) -> (StepKind, bool, Boundary) {
    let limited = |point: &Measured| point.limited_share.unwrap_or_default();
    let slow_at_times = limited(after) >= LIMITED_SHARE && limited(before) < LIMITED_SHARE / 2.0;
    if slow_at_times {
        let limited_share = limited(after);
        let full = Boundary::FullBuffer { limited_share };
        return (StepKind::SocketBuffer, true, full);
    }
    if let Some(buffer) = buffer_between(before, after, workload) {
        return (StepKind::SocketBuffer, false, buffer);
    }
    let mss = after.mss_bytes.or(before.mss_bytes).filter(|mss| *mss > 0);
    let Some(mss_bytes) = mss else {
        return (StepKind::Unknown, false, Boundary::NotDetermined);
    };
    let is_between = |boundary: u64| (before.bytes..after.bytes).contains(&boundary);
    if let Some(segments) = (1..=MAX_SEGMENTS).find(|n| is_between(n * mss_bytes)) {
        let segment = Boundary::Segment {
            segments,
            mss_bytes,
        };
        return (StepKind::Segment, are_near(before, after), segment);
    }
    if is_between(INITIAL_WINDOW_SEGMENTS * mss_bytes) {
        let flight = Boundary::FirstFlight {
            segments: INITIAL_WINDOW_SEGMENTS,
            mss_bytes,
        };
        return (StepKind::InitialWindow, false, flight);
    }
    (StepKind::Unknown, false, Boundary::None)
}

/// A configured buffer whose size lies between two.
fn buffer_between(before: &Measured, after: &Measured, workload: &Workload) -> Option<Boundary> {
    let is_between = |boundary: u64| (before.bytes..after.bytes).contains(&boundary);
    // The kernel doubles what is asked for (socket(7)).
    let is_there = |bytes: &u64| is_between(*bytes) || is_between(2 * bytes);
    let between = |bytes: Option<u32>| bytes.map(u64::from).filter(is_there);
    let send = between(workload.socket.send_buffer_bytes);
    let receive = between(workload.socket.receive_buffer_bytes);
    send.map(|buffer_bytes| Boundary::SendBuffer { buffer_bytes })
        .or(receive.map(|buffer_bytes| Boundary::ReceiveBuffer { buffer_bytes }))
}

fn time(point: &Measured) -> TimeOfSize {
    TimeOfSize {
        message_bytes: point.bytes,
        stage: point.stage.clone(),
        message_ns: point.message_ns as u64,
    }
}
