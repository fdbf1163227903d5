//! Hosts that others use, too: one run at a time, and an end when somebody asks for it.

use crate::common::{Finished, TestLab, can_run_labs, eastwest, kill, signal, text, wait_for};
use crate::lab_failures::{agents_of, events, wait_for_rounds};
use std::os::unix::net::UnixDatagram;
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

/// From the failure of the command, by a clock that it reads itself, to the last bytes that left.
#[test]
fn an_abort_command_ends_flows_within_a_second() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let (fine, failed) = (lab.work.path().join("fine"), lab.work.path().join("failed"));
    std::fs::write(&fine, "").unwrap();
    let command = format!(
        "test -e '{}' || {{ cat /proc/uptime >'{}'; false; }}",
        fine.display(),
        failed.display()
    );
    let (run, traffic) = loaded(&lab, "pair", &["--abort-command", &command]);
    std::fs::remove_file(&fine).unwrap();
    let finished = Finished::of(&run.wait_with_output().unwrap());
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    let failed_s = first_number(&std::fs::read_to_string(failed).unwrap());
    traffic.assert_over_by(failed_s + 1.0);
}

#[test]
fn stop_ends_a_hosts_flows_within_a_second() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let (run, traffic) = loaded(&lab, "pair", &[]);
    let mut stop = lab.exec("r1h1");
    let stopped = stop.arg(eastwest().get_program()).arg("stop").output();
    let stopped_s = uptime_s();
    assert!(text(&stopped.unwrap().stderr).contains("stopped: run "));
    let finished = Finished::of(&run.wait_with_output().unwrap());
    let words = "was stopped on its host";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
    traffic.assert_over_by(stopped_s + 1.0);
}

/// An agent that is stopped and continued again and again answers heartbeats late; one that is
/// stopped once has other work.
#[test]
fn long_round_trips_end_the_run() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let (run, _) = loaded(&lab, "pair", &[]);
    let agent = agents_of(&lab, "r1h2")[0];
    // A heartbeat that comes while the agent goes on is answered at once, and the count of long
    // ones begins anew.
    for _ in 0..20 {
        if !signal("-STOP", agent) {
            break;
        }
        // Longer than the limit of 1 s by what may pass until the next heartbeat, and shorter than
        // the 4 s after which an agent is lost.
        std::thread::sleep(Duration::from_millis(2600));
        signal("-CONT", agent);
        std::thread::sleep(Duration::from_millis(50));
    }
    let finished = Finished::of(&run.wait_with_output().unwrap());
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    let words = "aborted: r1h2: control link round trip ";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}

/// Agents that are stopped answer no heartbeats, as on a network that the load has taken away.
#[test]
fn hosts_that_fall_silent_together_end_the_run() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 5\nnic: 20M\n");
    let (run, _) = loaded(&lab, "permutation", &[]);
    let hosts = ["r1h2", "r1h3", "r1h4", "r1h5"];
    let agents: Vec<u32> = hosts.iter().map(|host| agents_of(&lab, host)[0]).collect();
    for agent in &agents {
        kill("-STOP", *agent);
    }
    let finished = Finished::of(&run.wait_with_output().unwrap());
    for agent in &agents {
        signal("-CONT", *agent);
    }
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    let words = "aborted: 4 of 5 hosts fell silent within 5 s";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}

/// The loss begins after the load: what was lossy before is not the load's.
#[test]
fn retransmissions_of_others_end_the_run() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    // Eight streams that leave most of the link free, and go on at 10% loss.
    let _others = OtherTraffic::start(&lab, ["-P", "8", "-b", "500K"]);
    let mut run = lab.run_command("pair");
    // By --force: the other connection uses the link already.
    run.args(ONE_LONG_FLOW)
        .args(["--force", "--abort-retransmits", "5%"]);
    let mut run = start(&mut run);
    wait_for("the run's load", Duration::from_secs(30), || {
        events(&lab.runs_dir()).is_some_and(|log| log.contains("clock-synced"))
    });
    std::thread::sleep(Duration::from_secs(2));
    assert!(run.try_wait().unwrap().is_none(), "the load alone ended it");
    lab.fault("r1h1", "loss=10%");
    let finished = Finished::of(&run.wait_with_output().unwrap());
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    let words = "of the segments of other processes' TCP connections retransmitted";
    assert!(
        finished.stderr.contains("aborted: r1h1: ") && finished.stderr.contains(words),
        "{}",
        finished.stderr
    );
}

/// A lab's links report no speed of their own: the expected one counts.
#[test]
fn hosts_whose_links_others_use_are_refused_unless_forced() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let _others = OtherTraffic::start(&lab, ["-P", "1", "-b", "5M"]);
    let traffic = Traffic::count(&lab, "r1h1");
    // A quarter of the link is 31 kB in 50 ms.
    traffic.wait_for_load();
    let expected = ["--expect-nic", "20M"];
    let refused = second(&lab, &expected);
    let words = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{words}");
    assert!(
        words.contains("links in use by others before any load: r1h[1-2]"),
        "{words}"
    );
    let mut storage = lab.run_command("dfsio");
    let storage = storage.args(["--target", "file:///tmp/", "--file-size", "1MiB"]);
    let refused = storage.args(expected).output().unwrap();
    let words = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{words}");
    assert!(
        words.contains("links in use by others before any load"),
        "{words}"
    );
    let forced = Finished::of(&second(&lab, &[&expected[..], &["--force"]].concat()));
    assert!(
        forced.stderr.contains("background traffic before any load"),
        "{}",
        forced.stderr
    );
}

/// Every host of a lab has mounts of its own: `/etc/eastwest/limits` and `/dev/log` are the test's.
#[test]
fn a_hosts_limits_and_log_are_obeyed_and_written() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(TWO_HOSTS);
    let root = lab.work.path();
    std::fs::create_dir_all(root.join("dev")).unwrap();
    let log = UnixDatagram::bind(root.join("dev/log")).unwrap();
    log.set_nonblocking(true).unwrap();
    mount_own_files(&lab, "r1h1");
    mount_own_files(&lab, "r1h2");
    let run_with = |limits: &str| {
        for host in ["r1h1", "r1h2"] {
            std::fs::write(root.join(host).join("etc/eastwest/limits"), limits).unwrap();
        }
        let mut run = lab.run_command("pair");
        run.args(["-t", "1s", "--set", "samples=1"])
            .output()
            .unwrap()
    };
    let denied = run_with("deny = exams until Friday");
    let words = text(&denied.stderr);
    assert!(!denied.status.success(), "{words}");
    let why = "its owner allows no runs: exams until Friday";
    assert!(words.contains(why), "{words}");
    assert_eq!(lines_of(&log), [""; 0], "a refused run loads nothing");

    let limited = Finished::of(&run_with("max-rate = 5M"));
    let rate = &limited.json["stages"][0]["flow_bits_per_sec"]["value"];
    let rate = rate.as_f64().unwrap();
    assert!((3.5e6..5e6).contains(&rate), "{rate}");
    let lines = lines_of(&log);
    let begins = " begins: network load on 198.18.";
    let begins = lines.iter().filter(|line| line.contains(begins));
    let ends = lines.iter().filter(|line| line.ends_with(" ends"));
    assert_eq!((begins.count(), ends.count()), (2, 2), "{lines:?}");
    let from_us = |line: &String| line.starts_with("<29>eastwest[");
    assert!(lines.iter().all(from_us), "{lines:?}");
}

/// A copy of `/etc` that the test writes to, and a `/dev` with the test's log.
fn mount_own_files(lab: &TestLab, host: &str) {
    let script = "set -e; cd \"$0\"; mkdir -p \"$1\"; cp -a /etc \"$1/etc\"; mkdir -p \"$1/etc/eastwest\"; \
         for file in null zero full random urandom tty; do : >\"dev/$file\"; mount --bind \"/dev/$file\" \"dev/$file\"; done; \
         mount --bind \"$1/etc\" /etc; mount --rbind dev /dev";
    let mut exec = lab.exec(host);
    exec.args(["sh", "-c", script])
        .arg(lab.work.path())
        .arg(host);
    let mounted = exec.output().unwrap();
    assert!(mounted.status.success(), "{}", text(&mounted.stderr));
}

fn lines_of(log: &UnixDatagram) -> Vec<String> {
    let mut line = [0; 1024];
    let next = || log.recv(&mut line).ok().map(|length| text(&line[..length]));
    std::iter::from_fn(next).collect()
}

/// A run whose load has begun, and what the first host sends.
fn loaded(lab: &TestLab, scenario: &str, words: &[&str]) -> (Child, Traffic) {
    let traffic = Traffic::count(lab, "r1h1");
    let mut run = lab.run_command(scenario);
    let run = start(run.args(ONE_LONG_FLOW).args(words));
    traffic.wait_for_load();
    (run, traffic)
}

const ONE_LONG_FLOW: [&str; 4] = ["-t", "30s", "--set", "samples=1"];

/// iperf3 of nobody's run from `r1h1` to `r1h2`.
struct OtherTraffic([Child; 2]);

impl OtherTraffic {
    fn start(lab: &TestLab, load: [&str; 4]) -> Self {
        let server = ["timeout", "60", "iperf3", "-s", "-1", "-p", "7001"];
        let server = start(lab.exec("r1h2").args(server));
        let address = address_of(lab, "r1h2");
        wait_for("the server", Duration::from_secs(10), || {
            let listening = lab.exec("r1h2").args(["cat", "/proc/net/tcp6"]).output();
            // Port 7001.
            text(&listening.unwrap().stdout).contains(":1B59 ")
        });
        let mut client = lab.exec("r1h1");
        client.args(["iperf3", "-p", "7001", "-t", "40", "-c", &address]);
        Self([server, start(client.args(load))])
    }
}

impl Drop for OtherTraffic {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The bytes that left a host's NIC, every 50 ms, with the time since boot.
struct Traffic {
    counting: Child,
    file: PathBuf,
}

impl Traffic {
    fn count(lab: &TestLab, host: &str) -> Self {
        let file = lab.work.path().join(format!("{host}.bytes"));
        let script = "while :; do read b </sys/class/net/eth0/statistics/tx_bytes; \
             read t _ </proc/uptime; echo $t $b; sleep 0.05; done";
        let out = std::fs::File::create(&file).unwrap();
        let mut exec = lab.exec(host);
        // It ends with the test, however that ends.
        exec.args(["timeout", "120", "sh", "-c", script])
            .stdout(out);
        let counting = exec.spawn().unwrap();
        Self { counting, file }
    }

    /// When load was seen, seconds since boot: 20 Mb/s are 125 kB in 50 ms.
    fn loaded_at_s(&self) -> Vec<f64> {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let readings = text.lines().filter_map(|line| line.split_once(' '));
        let readings =
            readings.filter_map(|(at, bytes)| Some((at.parse().ok()?, bytes.parse().ok()?)));
        let readings: Vec<(f64, u64)> = readings.collect();
        let loaded = readings
            .windows(2)
            .filter(|pair| pair[1].1 - pair[0].1 > 20_000);
        loaded.map(|pair| pair[1].0).collect()
    }

    fn wait_for_load(&self) {
        let is_loaded = || self.loaded_at_s().len() > 10;
        wait_for("load", Duration::from_secs(30), is_loaded);
    }

    /// A reading shows what left since the one before: 50 ms, and more on a busy machine.
    fn assert_over_by(&self, end_s: f64) {
        let last_s = self.loaded_at_s().pop().unwrap();
        assert!(
            last_s <= end_s + 0.15,
            "load until {last_s}, to end by {end_s}"
        );
        println!("load ended {:.2} s before it had to", end_s - last_s);
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        let _ = self.counting.kill();
        let _ = self.counting.wait();
    }
}

fn uptime_s() -> f64 {
    first_number(&std::fs::read_to_string("/proc/uptime").unwrap())
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn address_of(lab: &TestLab, host: &str) -> String {
    let shown = lab.exec(host).args(["hostname", "-I"]).output().unwrap();
    text(&shown.stdout)
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned()
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
