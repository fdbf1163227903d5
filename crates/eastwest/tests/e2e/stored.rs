//! Runs over time: `runs trend`, several runs in `compare`, and `eastwest serve`, on simulated runs
//! whose network is known.

use crate::common::{Finished, eastwest, kill, text};
use crate::web::{get, parts};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// From this run on the network is slower.
const CHANGED: usize = 19;
const RUNS: usize = 30;

/// Simulates a run of four hosts whose NICs have this rate, and returns its id.
fn simulate(runs: &TempDir, kilobits_per_sec: usize, seed: usize) -> String {
    let lab = runs.path().join("lab.yaml");
    let spec = format!("name: sim\nracks: 1\nhosts-per-rack: 4\nnic: {kilobits_per_sec}k\n");
    std::fs::write(&lab, spec).unwrap();
    let seed = seed.to_string();
    let out = eastwest()
        .args(["run", "mesh", "--via", "sim", "--quiet", "--format", "json"])
        .args(["--set", "samples=2", "--seed", &seed, "--topology"])
        .arg(&lab)
        .arg("--runs-dir")
        .arg(runs.path().join("runs"))
        .output()
        .unwrap();
    let finished = Finished::of(&out);
    crate::common::word(&finished.json["run"]["id"])
}

#[test]
fn what_the_simulator_has_no_model_of_is_skipped_or_refused() {
    let runs = tempfile::tempdir().unwrap();
    let lab = runs.path().join("lab.yaml");
    std::fs::write(&lab, "name: sim\nracks: 2\nhosts-per-rack: 4\nnic: 100M\n").unwrap();
    let run = |scenario: &str| {
        let mut command = eastwest();
        command.args(["run", scenario, "--via", "sim", "--dry-run", "--topology"]);
        command.arg(&lab).output().unwrap()
    };
    let qualify = run("qualify");
    assert_eq!(qualify.status.code(), Some(0), "{}", text(&qualify.stderr));
    assert!(text(&qualify.stderr).contains("skipped rtt under load: needs queues"));
    let sweep = run("sweep");
    assert_eq!(sweep.status.code(), Some(2), "{}", text(&sweep.stdout));
    assert!(text(&sweep.stderr).contains("--via sim does not model"));
}

/// A level that differs by about 1% from run to run.
fn level(index: usize) -> usize {
    const WOBBLE: [usize; 7] = [100_000, 101_100, 99_200, 100_500, 98_700, 100_900, 99_600];
    WOBBLE[index * 3 % 7] * if index < CHANGED { 10 } else { 9 } / 10
}

fn in_runs(runs: &TempDir, args: &[&str]) -> Output {
    let mut command: Command = eastwest();
    command
        .args(args)
        .arg("--runs-dir")
        .arg(runs.path().join("runs"));
    command.output().unwrap()
}

/// `eastwest serve`, which ends with the test.
struct Served {
    child: Child,
    address: SocketAddr,
    base: String,
}

impl Served {
    fn start(runs: &TempDir) -> Self {
        let mut child = eastwest()
            .args(["serve", "--runs-dir"])
            .arg(runs.path().join("runs"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let (address, base) = parts(line.trim());
        Self {
            child,
            address,
            base,
        }
    }

    fn page(&self, page: &str) -> String {
        let (status, body) = get(self.address, &format!("{}/{page}", self.base));
        assert_eq!(status, 200, "{page}: {body}");
        body
    }

    fn status(&self, path: &str) -> u16 {
        get(self.address, path).0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Both fail only when it is over and reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_change_of_the_network_is_marked_at_its_run() {
    let runs = tempfile::tempdir().unwrap();
    let trend = ["runs", "trend", "throughput", "--fail-on-change"];
    let empty = in_runs(&runs, &trend);
    assert_eq!(empty.status.code(), Some(2), "{}", text(&empty.stderr));
    let mut ids: Vec<String> = (0..CHANGED).map(|i| simulate(&runs, level(i), i)).collect();
    let steady = in_runs(&runs, &trend);
    let said = text(&steady.stdout);
    assert_eq!(steady.status.code(), Some(0), "{said}");
    assert!(
        said.starts_with("No change of level over 19 runs"),
        "{said}"
    );

    ids.extend((CHANGED..RUNS).map(|i| simulate(&runs, level(i), i)));
    let changed = in_runs(&runs, &trend);
    let said = text(&changed.stdout);
    assert_eq!(changed.status.code(), Some(1), "{said}");
    let words = "Worse: throughput in `mesh` fell by";
    assert!(
        said.starts_with(words) && said.contains(&ids[CHANGED]),
        "{said}"
    );
    let json = in_runs(&runs, &["runs", "trend", "throughput", "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let changes = json["trends"][0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{json:#}");
    assert_eq!(changes[0]["run_id"], ids[CHANGED]);
    assert_eq!(json["trends"][0]["points"].as_array().unwrap().len(), RUNS);

    compare_states(&runs, &ids);
    check_served(&runs, &ids);
}

/// Three runs of each state show the network's change; one of each shows that of the runs.
fn compare_states(runs: &TempDir, ids: &[String]) {
    let (before, after) = (ids[9..12].join(","), ids[RUNS - 3..].join(","));
    let args = [
        "compare",
        &before,
        &after,
        "--threshold",
        "5%",
        "--format",
        "json",
    ];
    let out = in_runs(runs, &args);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{json:#}");
    assert_eq!(json["verdict"], "worse");
    let metric = &json["stages"][0]["metrics"][0];
    assert_eq!(metric["method"]["by"], "runs");
    assert_eq!(metric["change"], "worse");
    // Those from before both, and none of what came between.
    assert_eq!(metric["spread"]["history"], 9, "{metric:#}");
    let same = in_runs(
        runs,
        &[
            "compare",
            &before,
            &ids[12..15].join(","),
            "--threshold",
            "5%",
        ],
    );
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    let twice = in_runs(runs, &["compare", &before, &ids[11]]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice.stderr));
    assert!(text(&twice.stderr).contains("given twice"));
}

fn check_served(runs: &TempDir, ids: &[String]) {
    let served = Served::start(runs);
    let list = served.page("");
    assert!(
        ids.iter()
            .all(|id| list.contains(&format!("href=\"run/{id}\""))),
        "{list}"
    );
    let report = served.page(&format!("run/{}", ids[4]));
    assert!(report.contains("id=\"findings\"") && report.contains(&ids[4]));
    let trends = served.page("trends?scenario=mesh");
    let marks: Vec<&str> = trends.split("class=\"change ").skip(1).collect();
    assert_eq!(marks.len(), 1, "{trends}");
    assert!(
        marks[0].starts_with(&format!("worse\" data-run=\"{}\"", ids[CHANGED])),
        "{}",
        marks[0]
    );
    // Two clicks: the one, then the other.
    let first = format!("./?base={}", ids[0]);
    assert!(list.contains(&format!("href=\"{first}\"")), "{list}");
    let second = format!("compare?base={}&amp;other={}", ids[0], ids[RUNS - 1]);
    assert!(
        served
            .page(&first[2..])
            .contains(&format!("href=\"{second}\""))
    );
    let comparison = served.page(&second.replace("&amp;", "&"));
    assert!(
        comparison.contains("B is: different") && comparison.contains(&ids[0]),
        "{comparison}"
    );

    for path in [
        "/",
        "/runs",
        &format!("/run/{}", ids[0]),
        "/trends",
        &served.base,
    ] {
        assert_eq!(served.status(path), 404, "{path}");
    }
    for page in [
        "run/..%2Flab.yaml",
        "run/none",
        "compare?base=none&other=none",
        "other",
    ] {
        assert_eq!(
            served.status(&format!("{}/{page}", served.base)),
            404,
            "{page}"
        );
    }
    kill("-INT", served.child.id());
    let mut served = served;
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}
