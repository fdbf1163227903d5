//! The answer of `eastwest compare`.

use super::estimate;
use crate::common;
use ew_model::analysis::{KnownFraming, NicRateSource};
use ew_model::comparison::{
    Change, Comparison, ComparisonNote, ComparisonVerdict, HostComparison, Method, Metric,
    MetricComparison, NotCompared, RoleComparison, RunSpread, Side, StageComparison, StageNote,
    Summary,
};
use ew_model::workload::Tool;
use ew_model::{Outcome, Setting};
use ew_report::{Format, TextStyle, comparison_sentence, render_comparison};
use serde_json::Value;
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
    assert_eq!(
        document(&compared)["sentence"],
        "Different by more than 5%: throughput in `mesh` is 10% lower"
    );
}

#[test]
fn notes_of_every_kind() {
    let mut compared = comparison(vec![("mesh", Vec::new())], None);
    compared.notes = notes();
    compared.stages[0].notes = stage_notes();
    let stage = "rtt".to_owned();
    compared.not_compared = vec![
        NotCompared::OnlyIn {
            stage: stage.clone(),
            run: "20261126-0000".into(),
        },
        NotCompared::NoFigure { stage },
    ];
    let found = document(&compared);
    let lists = [
        &found["remarks"],
        &found["stages"][0]["remarks"],
        &found["not_compared"],
    ];
    let lines = lists.map(|list| {
        let lines = list.as_array().unwrap().iter();
        lines
            .map(|line| line.as_str().unwrap().to_owned() + "\n")
            .collect::<String>()
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn of_too_little_by_every_method() {
    let (base, other) = (2, 3);
    let methods = [
        Method::Flows { flows: 4 },
        Method::DifferentFlows { base, other },
        Method::Rounds { base, other },
        Method::Runs { base, other },
    ];
    let reasons = methods.map(|method| {
        let untested = MetricComparison {
            method,
            p_value: None,
            ..metric(Change::Unknown, 0.5)
        };
        let compared = comparison(vec![("mesh", vec![untested])], None);
        let found = document(&compared);
        let reason = &found["stages"][0]["metrics"][0]["reason"];
        reason.as_str().unwrap().to_owned()
    });
    insta::assert_snapshot!(reasons.join("\n"));
    let tested = comparison(vec![("mesh", vec![metric(Change::None, 0.99)])], None);
    let found = document(&tested);
    assert!(found["stages"][0]["metrics"][0]["reason"].is_null());
}

#[test]
fn sides_are_named_as_asked_or_by_their_runs() {
    let mut compared = comparison(vec![("mesh", Vec::new())], None);
    compared.base.given_name = None;
    compared.other.given_name = None;
    compared.other.run_ids = vec!["r1".into(), "r2".into(), "r3".into()];
    let found = document(&compared);
    assert_eq!(found["base"]["name"], "before");
    assert_eq!(found["other"]["name"], "r1 and 2 more");
    assert_eq!(found["base"]["nic_source"], "link speed");
    compared.other.given_name = Some("1 GbE".into());
    assert_eq!(document(&compared)["other"]["name"], "1 GbE");
}

#[test]
fn what_the_ratio_compares_is_told_next_to_it() {
    let (_, compared) = cases().remove(0);
    let report = |format| render_comparison(&compared, format, &TextStyle::default()).unwrap();
    let text = report(Format::Markdown);
    assert!(text.contains("it can differ from the quotient of the medians"));
    assert!(report(Format::Html).contains("it can differ from the bars"));
}

fn document(compared: &Comparison) -> Value {
    let text = render_comparison(compared, Format::Json, &TextStyle::default()).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// One of each kind, and each part that may be absent.
fn notes() -> Vec<ComparisonNote> {
    let not_whole = |outcome| ComparisonNote::NotWhole {
        run: "20261126-0000".into(),
        outcome,
    };
    let hosts = |base: &[&str], other: &[&str]| ComparisonNote::Hosts {
        base: base.iter().map(ToString::to_string).collect(),
        other: other.iter().map(ToString::to_string).collect(),
    };
    let spread = |degrees, history| ComparisonNote::Spread {
        metric: Metric::LatencyP99,
        stage: "rtt".into(),
        spread: RunSpread {
            deviation: 0.0123,
            degrees,
            history,
        },
    };
    vec![
        not_whole(Outcome::Partial),
        not_whole(Outcome::Interrupted),
        not_whole(Outcome::Failed),
        not_whole(Outcome::Unfinished),
        ComparisonNote::LineRate {
            base: Some(25e9),
            other: None,
        },
        ComparisonNote::Frames {
            base: common::framing(),
            other: KnownFraming {
                is_mtu_known: false,
                ..common::framing()
            },
        },
        ComparisonNote::Version {
            base: "0.1.0".into(),
            other: "0.2.0".into(),
        },
        ComparisonNote::Kernels {
            base: vec!["6.1.0".into(), "6.12.0".into()],
            other: Vec::new(),
        },
        ComparisonNote::Fleet {
            base: "ssh".into(),
            other: "slurm".into(),
        },
        hosts(&["a", "b"], &[]),
        hosts(&["a"], &["b", "c", "d", "e", "f"]),
        ComparisonNote::Seeds {
            base: 1,
            other: 2,
            base_run: "20261126-0000".into(),
        },
        spread(None, 0),
        spread(Some(3), 0),
        spread(Some(3), 7),
        ComparisonNote::TooFewRuns,
    ]
}

fn stage_notes() -> Vec<StageNote> {
    vec![
        StageNote::Name {
            base: "mesh".into(),
            other: "mesh 2".into(),
        },
        StageNote::Pattern {
            base: "mesh".into(),
            other: "permutation".into(),
        },
        StageNote::Tool {
            base: Tool::Engine,
            other: Tool::Iperf3,
        },
        StageNote::Settings {
            base: Vec::new(),
            other: vec![Setting::Streams(4), Setting::Mptcp],
        },
        StageNote::Window {
            base_ns: 1_000_000_000,
            other_ns: 2_000_000_000,
        },
        StageNote::Rounds { base: 6, other: 3 },
    ]
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
        pairs: Vec::new(),
        hosts: Vec::new(),
    }
}

fn comparison(stages: Vec<(&str, Vec<MetricComparison>)>, threshold: Option<f64>) -> Comparison {
    let side = |name: &str| Side {
        given_name: Some(name.into()),
        run_ids: vec![name.into()],
        scenario: "mesh".into(),
        started_unix_ns: 0,
        hosts: 6,
        nic_bits_per_sec: Some(100e6),
        nic_rate_source: NicRateSource::LinkSpeed,
        ceiling_bits_per_sec: Some(95.6e6),
    };
    let stage = |(name, metrics): (&str, Vec<MetricComparison>)| StageComparison {
        name: name.into(),
        pattern: "mesh".into(),
        workload: "tcp-stream (engine)".into(),
        notes: Vec::new(),
        metrics,
    };
    Comparison {
        base: side("before"),
        other: side("after"),
        verdict: ComparisonVerdict::NotWorse,
        threshold,
        stages: stages.into_iter().map(stage).collect(),
        not_compared: Vec::new(),
        notes: Vec::new(),
    }
}
