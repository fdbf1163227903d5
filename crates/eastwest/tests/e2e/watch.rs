//! A host of a run that is watched, and who else moves bytes on it: in a lab, through the real
//! binary.

use crate::common::{Finished, TestLab, can_run_labs, eastwest, has_tool, kill, text, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LAB: &str = "racks: 1\nhosts-per-rack: 2\nnic: 100M\n";

/// A child that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a neighbour of the run: iperf3 sends 20 Mb/s to `to` until it is stopped.
fn neighbour(lab: &TestLab, from: &str, to: &str) -> [Ends; 2] {
    let address = address_of(lab, to);
    let mut server = lab.exec(to);
    server.args(["iperf3", "-s", "-1", "-p", "6111"]);
    let tries = format!(
        "while true; do \
         iperf3 -c {address} -p 6111 -b 20M -t 600 && exit; sleep 0.5; done"
    );
    let mut client = lab.exec(from);
    client.args(["sh", "-c", &tries]);
    let both = [start(&mut server), start(&mut client)];
    wait_for("the neighbour sends", Duration::from_secs(60), || {
        sent_by(lab, from) > 1_000_000
    });
    both
}

/// Bytes that a host's interfaces sent: the ninth number of their lines in `/proc/net/dev`,
/// loopback's skipped.
fn sent_by(lab: &TestLab, host: &str) -> u64 {
    let output = lab.exec(host).args(["cat", "/proc/net/dev"]).output();
    let text = text(&output.unwrap().stdout);
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let others = lines.filter(|(name, _)| name.trim() != "lo");
    let sent = |numbers: &str| numbers.split_whitespace().nth(8)?.parse::<u64>().ok();
    others.filter_map(|(_, numbers)| sent(numbers)).sum()
}

fn start(command: &mut Command) -> Ends {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
    Ends(silent.stderr(Stdio::null()).spawn().unwrap())
}

fn address_of(lab: &TestLab, host: &str) -> IpAddr {
    let arguments = ["ip", "-4", "-o", "addr", "show", "scope", "global"];
    let output = lab.exec(host).args(arguments).output().unwrap();
    let text = text(&output.stdout);
    let address = text.split_whitespace().find(|word| word.contains('/'));
    let address = address.unwrap().split('/').next().unwrap();
    address.parse().unwrap()
}

/// The samples of a host, by its number.
fn samples(lab: &TestLab, host: u64) -> Vec<Value> {
    let run = std::fs::read_dir(lab.runs_dir()).unwrap().next().unwrap();
    let events = std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap();
    let lines = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_host =
        |e: &Value| e["event"]["type"] == "host-sampled" && e["event"]["data"]["host"] == host;
    let sample = |e: Value| e["event"]["data"]["sample"].clone();
    lines.filter(of_host).map(sample).collect()
}

#[test]
fn a_neighbours_traffic_has_a_process_and_a_peer_and_the_runs_own_is_told_apart() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(LAB);
    let neighbour = neighbour(&lab, "r1h1", "r1h2");
    let arguments = [
        "--set",
        "duration=4s",
        "--set",
        "samples=1",
        "--sample-interval",
        "500ms",
        "--watch",
        "r1h1",
    ];
    let finished = lab.run("pair", &arguments);
    drop(neighbour);
    let samples = samples(&lab, 0);
    let last = samples.last().unwrap();
    let traffic = last["causes"]["traffic"].as_array().unwrap();
    let sent = |t: &Value| t["sent_bytes"].as_u64().unwrap();
    let peer = address_of(&lab, "r1h2").to_string();
    let theirs = |t: &&Value| t["command"] == "iperf3" && t["is_ours"] == false;
    let theirs = traffic.iter().find(theirs);
    let theirs = theirs.unwrap_or_else(|| panic!("no neighbour: {last}"));
    assert!(theirs["pid"].as_u64() > Some(1), "{theirs}");
    // 20 Mb/s for at least the 4 s of one window.
    assert!(sent(theirs) > 5_000_000, "{theirs}");
    assert_eq!(theirs["peers"][0]["address"], peer.as_str());
    let elsewhere = json!({"port": 6111, "served_here": false});
    assert_eq!(theirs["ports"][0]["service"], elsewhere, "{theirs}");
    let ours = |t: &&Value| t["is_ours"] == true;
    let ours = traffic.iter().find(ours);
    let ours = ours.unwrap_or_else(|| panic!("not us: {last}"));
    assert!(sent(ours) > 1_000_000, "{ours}");
    assert!(
        last["cost"]["cpu_ns"].as_u64() > Some(0),
        "{}",
        last["cost"]
    );
    check_watched(&finished);
    check_tables(&lab);
}

/// Not a terminal: text, with what `eastwest top` would show of that host.
fn check_watched(finished: &Finished) {
    let stderr = &finished.stderr;
    assert!(stderr.contains("r1h1 after "), "{stderr}");
    assert!(stderr.contains("\nprocesses\n"), "{stderr}");
    assert!(stderr.contains("iperf3"), "{stderr}");
    assert!(!stderr.contains("r1h2 after "), "{stderr}");
}

fn check_tables(lab: &TestLab) {
    let run = std::fs::read_dir(lab.runs_dir()).unwrap().next().unwrap();
    for table in ["counters.parquet", "traffic.parquet"] {
        let bytes = std::fs::read(run.as_ref().unwrap().path().join(table)).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.len() > 1000, "{table}");
    }
}

#[test]
fn an_unknown_host_is_refused_with_those_there_are() {
    let output = eastwest()
        .args(["run", "pair", "--fleet", "local", "--hosts", "a[1-2]"])
        .args(["--watch", "b7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("--watch `b7`"), "{stderr}");
    assert!(stderr.contains("a1, a2"), "{stderr}");
}

#[test]
fn too_short_a_sample_interval_is_refused() {
    let output = eastwest()
        .args(["run", "pair", "--hosts", "a,b", "--sample-interval", "99ms"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("at least 100ms"));
}

#[test]
fn on_a_terminal_the_screen_is_the_hosts_q_leaves_it_and_ctrl_c_ends_the_run() {
    if !can_run_labs() || !can_make_terminals() {
        return;
    }
    let lab = TestLab::up(LAB);
    let run = format!(
        "{} run pair --fleet lab --lab {} --runs-dir {} --set samples=1 --watch r1h1 --duration",
        env!("CARGO_BIN_EXE_eastwest"),
        lab.name,
        lab.runs_dir().display()
    );
    let mut left = Terminal::open(&format!("{run} 1s"));
    left.read_until("processes");
    left.press("q");
    let end = left.read_to_end();
    assert!(end.contains("stage reverse ended"), "{end}");
    assert!(end.contains("report.html"), "{end}");
    let mut stopped = Terminal::open(&format!("{run} 60s"));
    stopped.read_until("processes");
    stopped.press("\u{3}");
    let end = stopped.read_to_end();
    assert!(end.contains("code 130"), "{end}");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    if !can_make_terminals() {
        return;
    }
    let temp_dir = tempfile::tempdir().unwrap();
    let pid_file = temp_dir.path().join("pid");
    let mut terminal = Terminal::open(&format!(
        "sh -c 'echo $$ > {}; exec {} top --interval 200ms'",
        pid_file.display(),
        env!("CARGO_BIN_EXE_eastwest")
    ));
    terminal.read_until("processes");
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    kill("-TERM", pid.trim().parse().unwrap());
    let end = terminal.read_to_end();
    assert!(end.contains("code 130"), "{end}");
}

fn can_make_terminals() -> bool {
    let can = has_tool("script");
    if !can {
        println!("skipped: no script(1) to make a pseudo terminal");
    }
    can
}

/// A command on a pseudo terminal.
struct Terminal {
    script: Ends,
    seen: Vec<u8>,
}

impl Terminal {
    fn open(command: &str) -> Self {
        let command = format!("stty rows 40 cols 120; {command}; echo code $?; stty -a");
        let mut script = Command::new("script");
        script.args(["-qefc", &command, "/dev/null"]);
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self {
            script: Ends(script.spawn().unwrap()),
            seen: Vec::new(),
        }
    }

    fn read_until(&mut self, words: &str) {
        let output = self.script.0.stdout.as_mut().unwrap();
        let mut buffer = [0; 4096];
        while !text(&self.seen).contains(words) {
            let length = output.read(&mut buffer).unwrap();
            assert!(length > 0, "it ended: {}", text(&self.seen));
            self.seen.extend_from_slice(&buffer[..length]);
        }
    }

    fn press(&mut self, keys: &str) {
        let input = self.script.0.stdin.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
    }

    /// What came after the alternate screen was left, on a terminal that is as it was: raw mode
    /// would be `-icanon`.
    fn read_to_end(mut self) -> String {
        let output = self.script.0.stdout.as_mut().unwrap();
        output.read_to_end(&mut self.seen).unwrap();
        let seen = text(&self.seen);
        let left = seen.rfind("\u{1b}[?1049l").expect("the screen is left");
        let end = seen[left..].to_owned();
        assert!(end.contains(" icanon") && end.contains(" echo "), "{end}");
        end
    }
}
