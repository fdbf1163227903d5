use super::points::Measured;
use super::{breaks, shape};
use ew_model::analysis::LatencyFigures;
use ew_model::sweep::{CurveNote, StepKind, SweepStep};
use ew_model::workload::{Workload, WorkloadKind};

/// NetPIPE's series and the segments of an Ethernet.
fn sizes() -> Vec<u64> {
    let near = |power: u64| [power.saturating_sub(3), power, power + 3];
    let mut sizes: Vec<u64> = (2..=23).flat_map(|exponent| near(1 << exponent)).collect();
    sizes.extend([2, 1445, 1448, 1451]);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Off by up to 2%, the same each time.
fn wobble(bytes: u64) -> f64 {
    1.0 + 0.02 * (bytes as f64 * 12.9898).sin()
}

fn figures(round_trip_ns: f64) -> LatencyFigures {
    let ns = round_trip_ns as u64;
    LatencyFigures {
        count: 1000,
        min_ns: ns * 9 / 10,
        mean_ns: ns,
        p50_ns: ns,
        p90_ns: Some(ns),
        p99_ns: Some(ns * 11 / 10),
        p999_ns: None,
        p9999_ns: None,
        max_ns: ns * 2,
    }
}

fn measured(bytes: u64, message_ns: f64) -> Measured {
    Measured {
        bytes,
        message_ns,
        round_trip: Some(figures(2.0 * message_ns)),
        stage: format!("ping-pong {bytes} B"),
        mss_bytes: Some(1448),
        min_rtt_ns: Some(30_000),
        limited_share: Some(0.0),
        retransmits: 0,
    }
}

/// 20 µs and 10 Gb/s: half of it at 20 µs x 10 Gb/s = 25,000 bytes.
fn curve(extra_ns: impl Fn(u64) -> f64) -> Vec<Measured> {
    let time_ns = |bytes: u64| (20_000.0 + bytes as f64 * 0.8) * wobble(bytes) + extra_ns(bytes);
    let sizes = sizes();
    sizes
        .iter()
        .map(|bytes| measured(*bytes, time_ns(*bytes)))
        .collect()
}

fn ping_pong(nodelay: bool) -> Workload {
    let mut workload = Workload::of(WorkloadKind::TcpRr);
    workload.socket.nodelay = nodelay;
    workload
}

fn kinds(steps: &[SweepStep]) -> Vec<(StepKind, u64, u64, bool)> {
    let reported = |s: &SweepStep| (s.kind, s.from_bytes, s.to_bytes, s.certain);
    steps.iter().map(reported).collect()
}

fn sentence(step: &SweepStep) -> String {
    ew_report::worded_step(step).sentence
}

#[track_caller]
fn assert_near(value: f64, expected: f64, share: f64) {
    assert!(
        (value / expected - 1.0).abs() <= share,
        "{value} is not {expected}"
    );
}

#[test]
fn a_line_gives_its_half_performance_and_saturation() {
    let curve = curve(|_| 0.0);
    let line = shape::line(&curve).unwrap();
    assert_near(line.start_ns, 20_000.0, 0.02);
    assert_near(line.bits_per_sec, 10e9, 0.02);
    let (half, note) = shape::half_performance(&curve, Some(line));
    let half = half.unwrap();
    // Where the rate is half of the largest, 2% off in time is 4% off in size.
    assert_near(half.bytes, 25_000.0, 0.06);
    assert_near(half.endless_bits_per_sec, 10e9, 0.03);
    let sizes = sizes().len() as u32;
    assert_eq!((half.sizes, note), (sizes, None));
    let (saturation, note) = shape::saturation(&curve);
    // 90% of 10 Gb/s is at nine times n1/2; 3% off in rate is a third off
    // in size there, and sizes are a factor of two apart.
    assert!((131_072..=524_291).contains(&saturation.unwrap().message_bytes));
    assert_eq!(note, None);
    assert_eq!(kinds(&breaks::timers(&curve, &ping_pong(true))), []);
    assert_eq!(kinds(&breaks::steps(&curve, &ping_pong(true))), []);
}

#[test]
fn a_curve_that_still_rises_has_no_saturation() {
    let rising: Vec<Measured> = curve(|_| 0.0)
        .into_iter()
        .filter(|p| p.bytes <= 32_768)
        .collect();
    let (saturation, note) = shape::saturation(&rising);
    assert!(saturation.is_none());
    let message_bytes = 32 << 10;
    assert_eq!(note, Some(CurveNote::StillRises { message_bytes }));
}

#[test]
fn a_curve_that_falls_again_is_said_to() {
    let falling = curve(|bytes| if bytes > 2 << 20 { bytes as f64 } else { 0.0 });
    let (saturation, note) = shape::saturation(&falling);
    assert!(saturation.unwrap().message_bytes <= 262_147);
    let Some(CurveNote::FallsAgain { share, .. }) = note else {
        panic!("{note:?}");
    };
    assert!((0.4..0.5).contains(&share), "{share}");
}

#[test]
fn what_is_no_line_is_read_off_the_curve() {
    let bent = curve(|bytes| if bytes > 4096 { 400_000.0 } else { 0.0 });
    let line = shape::line(&bent).unwrap();
    assert!(line.off > 0.15, "{line:?}");
    let (half, _) = shape::half_performance(&bent, Some(line));
    let half = half.unwrap();
    assert_eq!(half.line, None);
    assert_near(half.bytes, 500_000.0, 0.2);
}

#[test]
fn one_segment_more_is_named_where_the_sizes_are_near() {
    let stepped = curve(|bytes| if bytes > 1448 { 6_000.0 } else { 0.0 });
    let steps = breaks::steps(&stepped, &ping_pong(true));
    assert_eq!(kinds(&steps), [(StepKind::Segment, 1448, 1451, true)]);
    let sentence = sentence(&steps[0]);
    assert!(sentence.contains("1 x 1448 bytes"), "{sentence}");
    assert_near(steps[0].factor, 1.28, 0.05);
}

#[test]
fn one_odd_size_is_no_step() {
    let odd = curve(|bytes| if bytes == 4096 { 9_000.0 } else { 0.0 });
    assert_eq!(kinds(&breaks::steps(&odd, &ping_pong(true))), []);
}

#[test]
fn a_step_at_no_known_boundary_is_not_named() {
    let stepped = curve(|bytes| if bytes > 4096 { 8_000.0 } else { 0.0 });
    let steps = breaks::steps(&stepped, &ping_pong(true));
    assert_eq!(kinds(&steps), [(StepKind::Unknown, 4096, 4099, false)]);
}

#[test]
fn a_buffer_is_named_by_the_socket_or_by_its_size() {
    let stepped = || curve(|bytes| if bytes > 65_536 { bytes as f64 } else { 0.0 });
    let mut workload = ping_pong(true);
    workload.socket.send_buffer_bytes = Some(32_768);
    let by_size = breaks::steps(&stepped(), &workload);
    assert_eq!(
        kinds(&by_size),
        [(StepKind::SocketBuffer, 65_536, 65_539, false)]
    );
    let mut reported = stepped();
    for point in reported.iter_mut().filter(|point| point.bytes > 65_536) {
        point.limited_share = Some(0.6);
    }
    let by_socket = breaks::steps(&reported, &ping_pong(true));
    assert_eq!(
        kinds(&by_socket),
        [(StepKind::SocketBuffer, 65_536, 65_539, true)]
    );
}

#[test]
fn a_delayed_acknowledgement_is_named_and_spoils_nothing_else() {
    let planted = |bytes: u64| {
        if (2045..=4099).contains(&bytes) {
            20_500_000.0
        } else {
            0.0
        }
    };
    let curve = curve(planted);
    let timers = breaks::timers(&curve, &ping_pong(false));
    assert_eq!(kinds(&timers), [(StepKind::DelayedAck, 2045, 4099, true)]);
    assert!(sentence(&timers[0]).contains("Nagle's algorithm is on"));
    let unexplained = breaks::timers(&curve, &ping_pong(true));
    assert_eq!(
        kinds(&unexplained),
        [(StepKind::DelayedAck, 2045, 4099, false)]
    );
    let clean = breaks::without(&curve, &timers);
    assert_eq!(kinds(&breaks::steps(&clean, &ping_pong(false))), []);
    assert_near(shape::line(&clean).unwrap().bits_per_sec, 10e9, 0.02);
}

#[test]
fn a_plateau_over_all_sizes_is_told_by_the_sockets_own_round_trip() {
    let all = curve(|bytes| if bytes < 1 << 20 { 20_500_000.0 } else { 0.0 });
    let timers = breaks::timers(&all, &ping_pong(false));
    assert_eq!(timers.len(), 1);
    assert_eq!(
        (timers[0].kind, timers[0].from_bytes),
        (StepKind::DelayedAck, 1)
    );
}

#[test]
fn a_lost_segment_needs_its_counter_to_be_certain() {
    let mut lossy = curve(|bytes| if bytes == 8192 { 101_000_000.0 } else { 0.0 });
    let uncertain = breaks::timers(&lossy, &ping_pong(true));
    assert_eq!(
        kinds(&uncertain),
        [(StepKind::RetransmissionTimeout, 8192, 8192, false)]
    );
    for point in &mut lossy {
        point.retransmits = u64::from(point.bytes == 8192);
    }
    let certain = breaks::timers(&lossy, &ping_pong(true));
    assert!(certain[0].certain && sentence(&certain[0]).contains("retransmitted only when"));
}

#[test]
fn a_stall_of_one_in_a_hundred_is_told_as_such() {
    let mut rare = curve(|_| 0.0);
    for point in rare.iter_mut().filter(|point| point.bytes == 64) {
        let times = point.round_trip.as_mut().unwrap();
        times.p99_ns = Some(times.p50_ns + 41_000_000);
    }
    let timers = breaks::timers(&rare, &ping_pong(false));
    assert_eq!(kinds(&timers), [(StepKind::DelayedAck, 64, 64, true)]);
    assert!(sentence(&timers[0]).starts_with("one in a hundred of round trips of 64 B"));
    assert_eq!(breaks::without(&rare, &timers).len(), rare.len());
}
