//! A dead host costs its own host pairs only.

use crate::common::{Finished, TestLab, can_run_labs, kill, processes_with, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const MESH: &str = "racks: 2\nhosts-per-rack: 3\nnic: 100M\noversubscription: 1\n";
const MESH_ARGS: [&str; 4] = ["--set", "duration=1s", "--set", "expect.oversubscription=1"];

#[test]
fn an_agent_killed_in_mid_mesh_is_named_and_its_cells_are_repaired_when_it_returns() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(MESH);
    let child = start(&lab);
    wait_for_rounds(&lab.runs_dir(), 1);
    let victim = agents_of(&lab, "r1h2");
    assert_eq!(victim.len(), 1, "one agent on r1h2");
    kill("-KILL", victim[0]);
    let finished = Finished::of(&child.wait_with_output().unwrap());
    // The lab launcher can start it again at once, so that the repair rounds fill the holes.
    let cells = finished.json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 30);
    assert!(
        cells
            .iter()
            .all(|c| c["bits_per_sec"].as_f64() != Some(0.0))
    );
    assert!(
        cells.iter().all(|c| c["bits_per_sec"].is_f64()),
        "{}",
        finished.json["verdict"]
    );
    assert!(agents(&lab).is_empty(), "agents were left behind");
}

#[test]
fn a_link_down_in_mid_mesh_costs_its_own_cells_only() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(MESH);
    let child = start(&lab);
    wait_for_rounds(&lab.runs_dir(), 1);
    lab.fault("r2h1", "link-down");
    let finished = Finished::of(&child.wait_with_output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    for cell in finished.json["cells"].as_array().unwrap() {
        let touches = cell["src"] == 3 || cell["dst"] == 3;
        match cell["bits_per_sec"].as_f64() {
            Some(rate) => assert!(rate > 0.0),
            None => assert!(touches && cell["missing"].is_string(), "{cell}"),
        }
        assert!(touches || cell["bits_per_sec"].is_f64(), "{cell}");
    }
    let named = finished
        .findings()
        .iter()
        .any(|(_, sentence)| sentence.contains("r2h1"));
    assert!(named, "{:?}", finished.findings());
    assert!(agents(&lab).is_empty(), "agents were left behind");
}

/// Of a datagram in fragments all must come.
#[test]
fn datagrams_of_which_none_comes_are_a_figure() {
    if !can_run_labs() {
        return;
    }
    let lab =
        TestLab::up("racks: 1\nhosts-per-rack: 2\nnic: 100M\nfaults: [{host: r1h1, loss: 25%}]\n");
    let datagrams = "--workload=udp-stream --set message-size=65000 --set rate=20M";
    // The connection next to them needs its time, too.
    let window = "--set samples=1 --duration 1s --set gap=2s --seed 1";
    let args: Vec<&str> = format!("{datagrams} {window}").leak().split(' ').collect();
    let finished = lab.run("pair", &args);
    for cell in finished.json["cells"].as_array().unwrap() {
        assert_eq!(cell["bits_per_sec"], 0.0, "{cell}");
    }
    for stage in finished.json["stages"].as_array().unwrap() {
        let datagrams = &stage["datagrams"];
        assert_eq!(datagrams["received"], 0, "{datagrams}");
        assert_eq!(datagrams["loss"], 1.0, "{datagrams}");
        // 38.5 a second.
        assert!(
            (10..100).contains(&datagrams["lost"].as_u64().unwrap()),
            "{datagrams}"
        );
    }
    let verdict = finished.json["verdict"].to_string();
    assert!(verdict.contains("44 fragments"), "{verdict}");
}

/// Other flows go on bringing the receiver data, as they do next to a flow that is only starved.
#[test]
fn a_senders_link_down_in_mid_incast_is_missing_and_not_taken_for_starved() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 5\nnic: 20M\n");
    let args = ["--seed", "1", "--set", "duration=5s", "--set", "samples=2"];
    let child = start_run(&lab, "incast", &args);
    wait_for_rounds(&lab.runs_dir(), 1);
    // A second into the second window.
    std::thread::sleep(Duration::from_millis(1500));
    lab.fault("r1h2", "link-down");
    let finished = Finished::of(&child.wait_with_output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let events = events(&lab.runs_dir()).unwrap();
    let second = events
        .lines()
        .filter(|line| line.contains("round-finished"))
        .nth(1);
    let round: serde_json::Value = serde_json::from_str(second.unwrap()).unwrap();
    let records = round["event"]["data"]["records"].as_array().unwrap();
    assert_eq!(records.len(), 4);
    for record in records {
        assert_ne!(record["dst"], 1, "with this seed r1h2 sends");
        let is_missing = record["outcome"]["missing"].is_object();
        assert_eq!(is_missing, record["src"] == 1, "{record}");
    }
    assert!(agents(&lab).is_empty(), "agents were left behind");
}

fn start(lab: &TestLab) -> Child {
    start_run(lab, "mesh", &MESH_ARGS)
}

fn start_run(lab: &TestLab, scenario: &str, args: &[&str]) -> Child {
    lab.run_command(scenario)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn wait_for_rounds(runs: &Path, rounds: usize) {
    wait_for("finished rounds", Duration::from_secs(30), || {
        events(runs).is_some_and(|events| events.matches("round-finished").count() >= rounds)
    });
}

pub(crate) fn events(runs: &Path) -> Option<String> {
    let dir: PathBuf = std::fs::read_dir(runs).ok()?.next()?.ok()?.path();
    std::fs::read_to_string(dir.join("events.jsonl")).ok()
}

/// Agents of this lab: processes whose environment names it.
fn agents(lab: &TestLab) -> Vec<u32> {
    let of_lab = format!("EASTWEST_LAB={}", lab.name);
    processes_with(&["exe agent"])
        .into_iter()
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            crate::common::text(&environment)
                .split('\0')
                .any(|variable| variable == of_lab)
        })
        .collect()
}

pub(crate) fn agents_of(lab: &TestLab, host: &str) -> Vec<u32> {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let there = lab
        .exec(host)
        .args(["readlink", "/proc/self/ns/net"])
        .output()
        .unwrap();
    let there = PathBuf::from(crate::common::text(&there.stdout).trim());
    agents(lab)
        .into_iter()
        .filter(|pid| namespace(&pid.to_string()) == Some(there.clone()))
        .collect()
}
