//! Sweeps over message sizes, and figures that did not converge, in every view.

use crate::common;
use ew_model::analysis::{Estimate, LatencyFigures, UnconvergedFigure};
use ew_model::inventory::HostId;
use ew_model::scenario::AutoSamples;
use ew_model::sweep::{
    CurveNote, HalfPerformance, RoundTripOfSize, Saturation, StepFacts, StepKind, SweepAnalysis,
    SweepPoint, SweepStep, TimeLine, TimerWait,
};
use ew_model::workload::WorkloadKind;
use ew_model::{Analysis, Setting};
use ew_report::{Format, TextStyle, render};

/// 20 µs and 10 Gb/s, and 20 ms more from 2 to 4 KiB.
fn point(bytes: u64) -> SweepPoint {
    let stall_ns = if (2045..=4099).contains(&bytes) {
        20_500_000.0
    } else {
        0.0
    };
    let message_ns = 20_000.0 + 0.8 * bytes as f64 + stall_ns;
    let round_trip_ns = (2.0 * message_ns) as u64;
    let rate = 8e9 * bytes as f64 / message_ns;
    SweepPoint {
        message_bytes: bytes,
        bits_per_sec: Some(Estimate {
            value: rate,
            low: Some(0.98 * rate),
            high: Some(1.02 * rate),
            samples: 6,
        }),
        message_ns: Some(message_ns),
        round_trip: Some(LatencyFigures {
            count: 500,
            min_ns: round_trip_ns * 9 / 10,
            mean_ns: round_trip_ns,
            p50_ns: round_trip_ns,
            p90_ns: Some(round_trip_ns),
            p99_ns: Some(round_trip_ns * 2),
            p999_ns: None,
            p9999_ns: None,
            max_ns: round_trip_ns * 3,
        }),
        missing: 0,
    }
}

fn sweep() -> SweepAnalysis {
    let sizes = (0..=23_u32).map(|exponent| 1_u64 << exponent);
    let near = sizes.flat_map(|size| [size.saturating_sub(3).max(1), size, size + 3]);
    let mut sizes: Vec<u64> = near.collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut points: Vec<SweepPoint> = sizes.into_iter().map(point).collect();
    let unmeasured = SweepPoint {
        bits_per_sec: None,
        message_ns: None,
        round_trip: None,
        missing: 3,
        ..points[6].clone()
    };
    points[6] = unmeasured;
    SweepAnalysis {
        name: "ping-pong".into(),
        workload: "tcp-rr (engine)".into(),
        kind: WorkloadKind::TcpRr,
        points,
        half_performance: Some(HalfPerformance {
            bytes: 25_000.0,
            endless_bits_per_sec: 10e9,
            line: Some(TimeLine {
                start_ns: 20_000.0,
                bits_per_sec: 10e9,
                off: 0.01,
            }),
            max_bits_per_sec: 9.97e9,
            sizes: 70,
            stages: ["ping-pong 1 B".into(), "ping-pong 8 MiB".into()],
        }),
        saturation: Some(Saturation {
            message_bytes: 262_144,
            bits_per_sec: 9.1e9,
            greatest_bits_per_sec: 9.97e9,
        }),
        steps: vec![SweepStep {
            kind: StepKind::DelayedAck,
            from_bytes: 2045,
            to_bytes: 4099,
            factor: 800.0,
            certain: true,
            facts: StepFacts::Timer(TimerWait {
                excess_ns: 41_000_000,
                is_rare: false,
                sizes: vec![RoundTripOfSize {
                    message_bytes: 2045,
                    stage: "ping-pong 2 KiB".into(),
                    p50_ns: 41_100_000,
                    p99_ns: None,
                    retransmits: 0,
                }],
            }),
        }],
        notes: vec![CurveNote::FallsAgain {
            share: 0.74,
            message_bytes: 1 << 23,
        }],
    }
}

/// A run of nothing but one sweep between two hosts.
pub(crate) fn swept() -> Analysis {
    let mut analysis = common::cluster(1, 2, 1.0, None);
    analysis.run.inventory.racks.clear();
    for host in &mut analysis.run.inventory.hosts {
        host.rack = None;
    }
    analysis.rack_pairs.clear();
    analysis.host_pairs.clear();
    analysis.host_pairs_stage = None;
    let sweep = sweep();
    analysis.stages = sweep
        .points
        .iter()
        .map(|point| {
            let name = format!("ping-pong {} B", point.message_bytes);
            let mut stage = common::stage(&name, "pair", "tcp-rr (engine)", 3, 1e9, 1);
            stage.sweep = Some("ping-pong".into());
            stage.judged = false;
            stage.settings = vec![
                Setting::RequestBytes(point.message_bytes),
                Setting::Streams(4),
            ];
            stage
        })
        .collect();
    analysis.sweeps = vec![sweep];
    analysis
}

fn shown(analysis: &Analysis, format: Format) -> String {
    render(analysis, format, &TextStyle::default()).unwrap()
}

#[test]
fn a_sweep_in_text_has_its_amounts_its_curve_and_its_breaks() {
    let reported = shown(&swept(), Format::Text);
    let line = |start: &str| {
        let words = reported
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let found = words.into_iter().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no `{start}`: {reported}"))
    };
    let amounts = "ping-pong tcp-rr (engine) 20.0 µs at 1 B 10.0 Gb/s 24.4 KiB 20.0 µs 256 KiB";
    assert_eq!(line("ping-pong tcp-rr"), amounts);
    assert_eq!(
        line("ping-pong 64 KiB"),
        "ping-pong 64 KiB ████████████ 7.24 Gb/s 72.4 145 290 435"
    );
    line("ping-pong: round trips of 2045 B to 4099 B take 41.0 ms longer");
    line("ping-pong: the rate falls again to 74% of its max at 8 MiB.");
    // Of all sizes alike; the size itself is not.
    line("ping-pong: 4 streams.");
    line("ping-pong 2045 B");
    assert!(
        !reported.contains("ping-pong  61 B"),
        "neighbours are in the CSV: {reported}"
    );
    assert!(
        reported.contains("more sizes; the CSV and JSON reports have all."),
        "{reported}"
    );
}

#[test]
fn a_sweep_in_markdown_tells_the_same() {
    let markdown = shown(&swept(), Format::Markdown);
    assert!(
        markdown.contains("### Sweep over message sizes"),
        "{markdown}"
    );
    assert!(markdown.contains("| ping-pong | 64 KiB |"), "{markdown}");
    assert!(
        markdown.contains("the rate falls again to 74%"),
        "{markdown}"
    );
    assert!(
        !markdown.contains("| ping-pong 64 B |"),
        "a stage is a point, not a row"
    );
}

#[test]
fn every_size_is_a_line_of_csv_and_what_is_missing_is_no_zero() {
    let analysis = swept();
    let csv = shown(&analysis, Format::Csv);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + analysis.sweeps[0].points.len());
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    assert!(
        lines[7].ends_with(",-,-,-,-,-,-,-,-,-,-,-,3"),
        "{}",
        lines[7]
    );
}

#[test]
fn the_page_has_both_charts_with_words_for_them() {
    let page = shown(&swept(), Format::Html);
    let rates = "aria-label=\"Rate over message size, 67 sizes, at most 9.97 Gb/s; half of the asymptotic bandwidth at 24.4 KiB; saturated from 256 KiB\"";
    assert!(page.contains(rates), "{page}");
    assert!(page.contains("aria-label=\"Time of a message over its size: 20.0 µs at 1 B"));
    assert!(page.contains("class=\"knee\""), "the break is drawn");
    assert!(!page.contains("cy=\"NaN") && !page.contains("cy=\"inf"));
    assert!(page.contains("the rate falls again to 74%"));
}

#[test]
fn what_did_not_converge_is_named_in_every_view() {
    let mut analysis = common::demo();
    let auto = AutoSamples {
        width: 0.05,
        at_least: 6,
        at_most: 30,
        budget_ns: None,
    };
    analysis.stages[0].auto = Some(auto);
    let open = &mut analysis.stages[1];
    open.auto = Some(auto);
    open.unconverged = vec![UnconvergedFigure {
        src: HostId(0),
        dst: HostId(5),
        senders_per_rack: Some(2),
        estimate: Estimate {
            value: 100e6,
            low: Some(90e6),
            high: Some(112e6),
            samples: 30,
        },
        width: Some(0.22),
    }];
    let names = [0, 1].map(|at: usize| analysis.stages[at].name.clone());
    let converged = format!("{}: every figure converged", names[0]);
    let not = format!("{}: 1 figure did not converge within 5%", names[1]);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let view = shown(&analysis, format)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(view.contains(&converged), "{view}");
        assert!(view.contains(&not), "{view}");
        assert!(
            view.contains("r1h01 to r2h02 with 2 senders 100 Mb"),
            "{view}"
        );
        assert!(view.contains("22.0% wide"), "{view}");
    }
}
