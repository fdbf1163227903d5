//! `eastwest size`: the worked vectors, and what no number of nodes meets.

use crate::common::{eastwest, text};
use serde_json::Value;
use std::process::Output;

const WORKED: &str = "--data 10TB --within 30m --disk 1.2GB/s --nic 25G";

fn size(words: &str) -> Output {
    eastwest()
        .arg("size")
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

fn nodes(words: &str) -> u64 {
    let out = size(&format!("{WORKED} --json {words}"));
    assert!(out.status.success(), "{words}: {}", text(&out.stderr));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    document["answer"]["nodes"].as_u64().unwrap()
}

#[test]
fn the_worked_vectors_are_exact() {
    assert_eq!(nodes(""), 14);
    assert_eq!(nodes("--headroom 20% --failures 1"), 18);
    assert_eq!(nodes("--ec 6,3 --headroom 0.2 --failures 1"), 10);
}

#[test]
fn people_see_each_constraint() {
    let out = size(&format!(
        "{WORKED} --headroom 20% --failures 1 --price 9000"
    ));
    let shown = text(&out.stdout);
    assert!(shown.starts_with("18 storage nodes"), "{shown}");
    for part in [
        "price 162000",
        "Binding constraint: disk",
        "NIC RX",
        "5.93",
        "17, 18, 19",
    ] {
        assert!(shown.contains(part), "`{part}` in\n{shown}");
    }
}

/// 10 TB in 30 min are 5.56 GB/s, with 20% headroom 6.67 GB/s.
#[test]
fn clients_and_uplink_get_the_headroom_too() {
    let words = "--client-nic 10G --uplink 60G";
    let shown = text(&size(&format!("{WORKED} {words} --headroom 20%")).stdout);
    for part in [
        "6 clients",
        "99% of 6.75 GB/s",
        "6.67 GB/s",
        "Clients needed: 6",
    ] {
        assert!(shown.contains(part), "`{part}` in\n{shown}");
    }
    let bare = text(&size(&format!("{WORKED} {words}")).stdout);
    assert!(
        bare.contains("5 clients") && bare.contains("82% of 6.75 GB/s"),
        "{bare}"
    );
    let unknown = text(&size(WORKED).stdout);
    assert!(
        unknown.contains("uplink") && unknown.contains("5.56 GB/s"),
        "{unknown}"
    );
    let out = size(&format!("{WORKED} --uplink 55G --headroom 20%"));
    assert_eq!(out.status.code(), Some(1));
    let error = text(&out.stderr);
    assert!(error.contains("with 20% headroom"), "{error}");
    assert!(error.contains("binding constraint: uplink"), "{error}");
    assert!(size(&format!("{WORKED} --uplink 55G")).status.success());
}

#[test]
fn a_deadline_out_of_reach_names_the_binding_constraint() {
    let out = size(&format!("{WORKED} --clients 4 --client-nic 10G"));
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains("binding constraint: clients"), "{said}");
    let out = size(&format!("{WORKED} --uplink 10G --json"));
    assert_eq!(out.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["unreachable"]["constraint"], "uplink");
    assert!(document["answer"].is_null());
}

#[test]
fn wrong_input_is_usage() {
    for words in [
        "--data 10TB --within 30m",
        "--data 10TB --within 0s --disk 1GB/s",
        "--data 10XB --within 1h --disk 1GB/s",
        "--data 10TB --within 1h --disk 1GB/s --replication 0",
        "--data 10TB --within 1h --disk 1GB/s --ec 6",
        "--data 10TB --within 1h --disk 1GB/s --headroom much",
    ] {
        let out = size(words);
        assert_eq!(out.status.code(), Some(2), "{words}: {}", text(&out.stderr));
    }
}
