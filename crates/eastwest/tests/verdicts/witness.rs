//! The engine's figures against a witness that knows nothing of it: the counters of the lab's
//! switches.

use crate::common::{TestLab, can_run_labs, eastwest, word};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

/// Frame bytes that are no payload: Ethernet, IPv4, TCP with time stamps.
const HEADER_BYTES: f64 = 14.0 + 20.0 + 32.0;

#[test]
fn what_the_switches_carried_is_what_receivers_report() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 2\nhosts-per-rack: 3\nnic: 40M\npaths: 3\n");
    let file = lab.work.path().join("counters.jsonl");
    let mut witness = eastwest()
        .args(["lab", "counters", "--lab", &lab.name])
        .args(["--every", "10ms", "--for", "120s"])
        .stdout(std::fs::File::create(&file).unwrap())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let finished = lab.run(
        "cross-rack",
        &["--set", "duration=2s", "--set", "samples=4"],
    );
    witness.kill().unwrap();
    witness.wait().unwrap();
    let run = lab.runs_dir().join(word(&finished.json["run"]["id"]));
    let readings = readings(&file);
    assert!(readings.len() > 100, "{} readings", readings.len());
    let (mut reported, mut seen) = (0.0, 0.0);
    for round in rounds(&run) {
        for (rack, hosts) in [("r1", 0..3), ("r2", 3..6)] {
            let ends: Vec<&End> = round.iter().filter(|e| hosts.contains(&e.host)).collect();
            if ends.is_empty() {
                continue;
            }
            let bytes: f64 = ends.iter().map(|end| end.bytes).sum();
            let begin = ends.iter().map(|end| end.begin_ns).sum::<f64>() / ends.len() as f64;
            let length = ends.iter().map(|end| end.length_ns).sum::<f64>() / ends.len() as f64;
            let carried = |at| payload_until(&readings, &format!("{rack}/"), at);
            // On a busy machine nobody may have read in time.
            let (Some(before), Some(after)) = (carried(begin), carried(begin + length)) else {
                continue;
            };
            reported += bytes;
            seen += after - before;
        }
    }
    assert!(reported > 1e7, "nobody read in time: {reported}");
    let off = reported / seen - 1.0;
    assert!(
        off.abs() < 0.01,
        "{reported} of {seen}: off by {:.2}%",
        off * 100.0
    );
}

struct End {
    host: u64,
    begin_ns: f64,
    length_ns: f64,
    bytes: f64,
}

/// The receiving ends of every round's flows from rack to rack; the first three hosts are one
/// rack's.
fn rounds(run: &Path) -> Vec<Vec<End>> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finished = events.filter(|event| event["event"]["type"] == "round-finished");
    let end = |record: &Value| {
        let receiver = &record["receiver"];
        let (src, dst) = (record["src"].as_u64()?, record["dst"].as_u64()?);
        if (src < 3) == (dst < 3) {
            return None;
        }
        Some(End {
            host: dst,
            begin_ns: receiver["window_start_ns"].as_f64()?,
            length_ns: receiver["window_ns"].as_f64()?,
            bytes: receiver["bytes"].as_f64()?,
        })
    };
    finished
        .map(|event| {
            let records = event["event"]["data"]["records"].as_array().unwrap();
            records.iter().filter_map(end).collect()
        })
        .collect()
}

/// (time, payload that every port had carried until then).
fn readings(file: &Path) -> Vec<(f64, BTreeMap<String, f64>)> {
    let text = std::fs::read_to_string(file).unwrap();
    // The last line may be cut.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let payload = |port: &Value| {
        let number = |key: &str| port[key].as_f64().unwrap();
        let name = port["name"].as_str().unwrap().to_owned();
        (name, number("bytes") - HEADER_BYTES * number("packets"))
    };
    lines
        .map(|line| {
            let ports = line["ports"].as_array().unwrap();
            let at = line["monotonic_ns"].as_f64().unwrap();
            (at, ports.iter().map(payload).collect())
        })
        .collect()
}

/// Into a rack by all its paths, between two readings as if it flowed evenly.
/// `None` when these are far apart.
fn payload_until(readings: &[(f64, BTreeMap<String, f64>)], rack: &str, at: f64) -> Option<f64> {
    const LONGEST_GAP_NS: f64 = 50e6;
    let after = readings.partition_point(|(time, _)| *time < at);
    assert!(after > 0 && after < readings.len(), "nobody read then");
    let sum = |(_, ports): &(f64, BTreeMap<String, f64>)| -> f64 {
        let into = |name: &str| name.starts_with(rack) && name.ends_with("down");
        let ports = ports.iter().filter(|(name, _)| into(name));
        ports.map(|(_, bytes)| bytes).sum()
    };
    let (before, after) = (&readings[after - 1], &readings[after]);
    let gap = after.0 - before.0;
    let share = (at - before.0) / gap;
    (gap <= LONGEST_GAP_NS).then(|| sum(before) + share * (sum(after) - sum(before)))
}
