//! The binary on loopback: no privilege needed.

use crate::common::{Finished, eastwest, kill, text, wait_for};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const QUICK: [&str; 8] = [
    "--set",
    "duration=300ms",
    "--set",
    "warm-up=100ms",
    "--set",
    "gap=100ms",
    "--set",
    "samples=1",
];

fn local(scenario: &str, hosts: &str, runs: &TempDir) -> Command {
    let mut command = eastwest();
    command
        .args([
            "run", scenario, "--fleet", "local", "--hosts", hosts, "--format", "json", "--seed",
            "7",
        ])
        .args(QUICK)
        .arg("--runs-dir")
        .arg(runs.path());
    command
}

#[test]
fn a_pair_is_measured_and_can_be_reported_again() {
    let runs = tempfile::tempdir().unwrap();
    let finished = Finished::of(&local("pair", "n[1-2]", &runs).output().unwrap());
    assert!(finished.is_measured(), "{}", finished.stderr);
    let rate = finished.json["stages"][0]["aggregate_bits_per_sec"]["value"]
        .as_f64()
        .unwrap();
    assert!(rate > 1e8, "loopback at {rate} b/s");

    let again = eastwest()
        .args(["report", "latest", "--format", "json", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again, finished.json, "an old run gives the same again");

    let run_dir = std::fs::read_dir(runs.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for file in [
        "run.json",
        "events.jsonl",
        "flows.parquet",
        "intervals.parquet",
        "hosts.parquet",
        "findings.json",
        "report.html",
    ] {
        assert!(run_dir.join(file).metadata().unwrap().len() > 0, "{file}");
    }
}

#[test]
fn every_ordered_pair_of_a_mesh_is_measured_once() {
    let runs = tempfile::tempdir().unwrap();
    let finished = Finished::of(&local("mesh", "n[1-5]", &runs).output().unwrap());
    assert!(finished.is_measured(), "{}", finished.stderr);
    let cells = finished.json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 20);
    assert!(
        cells
            .iter()
            .all(|c| c["samples"] == 1 && c["bits_per_sec"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn iperf3_fills_the_same_rows() {
    if !crate::common::can_run_labs() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let mut command = local("pair", "n[1-4]", &runs);
    let finished = Finished::of(&command.args(["--tool", "iperf3"]).output().unwrap());
    assert!(finished.is_measured(), "{}", finished.stderr);
    assert_eq!(finished.json["stages"][0]["missing"], 0);
    assert!(finished.json["stages"][0]["retransmits"].is_u64());
    // Other tests run iperf3, too, and end; what was left behind would stay.
    crate::common::wait_for("no servers left behind", Duration::from_secs(60), || {
        crate::common::processes_with(&["iperf3", "127.0.0.2"]).is_empty()
    });
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let plan = |seed: &str| {
        let out = eastwest()
            .args([
                "run",
                "permutation",
                "--fleet",
                "local",
                "--hosts",
                "n[1-9]",
                "--dry-run",
            ])
            .args(["--format", "json", "--seed", seed])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        out.stdout
    };
    assert_eq!(plan("1"), plan("1"));
    assert_ne!(plan("1"), plan("2"));
}

#[test]
fn wrong_input_is_code_2_with_the_spot_and_the_remedy() {
    let cases: [(&[&str], &str); 6] = [
        (&["run", "--hosts", "n[1-4"], "n[1-4"),
        (&["run", "--hosts", "host[302,304,305-0333]"], "padding"),
        (&["run", "--racks", "@nosuch"], "nosuch"),
        (&["run", "nosuch", "--hosts", "n[1-2]"], "qualify"),
        (
            &[
                "run",
                "--hosts",
                "n[1-2]",
                "--fleet",
                "local",
                "--set",
                "durration=1s",
            ],
            "duration",
        ),
        (&["run"], "--hosts"),
    ];
    for (args, expected) in cases {
        let out = eastwest().args(args).output().unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn json_is_valid_also_on_failure() {
    for args in [
        &["run", "--hosts", "n[1-4"][..],
        &["run", "--no-such-option"][..],
    ] {
        let out = eastwest()
            .args(args)
            .args(["--format", "json"])
            .output()
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(json["error"]["exit_code"], 2, "{args:?}");
    }
}

#[test]
fn unresolvable_names_are_all_said_before_anything_starts() {
    let runs = tempfile::tempdir().unwrap();
    let out = eastwest()
        .args([
            "run",
            "pair",
            "--hosts",
            "no-such-host-[1-2].invalid",
            "--runs-dir",
        ])
        .arg(runs.path())
        .output()
        .unwrap();
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no-such-host-1.invalid") && stderr.contains("no-such-host-2.invalid"));
    assert_eq!(std::fs::read_dir(runs.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let runs = tempfile::tempdir().unwrap();
    let child = local("mesh", "n[1-8]", &runs)
        .args(["--set", "duration=1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let events = || {
        let dir = std::fs::read_dir(runs.path()).ok()?.next()?.ok()?.path();
        std::fs::read_to_string(dir.join("events.jsonl")).ok()
    };
    wait_for("a finished round", Duration::from_secs(20), || {
        events().is_some_and(|e| e.contains("round-finished"))
    });
    kill("-INT", child.id());
    let finished = Finished::of(&child.wait_with_output().unwrap());
    assert_eq!(finished.code, 130);
    let measured = finished.json["cells"].as_array().unwrap();
    assert!(measured.iter().any(|c| c["bits_per_sec"].is_f64()));
    assert!(
        measured.iter().all(|c| c["bits_per_sec"] != 0.0),
        "missing is never 0"
    );
}

#[test]
fn the_binary_is_one_static_file() {
    let out = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_eastwest"))
        .output();
    let Ok(out) = out else {
        println!("skipped: no ldd here");
        return;
    };
    let said = text(&out.stdout) + &text(&out.stderr);
    assert!(
        said.contains("statically linked") || said.contains("not a dynamic executable"),
        "{said}"
    );
}

#[test]
fn stock_iperf3_clients_are_served_during_a_run() {
    let runs = tempfile::tempdir().unwrap();
    let mut run = local("pair", "n[1-2]", &runs)
        .args(["--set", "duration=2s", "--offer-iperf3", "5411"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ask = || {
        let client = Command::new("iperf3")
            .args(["-c", "127.0.0.2", "-p", "5411", "-n", "1M"])
            .output()
            .unwrap();
        client.status.success()
    };
    wait_for("an answer to a stock client", Duration::from_secs(10), ask);
    let code = run.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    assert!(!ask(), "nobody serves after the run");
}
