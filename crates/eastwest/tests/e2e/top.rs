//! `eastwest top`: in scripts, on a terminal, and next to a real transfer through a link of known
//! rate.

use crate::common::{TestLab, can_run_labs, eastwest};
use serde_json::Value;
use std::process::{Command, Output, Stdio};

fn views(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn json_is_one_document_an_interval() {
    let args = [
        "top",
        "--json",
        "--interval",
        "200ms",
        "--duration",
        "600ms",
    ];
    let views = views(&eastwest().args(args).output().unwrap());
    assert_eq!(views.len(), 3);
    for view in views {
        assert!(view["verdict"]["sentence"].as_str().unwrap().len() > 10);
        assert!(view["interval_ns"].as_u64().unwrap() > 0);
        assert!(!view["cpu"]["cores"].as_array().unwrap().is_empty());
    }
}

#[test]
fn once_is_text_with_the_verdict_on_top() {
    let output = eastwest()
        .args(["top", "--once", "--interval", "200ms"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap();
    assert!(
        first.contains("bound: ") || first.starts_with("nothing is the limit: "),
        "{first}"
    );
    assert!(
        text.contains("\ncpus\n") && text.contains("\ninterfaces\n"),
        "{text}"
    );
}

#[test]
fn too_short_an_interval_is_refused_in_json_too() {
    let output = eastwest()
        .args(["top", "--json", "--interval", "1ms"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("at least 100ms")
    );
}

fn text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn what_is_recorded_is_shown_again_as_it_was() {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("slow.jsonl");
    let file = file.to_str().unwrap();
    let top = |args: &[&str]| eastwest().arg("top").args(args).output().unwrap();
    let times = ["--json", "--interval", "200ms", "--duration", "600ms"];
    let seen = views(&top(&[&times[..], &["--record", file]].concat()));
    assert_eq!(seen.len(), 3);
    let replayed = views(&top(&["--json", "--replay", file]));
    assert_eq!(replayed, seen);
    let once = text(&top(&["--once", "--replay", file]));
    assert!(once.contains("\ncpus\n"), "{once}");
    let again = top(&["--record", file, "--once"]);
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten");
    std::fs::write(file, "{\"host\": \"a\"}\n").unwrap();
    let damaged = top(&["--replay", file]);
    assert_eq!(damaged.status.code(), Some(2));
    let said = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert!(said.contains("line 1 is no reading"), "{said}");
}

/// Agents on this machine, under two names.
#[test]
fn several_hosts_have_a_line_each_and_a_recording_keeps_them_apart() {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("both.jsonl");
    let file = file.to_str().unwrap();
    let top = |args: &[&str]| eastwest().arg("top").args(args).output().unwrap();
    let shown = text(&top(&["a,b", "--via", "local", "--once", "--record", file]));
    let names: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split("  ").next())
        .collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["a", "b"], "{shown}");
    assert_eq!(text(&top(&["--replay", file, "--once"])), shown);
    let replayed = text(&top(&["--replay", file]));
    assert!(
        replayed
            .lines()
            .filter(|line| line.starts_with("a  "))
            .count()
            > 0,
        "{replayed}"
    );
    let one = views(&top(&["a", "--via", "local", "--json", "--duration", "3s"]));
    assert!((1..=3).contains(&one.len()), "{} views", one.len());
    let short = top(&["a", "--via", "local", "--interval", "200ms"]);
    assert_eq!(
        short.status.code(),
        Some(2),
        "agents have an interval of their own"
    );
}

#[test]
fn a_transfer_through_a_slow_link_is_network_bound_by_its_process() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 2\nnic: 100M\n");
    let server = background(lab.exec("r1h2").args(["iperf3", "-s", "-1"]));
    let address = lab_address(&lab, "r1h2");
    let client = background(lab.exec("r1h1").args(["sh", "-c"]).arg(format!(
        "for i in 1 2 3 4 5 6 7 8 9; do iperf3 -c {address} -t 8 && exit; sleep 0.3; done"
    )));
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut top = lab.exec("r1h1");
    top.arg(env!("CARGO_BIN_EXE_eastwest"))
        .args(["top", "--once", "--json", "--duration", "3s"]);
    let view = views(&top.output().unwrap()).remove(0);
    drop((client, server));
    let verdict = &view["verdict"];
    let limits = format!("{} {}", verdict["sentence"], verdict["also"]);
    assert!(
        limits.contains("that its shaper (tbf) lets pass"),
        "{limits}"
    );
    assert!(limits.contains("most by iperf3"), "{limits}");
    let all = view["processes"].as_array().unwrap().clone();
    let rate = |p: &Value| p["tx_bits_per_sec"].as_f64().unwrap();
    let mover = all
        .iter()
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))
        .unwrap();
    assert_eq!(mover["name"], "iperf3");
    // Payload of a 100 Mb/s link with MTU 1500.
    let truth = 100e6 * 1448.0 / 1514.0;
    assert!(
        (rate(mover) / truth - 1.0).abs() < 0.1,
        "{} is not {truth}",
        rate(mover)
    );
}

#[test]
fn a_terminal_shows_the_screen_and_gets_itself_back() {
    let Some(mut script) = pseudo_terminal() else {
        println!("skipped: no script(1) to make a pseudo terminal");
        return;
    };
    let output = script.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("processes"), "the screen: {text:?}");
    // The alternate screen is entered and left again.
    let (enter, leave) = (text.find("\u{1b}[?1049h"), text.rfind("\u{1b}[?1049l"));
    assert!(enter.is_some() && enter < leave, "{text:?}");
}

fn pseudo_terminal() -> Option<Command> {
    Command::new("script").arg("--version").output().ok()?;
    let command = format!(
        "stty rows 40 cols 120; {} top --interval 200ms --duration 1s",
        env!("CARGO_BIN_EXE_eastwest")
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null());
    Some(script)
}

/// A command that ends with the test.
struct Background(std::process::Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn background(command: &mut Command) -> Background {
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    Background(silent.spawn().unwrap())
}

fn lab_address(lab: &TestLab, host: &str) -> String {
    let output = lab
        .exec(host)
        .args(["ip", "-4", "-o", "addr", "show", "scope", "global"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = text
        .split_whitespace()
        .find(|word| word.contains('/'))
        .unwrap();
    address.split('/').next().unwrap().to_owned()
}
