//! Synthetic analyses of workloads other than plain bulk TCP, and what every view must show of
//! them.

use crate::common;
use ew_model::analysis::{
    CpuAnalysis, DatagramAnalysis, Label, LatencyAnalysis, LatencyFigures, OneWayDelay,
    PairAnalysis, SpectrumPoint, StageAnalysis,
};
use ew_model::finding::{Grounds, Verdict, VerdictStatus};
use ew_model::inventory::HostId;
use ew_model::record::FigureNote;
use ew_model::workload::WorkloadKind;
use ew_model::{Analysis, Setting};
use ew_report::{Format, TextStyle, render};

/// A tail that doubles its excess over 40 µs with every nine, stretched by `stretch`.
fn time_above(share_above: f64, stretch: f64) -> u64 {
    (40_000.0 + stretch * 9_000.0 * share_above.powf(-0.55)) as u64
}

fn figures(count: u64, stretch: f64) -> LatencyFigures {
    let at = |share_above: f64| time_above(share_above, stretch);
    let known = |min: u64, share_above| (count >= min).then(|| at(share_above));
    LatencyFigures {
        count,
        min_ns: at(1.0) - 3_000,
        mean_ns: at(0.4),
        p50_ns: at(0.5),
        p90_ns: known(29, 0.1),
        p99_ns: known(299, 0.01),
        p999_ns: known(2_995, 0.001),
        p9999_ns: known(29_956, 0.0001),
        max_ns: at(1.0 / count as f64),
    }
}

fn spectrum(count: u64, stretch: f64) -> Vec<SpectrumPoint> {
    (0..)
        .map(|step| 10_f64.powf(-f64::from(step) / 20.0))
        .take_while(|share_above| share_above * count as f64 >= 1.0)
        .map(|share_above| SpectrumPoint {
            share_above,
            time_ns: time_above(share_above, stretch),
        })
        .collect()
}

/// A closed loop's transactions.
pub(crate) fn latency(count: u64, stretch: f64) -> LatencyAnalysis {
    LatencyAnalysis {
        transactions_per_sec: common::estimate(count as f64 / 10.0),
        times: figures(count, stretch),
        uncorrected: None,
        connect: None,
        spectrum: spectrum(count, stretch),
        uncorrected_spectrum: Vec::new(),
    }
}

fn cpu(hosts: u32, busy: f64, demand: Option<f64>, is_bulk: bool) -> Option<CpuAnalysis> {
    Some(CpuAnalysis {
        hosts,
        engine_cpus: busy * 0.6,
        busy_cpus: busy,
        busy_share: busy / 8.0,
        softirq_share: busy / 24.0,
        steal_share: 0.0,
        split: None,
        micros_per_kib: demand.filter(|_| is_bulk),
        micros_per_transaction: demand.filter(|_| !is_bulk),
    })
}

fn label(note: FigureNote) -> Label {
    Label {
        note,
        flows: 6,
        of_flows: 6,
    }
}

fn pair(src: u32, dst: u32, stretch: f64) -> PairAnalysis {
    PairAnalysis {
        src: HostId(src),
        dst: HostId(dst),
        samples: 6,
        bits_per_sec: None,
        transactions_per_sec: Some(12_000.0),
        times: Some(figures(60_000, stretch)),
        datagrams: None,
    }
}

fn stage(name: &str, pattern: &str, kind: WorkloadKind, bits_per_sec: f64) -> StageAnalysis {
    let workload = format!("{} (engine)", kind.name());
    let mut stage = common::stage(name, pattern, &workload, 6, bits_per_sec, 1);
    stage.kind = kind;
    stage.judged = false;
    stage.of_expected = None;
    stage.ceiling = None;
    if !kind.is_bulk() {
        stage.aggregate_bits_per_sec = None;
        stage.flow_bits_per_sec = None;
        stage.retransmits = None;
        stage.timeline.clear();
    }
    stage
}

fn rr(name: &str, pattern: &str, count: u64) -> StageAnalysis {
    let mut stage = stage(name, pattern, WorkloadKind::TcpRr, 0.0);
    stage.latency = Some(latency(count, 1.0));
    stage.pairs = vec![pair(0, 1, 1.0)];
    stage.rtt_ns = Some((52_000, 52_000, 52_000));
    stage.sender_cpu = cpu(1, 0.7, Some(28.4), false);
    stage.receiver_cpu = cpu(1, 0.6, Some(24.9), false);
    stage
}

fn of_two(stages: Vec<StageAnalysis>) -> Analysis {
    let mut inventory = common::inventory(1, 2);
    inventory.racks.clear();
    for host in &mut inventory.hosts {
        host.rack = None;
    }
    let mut run = common::manifest(inventory);
    run.id = "20261121T210000Z-pair-7f3a".into();
    run.scenario.expect = Default::default();
    Analysis {
        verdict: Verdict {
            status: VerdictStatus::NothingWrong,
            findings: Vec::new(),
            grounds: Grounds::default(),
        },
        stages,
        hosts: [0, 1].map(|id| common::host(HostId(id), None)).to_vec(),
        host_pairs: Vec::new(),
        host_pairs_stage: None,
        pair_maps: Vec::new(),
        pair_details: Vec::new(),
        pair_paths: Vec::new(),
        rack_pairs: Vec::new(),
        racks: Vec::new(),
        basis: common::basis(),
        warnings: Vec::new(),
        sweeps: Vec::new(),
        tools: Vec::new(),
        pods: Vec::new(),
        congestion: Vec::new(),
        flow_completion: Vec::new(),
        thresholds: Vec::new(),
        run,
    }
}

/// `eastwest run pair --workload tcp-rr` between two hosts.
pub(crate) fn rr_of_two() -> Analysis {
    let mut both = rr("both", "pair", 480);
    both.pairs.push(pair(1, 0, 1.4));
    of_two(vec![
        rr("forward", "pair", 240_000),
        rr("reverse", "pair", 239_000),
        both,
    ])
}

/// Bulk TCP between two hosts: one direction copying, one whose receiver discards.
pub(crate) fn streams_of_two() -> Analysis {
    let mut copy = stage("copy", "pair", WorkloadKind::TcpStream, 24.1e9);
    copy.judged = true;
    copy.sender_cpu = cpu(1, 1.1, Some(0.372), true);
    copy.receiver_cpu = cpu(1, 1.4, Some(0.476), true);
    let mut discard = stage("fast", "pair", WorkloadKind::TcpStream, 57.2e9);
    discard.settings = vec![Setting::Sendfile, Setting::DiscardingReceiver];
    discard.labels = vec![
        label(FigureNote::SenderDidNotTouchBytes),
        label(FigureNote::ReceiverDidNotSeeBytes),
    ];
    discard.sender_cpu = cpu(1, 0.8, Some(0.114), true);
    discard.receiver_cpu = cpu(1, 0.9, Some(0.129), true);
    of_two(vec![copy, discard])
}

/// Eight hosts with an open loop, connections, paced UDP and fallen-back zero-copy.
pub(crate) fn mixed() -> Analysis {
    let mut analysis = common::cluster(2, 4, 1.0, None);
    let mut open = rr("open loop", "permutation", 480_000);
    open.settings = vec![Setting::RequestsPerSec(10_000.0)];
    if let Some(latency) = &mut open.latency {
        latency.uncorrected = Some(figures(480_000, 0.3));
        latency.uncorrected_spectrum = spectrum(480_000, 0.3);
    }
    open.pairs = (0..16)
        .map(|i| pair(i % 8, (i + 1 + i / 8) % 8, 1.0 + f64::from(i)))
        .collect();
    open.receiver_cpu = open.sender_cpu;
    let mut connects = stage("connects", "permutation", WorkloadKind::TcpCrr, 0.0);
    connects.latency = Some(LatencyAnalysis {
        connect: Some(figures(500, 0.5)),
        ..latency(500, 2.0)
    });
    connects.sender_cpu = cpu(4, 1.9, Some(61.0), false);
    connects.receiver_cpu = cpu(4, 2.1, Some(67.0), false);
    let mut udp = stage("udp", "permutation", WorkloadKind::UdpStream, 7.9e9);
    udp.settings = vec![Setting::FlowBitsPerSec(1e9)];
    udp.labels = vec![
        label(FigureNote::PacedByKernel),
        label(FigureNote::Segmented),
    ];
    udp.of_expected = Some(0.998);
    udp.datagrams = Some(DatagramAnalysis {
        received_per_sec: common::estimate(682_000.0),
        received: 4_092_000,
        lost: 8_200,
        loss: Some(0.002),
        worst_loss: Some(0.0131),
        reordered: 12,
        duplicates: 0,
        jitter_ns: 5_400,
        worst_jitter_ns: 31_000,
        one_way: Some(OneWayDelay {
            times: figures(4_092_000, 0.1),
            clock_error_ns: 42_000,
        }),
    });
    udp.sender_cpu = cpu(8, 2.2, Some(1.42), true);
    udp.receiver_cpu = cpu(8, 2.9, Some(1.87), true);
    let mut zerocopy = stage("zero-copy", "permutation", WorkloadKind::TcpStream, 6.0e9);
    zerocopy.settings = vec![Setting::ZerocopySend];
    zerocopy.labels = vec![Label {
        note: FigureNote::ZerocopySendCopied,
        flows: 2,
        of_flows: 6,
    }];
    analysis.stages = vec![open, connects, udp, zerocopy];
    analysis.host_pairs.clear();
    analysis.host_pairs_stage = None;
    analysis.rack_pairs.clear();
    analysis.run.scenario.name = "workloads".into();
    analysis
}

fn report(analysis: &Analysis, format: Format) -> String {
    let style = TextStyle {
        width: 100,
        color: false,
        details: true,
    };
    render(analysis, format, &style).unwrap()
}

#[test]
fn text_rr_of_two() {
    insta::assert_snapshot!(report(&rr_of_two(), Format::Text));
}

#[test]
fn text_streams_of_two() {
    insta::assert_snapshot!(report(&streams_of_two(), Format::Text));
}

#[test]
fn text_mixed() {
    insta::assert_snapshot!(report(&mixed(), Format::Text));
}

#[test]
fn markdown_mixed() {
    insta::assert_snapshot!(report(&mixed(), Format::Markdown));
}

#[test]
fn csv_mixed() {
    insta::assert_snapshot!(report(&mixed(), Format::Csv));
}

#[test]
fn every_view_says_which_bytes_no_application_saw() {
    let analysis = streams_of_two();
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let text = report(&analysis, format);
        for words in [
            "did not see the bytes",
            "did not touch the bytes",
            "(bytes unseen)",
        ] {
            assert!(text.contains(words), "{format:?}: {words}\n{text}");
        }
    }
    let json = report(&analysis, Format::Json);
    assert!(json.contains("receiver-did-not-see-bytes"), "{json}");
    let mut analysis = common::demo();
    analysis.stages[3].labels = vec![label(FigureNote::ReceiverDidNotSeeBytes)];
    let csv = report(&analysis, Format::Csv);
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .contains(",receiver-did-not-see-bytes,"),
        "{csv}"
    );
}

#[test]
fn a_fallback_is_said_with_its_flows() {
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let text = report(&mixed(), format).replace("\n  ", " ");
        assert!(
            text.contains("fell back to copying (2 of 6 flows)"),
            "{format:?}\n{text}"
        );
        assert!(text.contains("paced by the kernel"), "{format:?}");
    }
}

#[test]
fn a_plain_run_has_no_more_tables_than_before() {
    for format in [Format::Text, Format::Markdown] {
        let text = report(&common::demo(), format);
        assert!(
            !text.contains("Latency, µs") && !text.contains("CPU\n"),
            "{text}"
        );
    }
}

#[test]
fn rows_of_the_csv_are_as_wide_as_its_header() {
    for analysis in [mixed(), common::missing(), rr_of_two()] {
        let csv = report(&analysis, Format::Csv);
        let widths: Vec<usize> = csv.lines().map(|l| l.matches(',').count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{csv}");
    }
}

#[test]
fn pages_have_the_curves() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, analysis) in [
        ("mixed", mixed()),
        ("rr", rr_of_two()),
        ("streams", streams_of_two()),
    ] {
        let page = report(&analysis, Format::Html);
        let curves = analysis
            .stages
            .iter()
            .filter(|s| s.latency.is_some())
            .count();
        assert_eq!(page.matches("Times of ").count(), curves, "{name}");
        std::fs::write(dir.join(format!("report-{name}.html")), page).unwrap();
    }
}
