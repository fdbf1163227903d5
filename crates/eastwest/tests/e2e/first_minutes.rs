//! What somebody meets who comes from iperf3 and clush: short command lines, the time shown before,
//! and errors with the way out.

use crate::common::{eastwest, text};
use std::process::{Command, Output};
use tempfile::TempDir;

fn ended(args: &[&str]) -> Output {
    eastwest().args(args).output().unwrap()
}

#[test]
fn what_would_answer_another_question_is_code_2_with_the_remedy() {
    let cases: [(&[&str], &str); 8] = [
        (&["pair", "a", "b", "c"], "c has no partner"),
        (
            &["run", "latency", "-w", "a", "-w", "b,c"],
            "c has no partner",
        ),
        (
            &["run", "cross-rack", "--hosts", "n[1-4]"],
            "needs hosts in at least two racks and the inventory has 0",
        ),
        (
            &["run", "qualfy", "--hosts", "a,b"],
            "(did you mean `qualify`?)",
        ),
        (
            &["line-rate", "--link", "10"],
            "`10` is not a rate with a unit",
        ),
        (
            &["pair", "a", "b", "--expect-nic", "10"],
            "`10` is not a rate with a unit",
        ),
        (&["runs", "prune"], "<--keep <N>|--older-than <TIME>>"),
        (
            &["pair", "a", "b", "--set", "durration=1s"],
            "(did you mean `duration`?); all keys:",
        ),
    ];
    for (args, expected) in cases {
        let out = ended(
            &[
                args,
                &["--dry-run"][..usize::from(args[0] != "line-rate" && args[0] != "runs")],
            ]
            .concat(),
        );
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}

/// Seconds that a dry run announces.
fn announced(args: &[&str]) -> f64 {
    let out = ended(&[args, &["--dry-run"]].concat());
    let stdout = text(&out.stdout);
    let time = stdout.split("estimated time ").nth(1);
    let time = time.and_then(|rest| rest.split(" s").next()?.parse().ok());
    time.unwrap_or_else(|| panic!("no time in seconds: {stdout}{}", text(&out.stderr)))
}

#[test]
fn a_pair_takes_what_users_of_iperf3_expect_and_says_so() {
    assert!(announced(&["pair", "a", "b"]) < 15.0);
    assert!(announced(&["pair", "a", "b", "-P", "4", "-t", "5"]) < 15.0);
    assert!(announced(&["pair", "-t", "5", "a", "-R", "b"]) < 8.0);
    let runs = tempfile::tempdir().unwrap();
    let out = pair(&runs, &["-t", "300ms", "--bidir", "--output"], "page.html");
    let stderr = text(&out.stderr);
    assert!(stderr.contains("estimated time"), "{stderr}");
    assert_eq!(text(&out.stdout), "", "the result is in the file");
    let page = std::fs::read_to_string(runs.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html") || page.starts_with("<!DOCTYPE html"));
    let report = eastwest()
        .args(["runs", "show", "--json", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let stages = report["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 1);
    assert_eq!(stages[0]["name"], "both");
}

fn pair(runs: &TempDir, args: &[&str], file: &str) -> Output {
    let mut command: Command = eastwest();
    command
        .args(["pair", "n1", "n2", "--via", "local"])
        .args(args);
    command.arg(runs.path().join(file));
    command.arg("--runs-dir").arg(runs.path()).output().unwrap()
}

#[test]
fn thresholds_decide_the_exit_code_and_are_cases_for_ci() {
    let runs = tempfile::tempdir().unwrap();
    let out = eastwest()
        .args([
            "latency", "n1", "n2", "--via", "local", "-t", "200ms", "-n", "1",
        ])
        .args(["--expect", "rtt.p50<1s", "--expect", "tcp/rtt.p50<1ns"])
        .args(["--expect", "loss<1%", "--format", "junit", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    let xml = text(&out.stdout);
    let case = |name: &str| {
        let cases = xml.split("<testcase ").find(|case| case.contains(name));
        cases
            .unwrap_or_else(|| panic!("no {name}: {xml}"))
            .to_owned()
    };
    assert!(
        !case("\"rtt.p50 &lt; 1.00 s\"").contains("<failure"),
        "{xml}"
    );
    assert!(case("tcp/rtt.p50").contains("<failure message="), "{xml}");
    assert!(case("loss &lt;").contains("not measured"), "{xml}");
    let text_report = eastwest()
        .args(["report", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    assert_eq!(text_report.status.code(), Some(1));
    let report = text(&text_report.stdout);
    assert!(
        report.contains("  FAIL  threshold tcp/rtt.p50 < 1 ns: "),
        "{report}"
    );
    let wrong = ended(&["pair", "a", "b", "--expect", "rtt.p98<1ms"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("`rtt.p98` is no metric"));
}

#[test]
fn lists_are_json_for_programs() {
    let json = |args: &[&str]| -> serde_json::Value {
        let out = ended(args);
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}"))
    };
    let scenarios = json(&["scenarios", "list", "--json"]);
    assert_eq!(scenarios["scenarios"][0]["name"], "qualify");
    let set = json(&["nodeset", "--format", "json", "n[1-3]", "m1"]);
    assert_eq!(
        (&set["count"], &set["folded"]),
        (&4.into(), &"m1,n[1-3]".into())
    );
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().display().to_string();
    assert_eq!(
        json(&["runs", "list", "--json", "--runs-dir", &dir])["runs"],
        serde_json::json!([])
    );
}
