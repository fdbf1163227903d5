//! `eastwest compare` on real runs over loopback, whose rates are set, so that the difference is
//! known.

use crate::common::{Finished, eastwest, text};
use serde_json::Value;
use std::process::{Command, Output};
use tempfile::TempDir;

fn run(scenario: &str, settings: &[&str], runs: &TempDir) -> Finished {
    let mut command = eastwest();
    command
        .args(["run", scenario, "--fleet", "local", "--hosts", "n[1-2]"])
        .args(["--format", "json", "--seed", "7"])
        .args(["--set", "duration=300ms", "--set", "warm-up=100ms"])
        .args(["--set", "gap=100ms"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    let out = command.arg("--runs-dir").arg(runs.path()).output().unwrap();
    let finished = Finished::of(&out);
    // A machine that is busy loses rounds, which makes a run partial (3); the rest is compared.
    assert!(matches!(finished.code, 0 | 1 | 3), "{}", finished.stderr);
    finished
}

fn compare(args: &[&str], runs: &TempDir) -> Output {
    let mut command: Command = eastwest();
    command.arg("compare").args(args);
    command.arg("--runs-dir").arg(runs.path()).output().unwrap()
}

#[test]
fn half_the_rate_is_worse_one_way_and_better_the_other() {
    let runs = tempfile::tempdir().unwrap();
    for rate in ["rate=20M", "rate=10M"] {
        run("pair", &[rate, "samples=8"], &runs);
    }
    let judged = ["--threshold", "20%", "--each-host"];
    let down = compare(&[&judged[..], &["--format", "json"]].concat(), &runs);
    let json: Value = serde_json::from_slice(&down.stdout).unwrap();
    assert_eq!(down.status.code(), Some(1), "{json:#}");
    let metric = &json["stages"][0]["metrics"][0];
    let ratio = metric["ratio"]["value"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&ratio), "{ratio}");
    // Of one run each it is reported that they differ, not that the network is worse.
    assert_eq!(
        (&json["verdict"], &metric["change"]),
        (&"different".into(), &"different".into())
    );
    assert_eq!(metric["spread"]["degrees"], Value::Null, "{metric:#}");
    let remarks = json["stages"][0]["remarks"].to_string();
    assert!(
        remarks.contains("20.0 Mb/s") && remarks.contains("10.0 Mb/s"),
        "{remarks}"
    );

    let page = runs.path().join("page.html");
    let names = [
        "--names",
        "before,after <b>",
        "--html",
        page.to_str().unwrap(),
    ];
    let up = compare(
        &[
            &["last", "last~1", "--format", "md"],
            &judged[..],
            &names[..],
        ]
        .concat(),
        &runs,
    );
    let said = text(&up.stdout);
    assert_eq!(up.status.code(), Some(0), "{said}");
    assert!(
        said.starts_with("## Nothing worse by more than 20%"),
        "{said}"
    );
    assert!(
        said.contains("| different |") && said.contains("B: after &lt;b&gt;"),
        "{said}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("class=\"row b\"") && page.contains("after &lt;b&gt;"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<b>\""));
}

#[test]
fn what_cannot_be_compared_is_code_2_and_says_why() {
    let runs = tempfile::tempdir().unwrap();
    run("pair", &["rate=10M", "samples=1"], &runs);
    run("pair", &["workload=tcp-rr", "samples=1"], &runs);
    let cases: [(&[&str], &str); 5] = [
        (&[], "(tcp-stream); "),
        (&["last", "last"], "given twice"),
        (&["last~9", "last"], "last~9"),
        (&["last~1", "last", "--threshold", "5"], "5%"),
        (&["last~1", "last", "--each-host"], "--threshold"),
    ];
    for (args, expected) in cases {
        let out = compare(args, &runs);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_run_is_repeated_with_its_plan() {
    let runs = tempfile::tempdir().unwrap();
    let mut first = eastwest();
    first.args("run permutation --via local --hosts n[1-5] --quiet".split(' '));
    first.args("--set duration=200ms --set warm-up=50ms --set gap=50ms --set samples=2".split(' '));
    first.arg("--runs-dir").arg(runs.path()).output().unwrap();
    let repeat = |more: &[&str]| {
        let mut command = eastwest();
        command.args(["runs", "repeat", "last", "--runs-dir"]);
        command.arg(runs.path()).args(more).output().unwrap()
    };
    let again = repeat(&[]);
    assert!(
        text(&again.stderr).contains("--seed"),
        "{}",
        text(&again.stderr)
    );
    let mut hashes: Vec<String> = std::fs::read_dir(runs.path())
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path().join("run.json")).unwrap())
        .map(|json| serde_json::from_str::<Value>(&json).unwrap()["plan_hash"].to_string())
        .collect();
    assert_eq!(hashes.len(), 2, "{}", text(&again.stderr));
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "the same plan");
    let dry = repeat(&["--", "--dry-run"]);
    assert!(dry.status.success(), "{}", text(&dry.stderr));
    assert!(
        text(&dry.stdout).contains("5 hosts"),
        "{}",
        text(&dry.stdout)
    );
}
