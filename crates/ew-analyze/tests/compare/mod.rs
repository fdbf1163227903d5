//! Two simulated runs whose true difference is known, compared. The seeds were not used for tuning.

use crate::run;
use crate::simulator::Truth;
use ew_analyze::compare::{CompareError, CompareOptions, Runs};
use ew_model::Run;
use ew_model::comparison::{
    Change, Comparison, ComparisonNote, ComparisonVerdict, Method, Metric, MetricComparison,
    StageNote,
};
use ew_model::latency::{Histogram, Latency};
use ew_model::record::{DatagramCounts, EndRecord};
use ew_model::workload::{Workload, WorkloadKind};
use ew_report::comparison_sentence;

mod replicates;

/// One run of each state, and nothing known of others.
fn compare(base: &Run, other: &Run, options: &CompareOptions) -> Result<Comparison, CompareError> {
    let runs = Runs {
        base: std::slice::from_ref(base),
        other: std::slice::from_ref(other),
        history: &[],
    };
    ew_analyze::compare::compare(&runs, options)
}

/// One rack whose links all carry `factor` of the typical rate.
fn truth(hosts: usize, factor: f64) -> Truth {
    let mut truth = Truth::new(&[hosts], 1.0);
    for capacity in truth.tx.iter_mut().chain(&mut truth.rx) {
        *capacity *= factor;
    }
    truth
}

fn mesh(a: &Truth, b: &Truth, threshold: Option<f64>, seed: u64) -> Comparison {
    let samples = ["samples=3"];
    let base = run(a, "mesh", &samples, seed);
    let other = run(b, "mesh", &samples, seed + 1000);
    let options = CompareOptions {
        threshold,
        ..CompareOptions::default()
    };
    compare(&base, &other, &options).unwrap()
}

fn throughput(comparison: &Comparison) -> &MetricComparison {
    &comparison.stages[0].metrics[0]
}

#[test]
fn a_tenfold_network_is_ten_times_as_fast() {
    let comparison = mesh(&truth(6, 1.0), &truth(6, 10.0), Some(0.05), 71);
    let metric = throughput(&comparison);
    assert_eq!(metric.method, Method::Flows { flows: 30 });
    let ratio = metric.ratio.unwrap();
    assert!((ratio.value / 10.0 - 1.0).abs() < 0.02, "{ratio:?}");
    assert!(ratio.low.unwrap() <= 10.1 && ratio.high.unwrap() >= 9.9);
    let (low, high) = metric.ratio_over_hosts.unwrap();
    assert!(low <= ratio.value && ratio.value <= high);
    assert_eq!(metric.change, Change::Different);
    assert_eq!(comparison.verdict, ComparisonVerdict::NotWorse);
    let sentence = comparison_sentence(&comparison);
    assert!(sentence.contains("times as high"), "{sentence}");
}

#[test]
fn a_tenth_less_is_worse_than_five_per_cent_and_not_than_twenty() {
    let (good, bad) = (truth(6, 1.0), truth(6, 0.9));
    let strict = mesh(&good, &bad, Some(0.05), 72);
    assert_eq!(throughput(&strict).change, Change::Different);
    assert_eq!(strict.verdict, ComparisonVerdict::Different);
    assert!(
        comparison_sentence(&strict).starts_with("Different by more than 5%: throughput in `mesh`")
    );
    let lax = mesh(&good, &bad, Some(0.2), 72);
    assert_eq!(throughput(&lax).change, Change::Different);
    assert_eq!(lax.verdict, ComparisonVerdict::NotWorse);
    assert_eq!(
        mesh(&good, &bad, None, 72).verdict,
        ComparisonVerdict::NotWorse
    );
}

#[test]
fn the_same_network_is_seldom_called_different() {
    let same = truth(6, 1.0);
    let differs =
        |seed: &u64| throughput(&mesh(&same, &same, Some(0.01), *seed)).change != Change::None;
    let alarms = (100..140).filter(differs).count();
    assert!(alarms <= 4, "{alarms} of 40 where 5% are allowed");
}

#[test]
fn a_host_that_became_slow_stands_out_in_the_tables() {
    let good = truth(6, 1.0);
    let mut bad = good.clone();
    bad.rx[2] *= 0.6;
    let comparison = mesh(&good, &bad, None, 73);
    let metric = throughput(&comparison);
    let worst: Vec<&str> = metric.pairs[..5]
        .iter()
        .map(|pair| pair.dst.as_str())
        .collect();
    assert_eq!(worst, ["r1h3"; 5]);
    let slow = metric
        .hosts
        .iter()
        .find(|host| host.name == "r1h3")
        .unwrap();
    assert!(
        (slow.receiving.unwrap().ratio - 0.6).abs() < 0.05,
        "{slow:?}"
    );
    assert!(slow.sending.unwrap().ratio > 0.9, "{slow:?}");
}

/// A host of six that receives a tenth less than before, with enough repetitions or with too few.
fn a_slower_receiver(repetitions: &str, each_host: bool) -> Comparison {
    let good = truth(6, 1.0);
    let mut bad = good.clone();
    bad.rx[2] *= 0.9;
    let base = run(&good, "mesh", &[repetitions], 78);
    let other = run(&bad, "mesh", &[repetitions], 79);
    let options = CompareOptions {
        threshold: Some(0.05),
        each_host,
        names: None,
    };
    compare(&base, &other, &options).unwrap()
}

#[test]
fn a_single_host_decides_only_when_hosts_are_asked_for() {
    let whole = a_slower_receiver("samples=8", false);
    assert_eq!(whole.verdict, ComparisonVerdict::NotWorse, "{whole:?}");
    let each = a_slower_receiver("samples=8", true);
    assert_eq!(each.verdict, ComparisonVerdict::Different, "{each:?}");
    let beyond = throughput(&each).hosts_beyond_threshold();
    let beyond: Vec<_> = beyond.map(|(host, role, _)| (host, role)).collect();
    assert_eq!(beyond, [("r1h3", "receiver")]);
    let reported = "Different by more than 5%: throughput of r1h3 as receiver in `mesh` is";
    let sentence = comparison_sentence(&each);
    assert!(sentence.starts_with(reported), "{sentence}");
}

#[test]
fn a_host_needs_peers_to_decide() {
    let of = |hosts: usize| {
        let good = truth(hosts, 1.0);
        let mut bad = good.clone();
        bad.rx[1] *= 0.5;
        let options = CompareOptions {
            threshold: Some(0.05),
            each_host: true,
            names: None,
        };
        let base = run(&good, "mesh", &["samples=8"], 78);
        compare(&base, &run(&bad, "mesh", &["samples=8"], 79), &options).unwrap()
    };
    let (few, enough) = (of(3), of(6));
    let mut hosts = throughput(&few).hosts.iter();
    assert!(hosts.all(|host| host.receiving.unwrap().q_value.is_none()));
    assert_eq!(throughput(&few).hosts_beyond_threshold().count(), 0);
    assert_eq!(throughput(&enough).hosts_beyond_threshold().count(), 1);
}

#[test]
fn hosts_of_the_same_network_are_seldom_called_worse() {
    let same = truth(6, 1.0);
    let options = CompareOptions {
        threshold: Some(0.0),
        each_host: true,
        names: None,
    };
    let is_alarm = |seed: &u64| {
        let base = run(&same, "mesh", &["samples=6"], *seed);
        let other = run(&same, "mesh", &["samples=6"], seed + 1000);
        let comparison = compare(&base, &other, &options).unwrap();
        throughput(&comparison).hosts_beyond_threshold().count() > 0
    };
    let alarms = (200..400).filter(is_alarm).count();
    println!("{alarms} of 200 with a host called worse");
    assert!(
        alarms <= replicates::bound(200),
        "{alarms} of 200 where 5% are allowed"
    );
}

#[test]
fn other_hosts_are_compared_as_two_samples() {
    let mut elsewhere = truth(5, 2.0);
    for (index, host) in elsewhere.inventory.hosts.iter_mut().enumerate() {
        host.name = format!("new{index}");
    }
    let comparison = mesh(&truth(4, 1.0), &elsewhere, None, 74);
    let metric = throughput(&comparison);
    assert_eq!(
        metric.method,
        Method::DifferentFlows {
            base: 12,
            other: 20
        }
    );
    assert!((metric.ratio.unwrap().value / 2.0 - 1.0).abs() < 0.05);
    assert_eq!(metric.change, Change::Different);
    assert!(metric.pairs.is_empty() && metric.ratio_over_hosts.is_none());
    let mut notes = comparison.notes.iter();
    assert!(notes.any(|note| matches!(note, ComparisonNote::Hosts { .. })));
}

#[test]
fn two_hosts_need_repetitions() {
    let with = |samples: &str, seed: u64| {
        let base = run(&truth(2, 1.0), "incast", &[samples, "duration=1s"], seed);
        let other = run(&truth(2, 0.5), "incast", &[samples, "duration=2s"], seed);
        compare(&base, &other, &CompareOptions::default()).unwrap()
    };
    let many = with("samples=6", 75);
    assert!(
        matches!(throughput(&many).method, Method::Rounds { .. }),
        "{many:?}"
    );
    assert_eq!(throughput(&many).change, Change::Different);
    assert!((throughput(&many).ratio.unwrap().value - 0.5).abs() < 0.05);
    let notes = &many.stages[0].notes;
    let window = StageNote::Window {
        base_ns: 1_000_000_000,
        other_ns: 2_000_000_000,
    };
    assert!(notes.contains(&window), "{notes:?}");
    let few = with("samples=1", 76);
    assert_eq!(throughput(&few).change, Change::Unknown);
    assert_eq!(throughput(&few).p_value, None);
    let sentence = comparison_sentence(&few);
    assert!(sentence.contains("Too little"), "{sentence}");
}

/// Three hosts have six flows: all slower by chance once in 32 times, which is nothing next to some
/// more tests.
#[test]
fn few_flows_that_were_repeated_are_counted_by_round() {
    let with = |samples: &str, seed: u64| {
        let base = run(&truth(3, 1.0), "mesh", &[samples], seed);
        let mut bad = truth(3, 0.9);
        bad.rx[1] *= 0.5;
        let mut good = truth(3, 1.0);
        good.rx[1] *= 0.5;
        let uneven = run(&good, "mesh", &[samples], seed);
        let slower = run(&bad, "mesh", &[samples], seed + 1);
        (five_per_cent(&uneven, &slower), five_per_cent(&base, &base))
    };
    let (slower, same) = with("samples=4", 83);
    let metric = throughput(&slower);
    let rounds = Method::Rounds {
        base: 12,
        other: 12,
    };
    assert_eq!(metric.method, rounds);
    assert!(metric.q_value.unwrap() < 0.001, "{metric:?}");
    assert!(
        (metric.ratio.unwrap().value - 0.9).abs() < 0.02,
        "{metric:?}"
    );
    assert_eq!(throughput(&same).change, Change::None);
    let (once, _) = with("samples=1", 84);
    assert_eq!(throughput(&once).method, Method::Flows { flows: 6 });
}

#[test]
fn unauthenticated_peers_are_refused_with_what_each_has() {
    let base = run(&truth(4, 1.0), "mesh", &[], 77);
    let other = run(&truth(4, 1.0), "permutation", &[], 77);
    let error = compare(&base, &other, &CompareOptions::default()).unwrap_err();
    assert!(matches!(error, CompareError::NothingInCommon { .. }));
    let said = error.to_string();
    assert!(
        said.contains("`mesh` (tcp-stream)") && said.contains("same scenario"),
        "{said}"
    );

    let mut empty = base.clone();
    empty.flows.clear();
    empty.manifest.id = "empty-run".into();
    let said = compare(&base, &empty, &CompareOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("empty-run") && said.contains("`mesh`"),
        "{said}"
    );
}

/// A mesh of six hosts whose ends report something else than the simulator does.
fn retold(kind: WorkloadKind, seed: u64, reported: impl Fn(&mut EndRecord, &mut EndRecord)) -> Run {
    let mut run = run(&truth(6, 1.0), "mesh", &[], seed);
    run.plan.stages[0].workload = Workload::of(kind);
    for row in &mut run.flows {
        if let (Some(sender), Some(receiver)) = (&mut row.sender, &mut row.receiver) {
            reported(sender, receiver);
        }
    }
    run
}

fn five_per_cent(base: &Run, other: &Run) -> Comparison {
    let options = CompareOptions {
        threshold: Some(0.05),
        ..CompareOptions::default()
    };
    compare(base, other, &options).unwrap()
}

fn changes(comparison: &Comparison) -> Vec<(Metric, Change, bool)> {
    let metrics = comparison.stages[0].metrics.iter();
    metrics
        .map(|m| (m.metric, m.change, m.beyond_threshold))
        .collect()
}

#[test]
fn loss_and_jitter_are_compared() {
    let udp = |lost: u64, jitter_ns: u64| {
        retold(WorkloadKind::UdpStream, 81, |_, receiver| {
            receiver.datagrams = Some(DatagramCounts {
                received: 1000 - lost,
                lost,
                jitter_ns,
                ..DatagramCounts::default()
            });
        })
    };
    let (whole, lossy) = (udp(0, 20_000), udp(30, 20_000));
    let comparison = five_per_cent(&whole, &lossy);
    let expected = [
        (Metric::Throughput, Change::None, false),
        (Metric::Delivered, Change::Different, false),
        (Metric::Jitter, Change::None, false),
    ];
    assert_eq!(changes(&comparison), expected);
    let ratio = comparison.stages[0].metrics[1].ratio.unwrap().value;
    assert!((ratio - 0.97).abs() < 1e-9, "{ratio}");
    let unsteady = five_per_cent(&whole, &udp(60, 40_000));
    assert_eq!(unsteady.verdict, ComparisonVerdict::Different);
    let reported = "jitter in `mesh` is 2.00 times as high; delivered share in `mesh` is 6% lower";
    let sentence = comparison_sentence(&unsteady);
    assert!(sentence.contains(reported), "{sentence}");
    // All of them lost is the lowest there is, not a ratio of nothing.
    let nothing = five_per_cent(&whole, &udp(1000, 20_000));
    assert!(nothing.stages[0].metrics[1].ratio.unwrap().value > 0.0);
}

#[test]
fn a_longer_tail_is_worse_where_the_median_is_the_same() {
    let rr = |tail_ns: u64| {
        retold(WorkloadKind::TcpRr, 82, |sender, _| {
            let mut times = Histogram::of(50_000, 9_950);
            times.merge(&Histogram::of(tail_ns, 50));
            sender.transactions = Some(10_000);
            sender.latency = Some(Latency {
                times,
                ..Latency::default()
            });
        })
    };
    let comparison = five_per_cent(&rr(60_000), &rr(900_000));
    let expected = [
        (Metric::LatencyMedian, Change::None, false),
        (Metric::LatencyP99, Change::None, false),
        (Metric::LatencyP999, Change::Different, true),
        (Metric::Transactions, Change::None, false),
    ];
    assert_eq!(changes(&comparison), expected);
    assert_eq!(comparison.verdict, ComparisonVerdict::Different);
}
