//! Victims under load.

use super::{estimate, golden};
use ew_model::analysis::Estimate;
use ew_model::congestion::{Aggressor, CongestionImpact, Impact};
use ew_model::finding::Details;
use ew_model::finding::details::Congestion;
use ew_model::workload::WorkloadKind;

#[test]
fn of_times_and_of_rates() {
    insta::assert_snapshot!(golden(&cases()));
}

#[test]
fn a_sentence_has_factors_with_intervals_and_both_figures() {
    let found = ew_report::worded_impact(&round_trips());
    assert_eq!(
        found.sentence,
        "round trips under incast: mean x7.20 (6.90-7.60); 50.0 µs alone, 360 µs under incast"
    );
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let of = |impact: CongestionImpact, is_longer_wait| {
        Details::Congestion(Congestion {
            impact: Box::new(impact),
            is_longer_wait,
        })
    };
    let [times, with_tail, rates] = impacts().try_into().unwrap();
    vec![
        ("round trips that wait longer", of(times, true)),
        (
            "with the tail and the load, too few repetitions",
            of(with_tail, false),
        ),
        ("bulk", of(rates, false)),
    ]
}

/// Times, times with their tail, and rates.
pub(crate) fn impacts() -> Vec<CongestionImpact> {
    let few = |value| Estimate {
        value,
        low: None,
        high: None,
        samples: 3,
    };
    let impact = |alone, loaded, factor| Impact {
        alone,
        loaded,
        factor,
    };
    let with_tail = CongestionImpact {
        mean: impact(50_000.0, 360_000.0, few(7.2)),
        p99: Some(impact(90_000.0, 1_100_000.0, few(12.2))),
        aggressors_bits_per_sec: Some(estimate(740e6, 730e6, 745e6)),
        ..round_trips()
    };
    let rates = CongestionImpact {
        stage: "bulk under all-to-all".into(),
        baseline_stage: "bulk".into(),
        aggressor: Aggressor::AllToAll,
        kind: WorkloadKind::TcpStream,
        mean: impact(94e6, 31e6, estimate(3.03, 2.9, 3.1)),
        p99: Some(impact(92e6, 8e6, estimate(11.5, 9.8, 12.9))),
        aggressors_bits_per_sec: Some(estimate(740e6, 730e6, 745e6)),
    };
    vec![round_trips(), with_tail, rates]
}

fn round_trips() -> CongestionImpact {
    CongestionImpact {
        stage: "round trips under incast".into(),
        baseline_stage: "round trips".into(),
        aggressor: Aggressor::Incast,
        kind: WorkloadKind::TcpRr,
        mean: Impact {
            alone: 50_000.0,
            loaded: 360_000.0,
            factor: estimate(7.2, 6.9, 7.6),
        },
        p99: None,
        aggressors_bits_per_sec: None,
    }
}
