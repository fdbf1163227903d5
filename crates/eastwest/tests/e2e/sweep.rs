//! Sweeps over message sizes, and rounds that are repeated until their figures converge.

use crate::common::{TestLab, can_run_labs, eastwest, text};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn on_loopback(scenario: &str, runs: &Path, args: &[&str]) -> Output {
    eastwest()
        .args(["run", scenario, "--hosts", "n[1-2]", "--fleet", "local"])
        .args(["--quiet", "--runs-dir"])
        .arg(runs)
        .args(args)
        .output()
        .unwrap()
}

/// The only run's report in another format.
fn report(runs: &Path, format: &str) -> String {
    let out = eastwest()
        .args(["report", "--format", format, "--runs-dir"])
        .arg(runs)
        .arg("latest")
        .output()
        .unwrap();
    assert!(!out.stdout.is_empty(), "{}", text(&out.stderr));
    text(&out.stdout)
}

#[test]
fn a_sweep_is_a_curve_in_every_view() {
    let runs = tempfile::tempdir().unwrap();
    // Long gaps, so that a busy machine has connected before each window.
    let few = [
        "--set",
        "sizes=1,1k,64k",
        "--set",
        "gap=1s",
        "--set",
        "samples=1",
    ];
    let out = on_loopback(
        "sweep",
        runs.path(),
        &[&few[..], &["--format", "json"]].concat(),
    );
    let analysis: Value = serde_json::from_slice(&out.stdout).unwrap();
    let sweeps = analysis["sweeps"].as_array().unwrap();
    let names: Vec<&str> = sweeps.iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(names, ["ping-pong", "streaming"]);
    for sweep in sweeps {
        let points = sweep["points"].as_array().unwrap();
        let sizes = points.iter().filter_map(|p| p["message_bytes"].as_u64());
        assert_eq!(sizes.collect::<Vec<_>>(), [1, 1024, 65_536]);
        let rates = points
            .iter()
            .filter_map(|p| p["bits_per_sec"]["value"].as_f64());
        assert!(rates.into_iter().any(|rate| rate > 0.0), "{sweep}");
    }
    let reported = report(runs.path(), "text");
    assert!(reported.contains("Sweep over message sizes"), "{reported}");
    assert!(
        !reported.contains("streaming 64 KiB  "),
        "no line for each stage: {reported}"
    );
    let page = report(runs.path(), "html");
    assert!(
        page.contains("aria-label=\"Rate over message size"),
        "a chart with words"
    );
    assert!(
        page.contains("aria-label=\"Time of a message"),
        "the other one"
    );
    let csv = report(runs.path(), "csv");
    assert!(
        csv.starts_with("sweep,workload,message_bytes,bits_per_sec,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 1 + 2 * 3);
    assert!(report(runs.path(), "md").contains("### Sweep over message sizes"));
}

#[test]
fn a_dry_run_tells_what_is_swept_and_both_bounds() {
    let runs = tempfile::tempdir().unwrap();
    let out = on_loopback(
        "sweep",
        runs.path(),
        &[
            "--dry-run",
            "--tool",
            "iperf3",
            "--set",
            "streaming.sizes=512k-4M",
            "--set",
            "ping-pong.sizes=1-8",
            "--set",
            "ping-pong.samples={auto: {at-least: 6, at-most: 10}}",
        ],
    );
    let stdout = text(&out.stdout);
    assert!(
        stdout.contains("ping-pong: 4 message sizes from 1 B to 8 B"),
        "{stdout}"
    );
    assert!(stdout.contains("each round 6 to 10 times"), "{stdout}");
    // 4 sizes x 6 or 10 rounds x 300 ms.
    assert!(
        stdout.contains("7.20 s to 12 s") || stdout.contains("7.20 s to 12.0 s"),
        "{stdout}"
    );
    let words = "skipped: streaming of 2 MiB to 4 MiB: iperf3 carries 1 to 1048576 bytes";
    assert!(stdout.contains(words), "{stdout}");
}

/// One paced flow, so that there is something to converge.
fn paced(dir: &Path, auto: &str) -> String {
    let text = format!(
        "name: settle\ndefaults: {{duration: 300ms, warm-up: 100ms, gap: 500ms}}\n\
         tests: [{{name: paced, pattern: pair, rate: 2M, samples: {{auto: {auto}}}}}]\n"
    );
    let file = dir.join("settle.yaml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn paced_stage(auto: &str) -> (Value, String) {
    let runs = tempfile::tempdir().unwrap();
    let file = paced(runs.path(), auto);
    let runs_dir = runs.path().join("runs");
    let out = on_loopback(&file, &runs_dir, &["--format", "json"]);
    let analysis: Value = serde_json::from_slice(&out.stdout).unwrap();
    (analysis["stages"][0].clone(), report(&runs_dir, "text"))
}

#[test]
fn a_paced_flow_converges_long_before_the_bound() {
    // As wide as the median itself: a machine that stalls for a while still converges.
    let (stage, reported) = paced_stage("{width: 100%, at-least: 6, at-most: 60}");
    assert_eq!(stage["unsettled"], Value::Array(Vec::new()), "{reported}");
    let rounds = stage["rounds"].as_u64().unwrap();
    assert!((6..60).contains(&rounds), "{rounds}");
    assert!(
        reported.contains("paced: every figure converged"),
        "{reported}"
    );
    assert_eq!(
        stage["missing"], 0,
        "rounds that were not needed are not missing"
    );
}

#[test]
fn what_did_not_converge_at_the_bound_is_reported() {
    // Three samples have no interval.
    let (stage, reported) = paced_stage("{width: 5%, at-most: 3}");
    assert_eq!(
        stage["unsettled"].as_array().unwrap().len(),
        1,
        "{reported}"
    );
    assert!(
        reported.contains("paced: 1 figure did not converge within 5%"),
        "{reported}"
    );
    assert!(reported.contains("n1 to n2"), "{reported}");
}

/// 100 Mb/s: payload 100 x 1448/1514 = 95.6 Mb/s.
#[test]
fn a_known_link_is_the_endless_rate_of_a_sweep() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 2\nnic: 100M\nuplink: 100M\n");
    let few = [
        "--set",
        "sizes=64,1k,16k,64k,256k,1M",
        "--set",
        "samples=3",
        "--set",
        "gap=500ms",
    ];
    let finished = lab.run("sweep", &[&few[..], &["--set", "expect.nic=100M"]].concat());
    let analysis = &finished.json;
    // Streaming: a ping-pong gives the link's queue time to let the next message through at once.
    let points = analysis["sweeps"][1]["points"].as_array().unwrap();
    let rate = points.last().unwrap()["bits_per_sec"]["value"].as_f64();
    let rate = rate.unwrap_or_else(|| panic!("{:#}", analysis["sweeps"][1]));
    assert!((80e6..110e6).contains(&rate), "{rate}");
    let round_trips = analysis["sweeps"][0]["points"].as_array().unwrap();
    let micros = |at: usize| round_trips[at]["message_ns"].as_f64().unwrap_or(0.0) / 1000.0;
    // 1 MiB at 100 Mb/s takes 88 ms, less what the queue lets through at once.
    assert!(
        micros(5) > 20.0 * micros(0) && micros(5) > 20_000.0,
        "{round_trips:?}"
    );
}
