//! Hosts whose clocks show other times: time namespaces give each agent a CLOCK_MONOTONIC of its
//! own, so that an offset that is forgotten, or has the wrong sign, is one of minutes.

use crate::common::{Finished, TestLab, can_run_labs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const LAB: &str = "racks: 1\nhosts-per-rack: 2\nnic: 1G\nsshd: true\n";
/// In place of ssh on the controller: what it starts on a host has a clock that is ahead by 500 s
/// for the host's number.
const SSH: &str = r#"#!/bin/bash
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -gt 2 ] || exec /usr/bin/ssh "${options[@]}" "$@"
quoted=$(sed "s/'/'\\\\''/g" <<<"$3")
exec /usr/bin/ssh "${options[@]}" -- "$2" "exec unshare --time --fork --kill-child --monotonic $(( ${2##*h} * 500 )) sh -c '$quoted'"
"#;
const S: i64 = 1_000_000_000;

/// Whether clocks can be shifted here; prints why not.
fn can_shift_clocks() -> bool {
    let shifted = Command::new("unshare")
        .args(["--time", "--fork", "--monotonic", "500", "true"])
        .output();
    let reason = match shifted {
        Ok(done) if done.status.success() => return true,
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    println!("skipped: no time namespaces here: {reason}");
    false
}

/// Two hosts, of which no flow is lost.
fn run_pair(lab: &TestLab, args: &[&str]) -> Finished {
    let ssh = lab.work.path().join("ssh");
    std::fs::write(&ssh, SSH).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        lab.work.path().display(),
        std::env::var("PATH").unwrap()
    );
    let output = lab
        .ssh_run_command("pair", lab.work.path())
        .args(["--hosts", "r1h1,r1h2"])
        .args(["--set", "samples=2", "--duration", "1s"])
        .args(args)
        .env("PATH", path)
        .output()
        .unwrap();
    let finished = Finished::of(&output);
    assert!(finished.is_measured(), "{}", finished.stderr);
    for stage in finished.json["stages"].as_array().unwrap() {
        assert_eq!(stage["missing"], 0, "{stage:#}\n{}", finished.stderr);
    }
    finished
}

/// Of the lab's only run, host by host: offsets of all estimates.
fn offsets_ns(lab: &TestLab) -> BTreeMap<u64, Vec<i64>> {
    let run = std::fs::read_dir(lab.runs_dir()).unwrap().next().unwrap();
    let events = std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap();
    let mut offsets: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let event = &event["event"];
        if event["type"] == "clock-synced" {
            let data = &event["data"];
            let own = offsets.entry(data["host"].as_u64().unwrap()).or_default();
            own.push(data["offset_ns"].as_i64().unwrap());
        }
    }
    offsets
}

#[test]
fn clocks_that_are_minutes_apart_lose_no_flow() {
    if !can_run_labs() || !can_shift_clocks() {
        return;
    }
    let lab = TestLab::up(LAB);
    let finished = run_pair(&lab, &[]);
    for stage in finished.json["stages"].as_array().unwrap() {
        let skew = stage["start_skew_ns"].as_array().unwrap();
        // Seconds would be a busy machine's; minutes the clocks'.
        assert!(skew[2].as_u64().unwrap() < 2_000_000_000, "{stage:#}");
        assert!(
            stage["start_skew_error_ns"].as_u64().unwrap() > 0,
            "{stage:#}"
        );
    }
    let offsets = offsets_ns(&lab);
    assert_eq!(offsets.len(), 2);
    for (host, ahead_ns) in [(0, 500 * S), (1, 1000 * S)] {
        for offset_ns in &offsets[&host] {
            assert!((offset_ns - ahead_ns).abs() < S / 10, "{offsets:?}");
        }
    }
}

#[test]
fn one_way_delays_know_nothing_of_the_clocks() {
    if !can_run_labs() || !can_shift_clocks() {
        return;
    }
    let lab = TestLab::up(LAB);
    let datagrams = ["--workload", "udp-stream", "--set", "rate=20M"];
    let finished = run_pair(&lab, &datagrams);
    for stage in finished.json["stages"].as_array().unwrap() {
        let times = &stage["datagrams"]["one_way"]["times"];
        assert!(times["count"].as_u64().unwrap() > 0, "{stage:#}");
        assert!(times["p50_ns"].as_u64().unwrap() < 500_000_000, "{stage:#}");
    }
}
