//! The numbers against the lab's known truth.

use crate::common::{TestLab, can_run_labs, word};

/// Payload of a 200 Mb/s link with MTU 1500, as Linux queueing disciplines count frames.
const TRUTH_BITS_PER_SEC: f64 = 200e6 * 1448.0 / 1514.0;

#[test]
fn one_flow_alone_is_within_one_percent() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 2\nnic: 200M\n");
    let finished = lab.run("pair", &["--set", "duration=1s", "--set", "samples=5"]);
    let measured = finished.json["stages"][0]["flow_bits_per_sec"]["value"]
        .as_f64()
        .unwrap();
    let off = measured / TRUTH_BITS_PER_SEC - 1.0;
    assert!(
        off.abs() < 0.01,
        "{measured} b/s is off by {:.2}%",
        off * 100.0
    );
}

#[test]
fn a_clean_one_to_one_network_is_found_clean() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 3\nhosts-per-rack: 3\nnic: 20M\noversubscription: 1\n");
    let args = [&QUICK_QUALIFY[..], &["--set", "expect.oversubscription=1"]].concat();
    let finished = lab.run("qualify", &args);
    assert_eq!(
        finished.findings(),
        [],
        "{}",
        finished.json["verdict"]["sentence"]
    );
    assert_eq!(finished.code, 0);
}

#[test]
fn random_picks_with_collisions_accuse_nobody() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 2\nhosts-per-rack: 4\nnic: 50M\noversubscription: 1\n");
    let finished = lab.run(
        "random-cross-rack",
        &["--seed", "3", "--set", "duration=1s"],
    );
    let collisions: u64 = finished.json["stages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|stage| stage["random_collisions"].as_u64())
        .sum();
    assert!(collisions > 0, "this seed has collisions");
    let accused: Vec<_> = finished
        .findings()
        .into_iter()
        .filter(|(cause, _)| cause.starts_with("slow"))
        .collect();
    assert_eq!(accused, []);
}

#[test]
fn a_mesh_of_sixteen_measures_every_ordered_pair_once_and_starts_together() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 2\nhosts-per-rack: 8\nnic: 20M\noversubscription: 1\n");
    let finished = lab.run(
        "mesh",
        &[
            "--set",
            "duration=300ms",
            "--set",
            "expect.oversubscription=1",
        ],
    );
    let cells = finished.json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 16 * 15);
    assert!(
        cells.iter().all(|cell| cell["samples"] == 1),
        "{}",
        finished.stderr
    );
    assert_eq!(finished.json["stages"][0]["rounds"], 15);
    assert!(
        finished.json["stages"][0]["start_skew_ns"].is_array(),
        "the skew is measured and shown"
    );
}

pub(crate) const QUICK_QUALIFY: [&str; 6] = [
    "--set",
    "duration=1s",
    "--set",
    "warm-up=200ms",
    "--set",
    "idle rtt.duration=100ms",
];

pub(crate) fn assert_oversubscription(json: &serde_json::Value, truth: f64) {
    let pairs = json["rack_pairs"].as_array().unwrap();
    assert!(!pairs.is_empty());
    for pair in pairs {
        let ratio = &pair["oversubscription"];
        let value = ratio["value"]
            .as_f64()
            .unwrap_or_else(|| panic!("no ratio: {}", word(&pair["reason"])));
        assert!((value / truth - 1.0).abs() < 0.1, "{value} for {truth}");
        let (low, high) = (
            ratio["low"].as_f64().unwrap(),
            ratio["high"].as_f64().unwrap(),
        );
        assert!(
            low <= truth && truth <= high,
            "{low}-{high} does not contain {truth}"
        );
    }
}
