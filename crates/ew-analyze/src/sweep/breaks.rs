//! Where a curve breaks: sizes that wait for a timer, and steps at the boundaries of the protocol.

use super::evidence;
use super::points::Measured;
use crate::stats::median;
use ew_model::finding::Evidence;
use ew_model::sweep::{StepKind, SweepStep};
use ew_model::units::{format_duration_ns, format_whole_bytes};
use ew_model::workload::Workload;
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
const LEAST_STEP: f64 = 0.1;
/// And this many times more than near sizes differ anyway.
const STEP_OVER_NOISE: f64 = 4.0;
/// One segment more matters up to this many.
const MOST_SEGMENTS: u64 = 4;
/// RFC 6928.
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// A sender throttled for this share of its busy time is limited by a buffer.
const LIMITED_SHARE: f64 = 0.2;

/// Neighbouring sizes whose round trips, or one in a hundred of them, wait for a timer of TCP.
pub(super) fn timers(curve: &[Measured], workload: &Workload) -> Vec<SweepStep> {
    let Some(floor) = Floor::of(curve) else {
        return Vec::new();
    };
    let kinds: Vec<Option<Wait>> = curve.iter().map(|p| floor.wait(p)).collect();
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

/// The curve without the sizes whose median waits for a timer: they say nothing of the others.
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

/// What a round trip takes at the very least.
struct Floor {
    least_ns: f64,
    bits_per_sec: f64,
}

/// How a size waits.
#[derive(Clone, Copy)]
struct Wait {
    kind: StepKind,
    excess_ns: f64,
    /// Median round trip over the floor.
    factor: f64,
    /// Whether most round trips wait, not only one in a hundred.
    most: bool,
}

impl Floor {
    /// Of a ping-pong; streaming has no round trips.
    fn of(curve: &[Measured]) -> Option<Self> {
        let seen = curve.iter().filter_map(|p| Some(p.round_trip?.min_ns));
        let reported = curve.iter().filter_map(|p| p.least_rtt_ns);
        curve.iter().find(|p| p.round_trip.is_some())?;
        Some(Self {
            least_ns: seen.chain(reported).min()? as f64,
            bits_per_sec: curve.iter().map(Measured::bits_per_sec).fold(1.0, f64::max),
        })
    }

    fn wait(&self, point: &Measured) -> Option<Wait> {
        let times = point.round_trip?;
        let floor_ns = self.least_ns + 2.0 * 8e9 * point.bytes as f64 / self.bits_per_sec;
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
            (excess_ns > floor_ns).then_some(Wait {
                kind,
                excess_ns,
                factor: median_ns / floor_ns,
                most,
            })
        };
        let rare = times.p99_ns.map(|p99_ns| p99_ns as f64 - median_ns);
        wait(median_ns - floor_ns, true).or_else(|| wait(rare?, false))
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
    let nagle = !workload.socket.nodelay;
    let why = match (kind, nagle, retransmits) {
        (StepKind::DelayedAck, true, _) => {
            "Nagle's algorithm is on and waits for an acknowledgement that the other side delays; `nodelay: on` ends that"
        }
        (StepKind::DelayedAck, false, _) => {
            "that is how long Linux delays an acknowledgement, but Nagle's algorithm is off, so what waits for it is not \
             determined"
        }
        (_, _, 0) => {
            "that is the shortest time before Linux retransmits lost segments, but no counter shows a retransmission"
        }
        _ => "segments were lost and retransmitted only when their timer expired",
    };
    let certain = match kind {
        StepKind::DelayedAck => nagle,
        _ => retransmits > 0,
    };
    let which = if waits.iter().any(|wait| wait.most) {
        ""
    } else {
        "one in a hundred of "
    };
    let sizes = span(first.bytes, last.bytes);
    SweepStep {
        kind,
        from_bytes: first.bytes,
        to_bytes: last.bytes,
        factor: over(|wait| wait.factor).unwrap_or(1.0),
        certain,
        sentence: format!(
            "{which}round trips of {sizes} take {} longer than their size explains: {why}",
            format_duration_ns(excess_ns as u64)
        ),
        evidence: points
            .iter()
            .take(3)
            .filter_map(round_trip_evidence)
            .collect(),
    }
}

fn round_trip_evidence(point: &Measured) -> Option<Evidence> {
    let times = point.round_trip?;
    let p99 = times.p99_ns.map_or(String::new(), |ns| {
        format!(", p99 {}", format_duration_ns(ns))
    });
    let text = format!(
        "{}: median round trip {}{p99}, {} segments retransmitted",
        format_whole_bytes(point.bytes),
        format_duration_ns(times.p50_ns),
        point.retransmits
    );
    Some(evidence(text, source(point, "latency, retransmits")))
}

/// Places where a message takes longer than the size before it and the sizes' ratio explain, and
/// stays so.
pub(super) fn steps(curve: &[Measured], workload: &Workload) -> Vec<SweepStep> {
    let least = LEAST_STEP.max(STEP_OVER_NOISE * noise(curve));
    let is_step = |at: &usize| {
        let jump = excess(&curve[*at], &curve[at + 1]);
        jump > least && stays(curve, *at, jump)
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
    let (kind, certain, why) = name(before, after, workload);
    let factor = excess(before, after).exp();
    let doubt = if certain {
        ""
    } else {
        " (it only fits the numbers)"
    };
    SweepStep {
        kind,
        from_bytes: before.bytes,
        to_bytes: after.bytes,
        factor,
        certain,
        sentence: format!(
            "from {} to {} a message takes {:.0}% longer than size explains: {why}{doubt}",
            format_whole_bytes(before.bytes),
            format_whole_bytes(after.bytes),
            100.0 * (factor - 1.0),
        ),
        evidence: [before, after].map(time_evidence).to_vec(),
    }
}

/// What lies between two sizes: the counters first, then the boundaries.
fn name(before: &Measured, after: &Measured, workload: &Workload) -> (StepKind, bool, String) {
    let is_between = |boundary: u64| (before.bytes..after.bytes).contains(&boundary);
    let limited = |point: &Measured| point.limited_share.unwrap_or_default();
    let slow_at_times = limited(after) >= LIMITED_SHARE && limited(before) < LIMITED_SHARE / 2.0;
    if slow_at_times {
        let share = 100.0 * limited(after);
        let why =
            format!("a socket's buffer holds the sender back for {share:.0}% of its busy time");
        return (StepKind::SocketBuffer, true, why);
    }
    let buffers = [
        ("send buffer", workload.socket.send_buffer_bytes),
        ("receive buffer", workload.socket.receive_buffer_bytes),
    ];
    for (name, bytes) in buffers {
        // The kernel doubles what is asked for (socket(7)).
        let bytes = bytes.map(u64::from);
        if let Some(bytes) = bytes.filter(|b| is_between(*b) || is_between(2 * b)) {
            let why = format!("the {name} of {} lies there", format_whole_bytes(bytes));
            return (StepKind::SocketBuffer, false, why);
        }
    }
    let Some(mss) = after.mss_bytes.or(before.mss_bytes).filter(|mss| *mss > 0) else {
        return (StepKind::Unknown, false, "not determined".into());
    };
    if let Some(segments) = (1..=MOST_SEGMENTS).find(|n| is_between(n * mss)) {
        let why = format!("more than {segments} x {mss} bytes need one segment more");
        return (StepKind::Segment, are_near(before, after), why);
    }
    if is_between(INITIAL_WINDOW_SEGMENTS * mss) {
        let why = format!(
            "more than {INITIAL_WINDOW_SEGMENTS} x {mss} bytes do not fit the first flight"
        );
        return (StepKind::InitialWindow, false, why);
    }
    (
        StepKind::Unknown,
        false,
        "no boundary that is known lies there".into(),
    )
}

fn time_evidence(point: &Measured) -> Evidence {
    let text = format!(
        "{}: {} a message",
        format_whole_bytes(point.bytes),
        format_duration_ns(point.message_ns as u64)
    );
    evidence(text, source(point, "latency, bytes, tcp_info"))
}

fn source(point: &Measured, what: &str) -> String {
    format!("flows.parquet: stage `{}`, {what}", point.stage)
}

fn span(first: u64, last: u64) -> String {
    match first == last {
        true => format_whole_bytes(first),
        false => format!(
            "{} to {}",
            format_whole_bytes(first),
            format_whole_bytes(last)
        ),
    }
}
