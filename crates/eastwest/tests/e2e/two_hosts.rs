//! Two hosts without a scenario: workload and knobs from the command line, a line per flow and
//! second.

use crate::common::{eastwest, text};

const TWO: [&str; 6] = ["run", "pair", "--fleet", "local", "--hosts", "n[1-2]"];

#[test]
fn a_flow_has_a_line_each_second() {
    for (workload, ending) in [("tcp-rr", " transactions/s"), ("tcp-stream", " retr")] {
        each_flow_has_lines(workload, ending);
    }
}

fn each_flow_has_lines(workload: &str, ending: &str) {
    let runs = tempfile::tempdir().unwrap();
    let out = eastwest()
        .args(TWO)
        .args(["--workload", workload, "--streams", "4", "--duration", "2s"])
        .args(["--set", "samples=1", "--live", "lines", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    let stderr = text(&out.stderr);
    let lines = |start: &str| {
        let reported = stderr.lines().filter(|line| line.contains(start));
        reported.filter(|line| line.ends_with(ending)).count()
    };
    // A busy machine may lose a part, or repeat a round.
    assert!(lines("n1 -> n2 ") > 0, "{stderr}");
    assert!(lines("n2 -> n1 ") > 0, "{stderr}");
}

#[test]
fn datagrams_say_how_long_they_were_under_way() {
    let runs = tempfile::tempdir().unwrap();
    let out = eastwest()
        .args(TWO)
        .args(["--workload", "udp-stream", "--set", "rate=20M"])
        .args(["--set", "samples=1", "--duration", "1s", "--format", "json"])
        .arg("--runs-dir")
        .arg(runs.path())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for stage in report["stages"].as_array().unwrap() {
        let delay = &stage["datagrams"]["one_way"];
        let ns = |value: &serde_json::Value| value.as_u64().unwrap();
        assert!(ns(&delay["clock_error_ns"]) > 0, "{stage:#}");
        // One machine, but it may be a busy one.
        assert!(ns(&delay["times"]["p50_ns"]) < 500_000_000, "{stage:#}");
        assert!(ns(&delay["times"]["count"]) > 0, "{stage:#}");
    }
}

#[test]
fn quiet_is_quiet() {
    let runs = tempfile::tempdir().unwrap();
    let out = eastwest()
        .args(TWO)
        .args(["--duration", "2s", "--set", "samples=1"])
        .args(["--quiet", "--live", "lines", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    let stderr = text(&out.stderr);
    assert!(!stderr.contains(" -> "), "{stderr}");
}

#[test]
fn a_dry_run_says_what_is_set() {
    let out = eastwest()
        .args(TWO)
        .args(["--workload", "udp-stream", "--streams", "2", "--dry-run"])
        .args(["--set", "rate=100M", "--set", "dscp=ef"])
        .output()
        .unwrap();
    let stdout = text(&out.stdout);
    assert!(stdout.contains("udp-stream x2 (engine)"), "{stdout}");
    let words = "forward, reverse: at most 100 Mb/s a stream, dscp 46";
    assert!(stdout.contains(words), "{stdout}");
}

#[test]
fn what_does_not_go_together_is_code_2_with_the_remedy() {
    let cases = [
        (
            ["--workload=tcp-crr", "--set=outstanding=4"],
            "with workload tcp-rr",
        ),
        (
            ["--tool=iperf3", "--set=cpus=near-nic"],
            "no `cpus` with `tool: iperf3`",
        ),
        (["--workload=udp-rr", "--set=send=zerocopy"], "tcp-stream"),
    ];
    for (args, expected) in cases {
        let out = eastwest().args(TWO).args(args).output().unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}
