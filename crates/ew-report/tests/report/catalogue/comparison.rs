//! The answer of `eastwest compare`.

use super::estimate;
use ew_model::comparison::{
    Change, Comparison, ComparisonVerdict, HostComparison, Method, Metric, MetricComparison,
    RoleComparison, RunSpread, Side, StageComparison, Summary,
};
use ew_report::{Format, TextStyle, comparison_sentence, render_comparison};
use std::fmt::Write;

#[test]
fn of_everything_that_may_differ() {
    let mut text = String::new();
    for (case, compared) in cases() {
        writeln!(text, "# {case}\n{}\n", comparison_sentence(&compared)).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn it_is_in_the_json_document() {
    let compared = comparison(vec![("mesh", vec![beyond(0.9)])], Some(0.05));
    let text = render_comparison(&compared, Format::Json, &TextStyle::default()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        document["sentence"],
        "Different by more than 5%: throughput in `mesh` is 10% lower"
    );
}

fn cases() -> Vec<(&'static str, Comparison)> {
    let different = |ratio| metric(Change::Different, ratio);
    let of_runs = |runs, metric: MetricComparison| MetricComparison {
        method: Method::Runs {
            base: runs,
            other: runs,
        },
        ..metric
    };
    let of_mesh = |metrics, threshold| comparison(vec![("mesh", metrics)], threshold);
    let none = || metric(Change::None, 0.99);
    vec![
        ("worse", of_mesh(vec![of_runs(3, beyond(0.9))], Some(0.05))),
        ("different", of_mesh(vec![beyond(0.958)], Some(0.025))),
        (
            "different, of two runs",
            of_mesh(vec![of_runs(2, beyond(0.9))], Some(0.05)),
        ),
        ("hosts", of_mesh(vec![with_hosts()], Some(0.05))),
        (
            "nothing beyond the threshold",
            of_mesh(vec![different(0.97)], Some(0.2)),
        ),
        ("nobody asked", of_mesh(vec![different(9.87)], None)),
        ("next to nothing", of_mesh(vec![different(0.9997)], None)),
        ("higher", of_mesh(vec![different(1.042)], None)),
        (
            "many, what stages are about first",
            comparison(
                vec![
                    (
                        "mesh",
                        vec![
                            different(0.97),
                            of_metric(Metric::Jitter, different(2.0)),
                            of_metric(Metric::Delivered, different(0.94)),
                        ],
                    ),
                    (
                        "rtt",
                        vec![
                            of_metric(Metric::LatencyMedian, different(1.3)),
                            of_metric(Metric::LatencyP99, different(1.4)),
                        ],
                    ),
                ],
                None,
            ),
        ),
        ("no difference", of_mesh(vec![none()], Some(0.05))),
        (
            "no difference of many runs",
            of_mesh(vec![of_runs(3, none())], None),
        ),
        (
            "too little",
            of_mesh(vec![metric(Change::Unknown, 0.5)], None),
        ),
    ]
}

fn with_hosts() -> MetricComparison {
    let role = |ratio, beyond_threshold| RoleComparison {
        ratio,
        relative: Some(ratio),
        flows: 10,
        q_value: Some(0.001),
        beyond_threshold,
    };
    let host = |name: &str, sending, receiving| HostComparison {
        name: name.into(),
        sending: Some(sending),
        receiving: Some(receiving),
    };
    MetricComparison {
        hosts: vec![
            host("r1h2", role(0.7, true), role(1.0, false)),
            host("r1h3", role(1.0, false), role(0.5, true)),
        ],
        ..metric(Change::Different, 0.98)
    }
}

fn beyond(ratio: f64) -> MetricComparison {
    MetricComparison {
        beyond_threshold: true,
        ..metric(Change::Worse, ratio)
    }
}

fn of_metric(metric: Metric, compared: MetricComparison) -> MetricComparison {
    MetricComparison { metric, ..compared }
}

fn metric(change: Change, ratio: f64) -> MetricComparison {
    let summary = Summary {
        mean: estimate(94e6, 93e6, 95e6),
        median: estimate(94e6, 93e6, 95e6),
        min: 90e6,
        max: 96e6,
    };
    MetricComparison {
        metric: Metric::Throughput,
        base: summary,
        other: summary,
        method: Method::Flows { flows: 30 },
        spread: RunSpread {
            deviation: 0.01,
            degrees: None,
            history: 0,
        },
        ratio: Some(estimate(ratio, 0.99 * ratio, 1.01 * ratio)),
        ratio_over_hosts: None,
        p_value: Some(0.001),
        q_value: Some(0.001),
        change,
        beyond_threshold: false,
        reason: None,
        pairs: Vec::new(),
        hosts: Vec::new(),
    }
}

fn comparison(stages: Vec<(&str, Vec<MetricComparison>)>, threshold: Option<f64>) -> Comparison {
    let side = |name: &str| Side {
        name: name.into(),
        run_ids: vec![name.into()],
        scenario: "mesh".into(),
        started_unix_ns: 0,
        hosts: 6,
        nic_bits_per_sec: Some(100e6),
        nic_source: "link speed".into(),
        ceiling_bits_per_sec: Some(95.6e6),
    };
    let stage = |(name, metrics): (&str, Vec<MetricComparison>)| StageComparison {
        name: name.into(),
        pattern: "mesh".into(),
        workload: "tcp-stream (engine)".into(),
        remarks: Vec::new(),
        metrics,
    };
    Comparison {
        base: side("before"),
        other: side("after"),
        verdict: ComparisonVerdict::NotWorse,
        threshold,
        stages: stages.into_iter().map(stage).collect(),
        not_compared: Vec::new(),
        remarks: Vec::new(),
    }
}
