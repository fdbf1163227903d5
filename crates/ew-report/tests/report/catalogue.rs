//! Golden texts of every entry of the catalogue: singular, plural, one direction and both.

mod cells_missing;
mod comparison;
mod congestion;
mod host_missing;
mod not_determined;
mod pod_network;
mod sweep;
mod uplink;

pub(crate) use congestion::impacts;
pub(crate) use pod_network::comparisons;
pub(crate) use sweep::steps;

use crate::common;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Confidence, Details, Finding, Severity, Subject};
use ew_model::{HostId, Inventory, RackId};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the entries say of these details, where there are two racks of four hosts.
fn golden(cases: &[(&str, Details)]) -> String {
    golden_among(&common::inventory(2, 4), cases)
}

/// The same among other hosts.
fn golden_among(names: &Inventory, cases: &[(&str, Details)]) -> String {
    let mut text = String::new();
    for (case, details) in cases {
        let found = ew_report::worded(&finding(details.clone()), names);
        writeln!(text, "# {case}\n{}", found.sentence).unwrap();
        for evidence in &found.evidence {
            writeln!(text, "- {} [{}]", evidence.text, evidence.source).unwrap();
        }
        writeln!(text, "next: {}\n", found.hint).unwrap();
    }
    text
}

fn finding(details: Details) -> Finding {
    Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause: Cause::NotDetermined,
        symptom: None,
        measured: None,
        expected: None,
        confidence: Confidence::High,
        details,
        cables: Vec::new(),
    }
}

/// Every kind of details, with a golden text or without.
fn all() -> Vec<(&'static str, Details)> {
    [
        cells_missing::cases(),
        congestion::cases(),
        host_missing::cases(),
        not_determined::cases(),
        pod_network::cases(),
        uplink::cases(),
    ]
    .concat()
}

/// The same as findings.
pub(crate) fn findings() -> Vec<Finding> {
    let all = all().into_iter();
    all.map(|(_, details)| finding(details)).collect()
}

/// With an interval, from twelve samples.
fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate {
        value,
        low: Some(low),
        high: Some(high),
        samples: 12,
    }
}

/// A host's number, from its rack's and its own, both from 1.
fn host(rack: u32, host: u32) -> HostId {
    HostId(4 * (rack - 1) + host - 1)
}

fn rack(number: u32) -> RackId {
    RackId(number - 1)
}

#[test]
fn every_kind_of_details_has_a_golden_text() {
    let kind = |details: &Details| {
        let value = serde_json::to_value(details).unwrap();
        value["kind"].as_str().unwrap().to_owned()
    };
    let golden: BTreeSet<String> = all().iter().map(|(_, details)| kind(details)).collect();
    let schema = schemars::schema_for!(Details).to_value();
    let variants = schema["oneOf"].as_array().unwrap().iter();
    let kinds = variants.map(|v| v["properties"]["kind"]["const"].as_str().unwrap());
    let missing: Vec<&str> = kinds
        .filter(|kind| *kind != "unknown" && !golden.contains(*kind))
        .collect();
    assert!(missing.is_empty(), "without golden text: {missing:?}");
}
