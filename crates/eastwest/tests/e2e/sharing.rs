//! Hosts that others use, too: one run at a time, and an end when somebody asks for it.

use crate::common::{Finished, TestLab, can_run_labs, eastwest, text, wait_for};
use crate::lab_failures::{agents_of, events, wait_for_rounds};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const TWO_HOSTS: &str = "racks: 1\nhosts-per-rack: 2\nnic: 20M\n";
const THREE_HOSTS: &str = "racks: 1\nhosts-per-rack: 3\nnic: 20M\n";

#[test]
fn a_second_run_on_the_same_hosts_is_refused_or_waits() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let first = start(
        lab.run_command("pair")
            .args(["-t", "12s", "--set", "samples=1"]),
    );
    wait_for_host_ups(&lab.runs_dir(), 2);
    let refused = second(&lab, &[]);
    let words = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{words}");
    assert!(
        words.contains("in use by another run: r1h[1-2] (run "),
        "{words}"
    );
    assert!(
        words.contains("-pair-") && words.contains("planned to end in"),
        "{words}"
    );
    let left = std::fs::read_dir(lab.work.path().join("second")).unwrap();
    assert_eq!(left.count(), 0, "a refused run left a directory");
    let forced = Finished::of(&second(&lab, &["--force"]));
    assert!(
        forced.stderr.contains("rates are of both together"),
        "{}",
        forced.stderr
    );
    let waited = Finished::of(&second(&lab, &["--wait", "60s"]));
    assert_eq!(waited.code, 0, "{}", waited.stderr);
    assert!(
        waited.stderr.contains("waiting for r1h[1-2]"),
        "{}",
        waited.stderr
    );
    assert_eq!(Finished::of(&first.wait_with_output().unwrap()).code, 0);
}

#[test]
fn stop_ends_a_hosts_part_and_it_does_not_come_back() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(THREE_HOSTS);
    let mesh = ["-t", "2s", "--set", "samples=2"];
    let run = start(lab.run_command("mesh").args(mesh));
    wait_for_rounds(&lab.runs_dir(), 1);
    let stop = lab
        .exec("r1h2")
        .arg(eastwest().get_program())
        .arg("stop")
        .output()
        .unwrap();
    let words = text(&stop.stderr);
    assert!(
        words.contains("stopped: run ") && words.contains("-mesh-"),
        "{words}"
    );
    wait_for("the agent's end", Duration::from_secs(5), || {
        agents_of(&lab, "r1h2").is_empty()
    });
    let nobody = lab
        .exec("r1h2")
        .arg(eastwest().get_program())
        .arg("stop")
        .output()
        .unwrap();
    assert!(text(&nobody.stderr).contains("no agent runs"), "{nobody:?}");
    let finished = Finished::of(&run.wait_with_output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let log = events(&lab.runs_dir()).unwrap();
    assert!(log.contains("was stopped on its host") && !log.contains("host-returned"));
}

#[test]
fn an_abort_command_ends_the_run_and_keeps_what_was_measured() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let (run, fine) = start_abortable(&lab, ["-t", "1s", "--set", "samples=60"]);
    wait_for_rounds(&lab.runs_dir(), 2);
    std::fs::remove_file(&fine).unwrap();
    let finished = Finished::of(&run.wait_with_output().unwrap());
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("aborted: `test -e"),
        "{}",
        finished.stderr
    );
    let rate = &finished.json["stages"][0]["flow_bits_per_sec"]["value"];
    assert!(rate.is_f64(), "{rate}");
}

/// A flow of half a minute, which ends in the middle: within a second by the product's promise, and
/// a few more for a busy machine.
#[test]
fn an_abort_command_ends_flows_in_the_middle() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let (run, fine) = start_abortable(&lab, ["-t", "30s", "--set", "samples=1"]);
    let carries = || {
        let before = sent_bytes(&lab, "r1h1");
        std::thread::sleep(Duration::from_millis(200));
        sent_bytes(&lab, "r1h1") - before > 100_000
    };
    wait_for("load", Duration::from_secs(30), carries);
    std::fs::remove_file(&fine).unwrap();
    wait_for("its end", Duration::from_secs(5), || !carries());
    let finished = Finished::of(&run.wait_with_output().unwrap());
    assert_eq!(finished.code, 130, "{}", finished.stderr);
}

/// A run between two hosts, and the file without which it ends.
fn start_abortable(lab: &TestLab, settings: [&str; 4]) -> (Child, PathBuf) {
    let fine = lab.work.path().join("fine");
    std::fs::write(&fine, "").unwrap();
    let command = format!("test -e '{}'", fine.display());
    let mut run = lab.run_command("pair");
    run.args(settings).args(["--abort-command", &command]);
    (start(&mut run), fine)
}

fn sent_bytes(lab: &TestLab, host: &str) -> u64 {
    let file = "/sys/class/net/eth0/statistics/tx_bytes";
    let shown = lab.exec(host).args(["cat", file]).output().unwrap();
    text(&shown.stdout).trim().parse().unwrap()
}

fn second(lab: &TestLab, args: &[&str]) -> Output {
    let mut command = eastwest();
    command.args(["run", "pair", "--fleet", "lab", "--lab", &lab.name]);
    let runs = lab.work.path().join("second");
    command.args(["--format", "json", "--runs-dir"]).arg(runs);
    command.args(["-t", "200ms", "--set", "samples=1"]);
    command.args(args).output().unwrap()
}

fn start(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn wait_for_host_ups(runs: &Path, hosts: usize) {
    wait_for("hosts", Duration::from_secs(30), || {
        events(runs).is_some_and(|events| events.matches("\"host-up\"").count() >= hosts)
    });
}
