//! Runs that external tools carry: all of them side by side, and sweeps by one.

use crate::common::{Finished, TestLab, can_run_labs, has_tool, word};
use serde_json::Value;
use std::path::Path;

const LAB: &str = "racks: 1\nhosts-per-rack: 2\nnic: 100M\nuplink: 100M\n";
/// On a busy machine a sample may wait for a CPU.
const ATTEMPTS: usize = 2;

/// Every tool of the scenario and the engine, on every workload that it has there.
#[test]
fn every_tool_has_its_figure_and_says_what_it_means() {
    if !can_run_labs() || !has_all_tools() {
        return;
    }
    let lab = TestLab::up(LAB);
    // Twice, since on a busy machine a tool may not be done in its time.
    let quick = ["--set", "samples=2", "--set", "warm-up=200ms"];
    let finished = lab.run("tools", &quick);
    let expected = [
        (
            "tcp-stream",
            "engine iperf3 iperf netperf lmbench netpipe nuttcp sockperf qperf",
        ),
        ("tcp-rr", "engine netperf lmbench netpipe sockperf qperf"),
        ("udp-rr", "engine netperf lmbench sockperf qperf"),
        ("tcp-crr", "engine netperf lmbench"),
        ("ping", "engine ping"),
    ];
    for (kind, tools) in expected {
        let figures = figures(&finished, kind);
        let names: Vec<String> = figures.iter().map(|f| word(&f["tool"])).collect();
        assert_eq!(names.join(" "), tools, "{kind}: {}", finished.stderr);
        let figure = |of: &Value| match kind {
            "tcp-stream" => of["bits_per_sec"]["value"].as_f64(),
            _ => of["round_trip_ns"]["value"].as_f64(),
        };
        for of in &figures {
            assert!(
                figure(of) > Some(0.0),
                "{kind}: {of:#}: {}",
                missing(&finished)
            );
            assert!(
                of["meaning"].as_array().is_some_and(|m| m.len() >= 4),
                "{of:#}"
            );
            let is_reference = of["standing"]["type"] == "reference";
            assert_eq!(is_reference, of["tool"] == "engine", "{of:#}");
            // What it is compared with.
            assert_eq!(is_reference, of["engines"].is_null(), "{of:#}");
        }
    }
}

#[test]
fn netpipe_can_carry_a_sweep() {
    can_carry_a_sweep("netpipe", &["sizes=64,1k,64k", "samples=1"]);
}

#[test]
fn netperf_can_carry_a_sweep() {
    can_carry_a_sweep("netperf", &["sizes=64,1k,64k", "samples=1"]);
}

/// Twice, since on a busy machine lmbench may not be done in its time.
#[test]
fn lmbench_can_carry_a_sweep() {
    can_carry_a_sweep("lmbench", &["sizes=64,512,1k", "samples=2"]);
}

/// Greater messages are faster where each is waited for, but for a sample that waited for a CPU.
fn can_carry_a_sweep(tool: &str, set: &[&str]) {
    if !can_run_labs() || !has_all_tools() {
        return;
    }
    let lab = TestLab::up(LAB);
    assert!(
        (0..ATTEMPTS).any(|_| sweep_grows(&lab, tool, set)),
        "{tool}: never faster with greater messages"
    );
}

/// Whether rates grow where each message is waited for. Streaming, the kernel makes full segments
/// of small messages.
fn sweep_grows(lab: &TestLab, tool: &str, set: &[&str]) -> bool {
    let set = set.iter().flat_map(|value| ["--set", value]);
    let arguments: Vec<&str> = ["--tool", tool].into_iter().chain(set).collect();
    let finished = lab.run("sweep", &arguments);
    let sweeps = finished.json["sweeps"].as_array().unwrap();
    assert_eq!(sweeps.len(), 2, "{}", finished.stderr);
    let mut grows = true;
    for sweep in sweeps {
        let points = sweep["points"].as_array().unwrap();
        let rate = |point: &Value| point["bits_per_sec"]["value"].as_f64().unwrap_or(0.0);
        let rates: Vec<f64> = points.iter().map(rate).collect();
        assert_eq!(rates.len(), 3, "{sweep:#}");
        let missing = missing(&finished);
        assert!(rates.iter().all(|rate| *rate > 0.0), "{missing} {sweep:#}");
        let is_waited_for = sweep["name"] == "ping-pong" || tool == "netpipe";
        grows &= !is_waited_for || rates[2] > rates[0];
        let carried_by = word(&sweep["workload"]);
        assert!(carried_by.ends_with(&format!("({tool})")), "{sweep:#}");
    }
    grows
}

/// Why flows are missing.
fn missing(finished: &Finished) -> String {
    let findings = &finished.json["verdict"]["findings"];
    let of_flows = |finding: &&Value| finding["cause"] == "cells-missing";
    let findings = findings.as_array().unwrap().iter();
    findings.filter(of_flows).map(Value::to_string).collect()
}

fn figures(finished: &Finished, kind: &str) -> Vec<Value> {
    let comparisons = finished.json["tools"].as_array();
    let comparison = comparisons.and_then(|all| all.iter().find(|c| c["kind"] == kind));
    let figures = comparison.and_then(|of| of["figures"].as_array().cloned());
    figures.unwrap_or_default()
}

/// Prints what it skips; in CI nothing is.
fn has_all_tools() -> bool {
    let programs = "iperf3 iperf netperf netserver NPtcp nuttcp sockperf qperf ping";
    let mut missing: Vec<&str> = programs.split(' ').filter(|name| !has_tool(name)).collect();
    if !Path::new("/usr/lib/lmbench").exists() {
        missing.push("lmbench");
    }
    let missing = missing.join(", ");
    assert!(
        missing.is_empty() || std::env::var_os("CI").is_none(),
        "CI must have {missing}: scripts/setup.sh"
    );
    if !missing.is_empty() {
        println!("skipped: not installed: {missing}");
    }
    missing.is_empty()
}
