//! Two simulated runs whose true difference is known, compared. The seeds were not used for tuning.

use crate::run;
use crate::simulator::Truth;
use ew_analyze::compare::{CompareError, CompareOptions, compare};
use ew_model::comparison::{Change, Comparison, ComparisonVerdict, Method, MetricComparison};

/// One rack whose links all carry `factor` of the usual rate.
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
        names: None,
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
    assert_eq!(metric.change, Change::Better);
    assert_eq!(comparison.verdict, ComparisonVerdict::NotWorse);
    assert!(
        comparison.sentence.contains("times as high"),
        "{}",
        comparison.sentence
    );
}

#[test]
fn a_tenth_less_is_worse_than_five_per_cent_and_not_than_twenty() {
    let (good, bad) = (truth(6, 1.0), truth(6, 0.9));
    let strict = mesh(&good, &bad, Some(0.05), 72);
    assert_eq!(throughput(&strict).change, Change::Worse);
    assert_eq!(strict.verdict, ComparisonVerdict::Worse);
    assert!(
        strict
            .sentence
            .starts_with("Worse by more than 5 %: throughput in `mesh`")
    );
    let lax = mesh(&good, &bad, Some(0.2), 72);
    assert_eq!(throughput(&lax).change, Change::Worse);
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
    assert!(alarms <= 4, "{alarms} of 40 where 5 % are allowed");
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
    assert!((slow.receiving.unwrap() - 0.6).abs() < 0.05, "{slow:?}");
    assert!(slow.sending.unwrap() > 0.9, "{slow:?}");
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
    assert_eq!(metric.change, Change::Better);
    assert!(metric.pairs.is_empty() && metric.ratio_over_hosts.is_none());
    assert!(
        comparison
            .remarks
            .iter()
            .any(|remark| remark.starts_with("hosts only in one run"))
    );
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
    assert_eq!(throughput(&many).change, Change::Worse);
    assert!((throughput(&many).ratio.unwrap().value - 0.5).abs() < 0.05);
    let remarks = &many.stages[0].remarks;
    assert!(
        remarks.iter().any(|r| r.contains("1.00 s against 2.00 s")),
        "{remarks:?}"
    );
    let few = with("samples=1", 76);
    assert_eq!(throughput(&few).change, Change::Unknown);
    assert!(
        throughput(&few)
            .reason
            .as_ref()
            .unwrap()
            .contains("samples=6")
    );
    assert!(few.sentence.contains("Too little"), "{}", few.sentence);
}

#[test]
fn strangers_are_refused_with_what_each_has() {
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
