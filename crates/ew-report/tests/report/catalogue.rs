//! Golden texts of every entry of the catalogue: singular, plural, one direction and both.

mod background_traffic;
mod bad_path;
mod basis;
mod below_link;
mod black_hole;
mod bond_member;
mod comparison;
mod congestion;
mod conntrack;
mod disk;
mod faster_network;
mod host_missing;
mod incast;
mod latency;
mod line_rate;
mod link_speed;
mod loss;
mod lost_path;
mod measurement;
mod mtu;
mod nic_classes;
mod not_determined;
mod pairs_missing;
mod path_loss;
mod paths;
mod pod_network;
mod racks;
mod settings;
mod slow_at_times;
mod slow_host;
mod slow_pair;
mod starved_host;
mod stated_nic;
mod sweep;
mod tools;
mod uplink;
mod warnings;
mod why;

pub(crate) use congestion::impacts;
pub(crate) use pod_network::comparisons;
pub(crate) use settings::settings;
pub(crate) use sweep::{notes, steps};
pub(crate) use tools::comparison as tools;
pub(crate) use warnings::warnings;

use crate::common;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Confidence, Details, Finding, Severity, Subject};
use ew_model::{HostId, Inventory, RackId};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The words of the entries for these details, where there are two racks of four hosts.
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
        background_traffic::cases(),
        bad_path::cases(),
        below_link::cases(),
        black_hole::cases(),
        bond_member::cases(),
        pairs_missing::cases(),
        congestion::cases(),
        disk::cases(),
        faster_network::cases(),
        host_missing::cases(),
        incast::cases(),
        latency::cases(),
        line_rate::cases(),
        link_speed::cases(),
        loss::cases(),
        lost_path::cases(),
        measurement::cases(),
        mtu::cases(),
        nic_classes::cases(),
        not_determined::cases(),
        path_loss::cases(),
        paths::cases(),
        pod_network::cases(),
        slow_at_times::cases(),
        slow_host::cases(),
        slow_pair::cases(),
        starved_host::cases(),
        stated_nic::cases(),
        uplink::cases(),
        why::cases(),
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

/// The documentation has a heading for each cause, and an example that is worded so.
#[test]
fn every_cause_is_documented_with_a_true_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/reference/causes.md")).unwrap();
    let schema = schemars::schema_for!(Cause).to_value();
    let variants = schema["oneOf"].as_array().unwrap().iter();
    let causes: Vec<&str> = variants.map(|v| v["const"].as_str().unwrap()).collect();
    let sections: Vec<(&str, &str)> = page
        .split("\n## ")
        .skip(1)
        .map(|section| section.split_once('\n').unwrap())
        .collect();
    let headings: BTreeSet<&str> = sections.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, causes.into_iter().collect());
    let names = common::inventory(2, 4);
    let sentences: BTreeSet<String> = all()
        .into_iter()
        .map(|(_, details)| ew_report::worded(&finding(details), &names).sentence)
        .collect();
    for (heading, section) in sections {
        let example = section.lines().find_map(|line| line.strip_prefix("> "));
        let example = example.unwrap_or_else(|| panic!("{heading} has no example"));
        assert!(sentences.contains(example), "{heading}: {example}");
    }
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
