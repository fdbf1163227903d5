//! A host that lies, a terminal that stops reading, a disk that is full or hesitates, too few
//! descriptors: what each of them may cost a run, and what not. The experiments of a security
//! review, as tests.

use crate::common::{eastwest, has_tool, text};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// In place of ssh: takes the copy as a host would, and then sends what `EVIL` names.
const EVIL_SSH: &str = r#"#!/usr/bin/env python3
import os, re, sys, time
mode, out = os.environ["EVIL"], sys.stdout.buffer
def say(b): out.write(b); out.flush()
def varint(n):
    b = bytearray()
    while True:
        n, low = n >> 7, n & 127
        b.append(low | (128 if n else 0))
        if not n: return bytes(b)
def words(b): return varint(len(b)) + b
def frame(body): return len(body).to_bytes(4, "big") + body
if mode == "escape-bootstrap":
    say(b"eastwest-bootstrap-failed directory \x1b]0;owned\x07\x1b[31mred\n"); sys.exit(1)
size = int(re.search(r"size=(\d+);", sys.argv[-1]).group(1))
say(b"eastwest-bootstrap-on Linux x86_64 gzip\n")
left = size
while left:
    got = os.read(0, min(left, 1 << 20))
    if not got: sys.exit(1)
    left -= len(got)
say(b"eastwest-bootstrap-ready\n")
say(b"\nEASTWEST-AGENT PROTOCOL BUILD\n")
kernel = b"6.1\x1b]0;owned\x07\x1b[31m"
ready = b"\x00" + words(kernel) + words(b"h") + words(b"x86_64") + varint(4) + b"\x00" * 11 + varint(5401)
time.sleep(1)
if mode == "memory":
    n = (16 * 1024 * 1024 - 16) // 5
    say(frame(b"\x04\x00\x00" + varint(n) + b"\x00" * (5 * n)))
elif mode == "flood":
    say(frame(ready))
    block = frame(b"\x07" + b"\x00" * 7) * 5000
    while True: say(block)
else:
    say(frame(ready))
while os.read(0, 65536): pass
"#;

/// The first line of an agent of this build. One whose link ends at once may end before it spoke.
fn first_line() -> String {
    let mut agent = eastwest()
        .arg("agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("EASTWEST-AGENT"));
    drop(agent.stdin.take());
    agent.wait().unwrap();
    line.unwrap()
}

/// Runs `eastwest` with the lying ssh first on its path.
struct Liars {
    dir: TempDir,
}

impl Liars {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = EVIL_SSH.replace("EASTWEST-AGENT PROTOCOL BUILD", &first_line());
        let ssh = dir.path().join("ssh");
        std::fs::write(&ssh, script).unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    /// At most 3 GiB of addresses, which a threads' stacks take part of.
    fn command(&self, evil: &str, args: &[&str]) -> Command {
        let path = format!(
            "{}:{}",
            self.dir.path().display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new("prlimit");
        command
            .arg("--as=3221225472")
            .arg(env!("CARGO_BIN_EXE_eastwest"))
            .args(args)
            .args(["--fleet", "ssh", "--hosts", "192.0.2.2,192.0.2.3"])
            .env("PATH", path)
            .env("EVIL", evil)
            .stdin(Stdio::null());
        command
    }
}

fn can_lie() -> bool {
    let missing = ["python3", "prlimit"]
        .into_iter()
        .find(|tool| !has_tool(tool));
    if let Some(tool) = missing {
        assert!(std::env::var_os("CI").is_none(), "no {tool} in CI");
        println!("skipped: no {tool}");
    }
    missing.is_none()
}

#[test]
fn one_frame_cannot_take_the_controllers_memory() {
    if !can_lie() {
        return;
    }
    let liars = Liars::new();
    let done = liars.command("memory", &["doctor"]).output().unwrap();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    assert!(matches!(done.status.code(), Some(1..=4)), "{out}{err}");
    assert!(out.contains("does not speak this protocol"), "{out}{err}");
}

#[test]
fn a_flooding_host_fills_neither_memory_nor_disk() {
    if !can_lie() {
        return;
    }
    let (liars, runs) = (Liars::new(), tempfile::tempdir().unwrap());
    let mut command = liars.command("flood", &["run", "pair"]);
    let done = command.arg("--runs-dir").arg(runs.path()).output().unwrap();
    let err = text(&done.stderr);
    assert!(!done.status.success(), "{err}");
    assert!(err.contains("more than it was asked for"), "{err}");
    let events = only_run(runs.path()).join("events.jsonl");
    let bytes = events.metadata().unwrap().len();
    assert!(bytes < 4 << 20, "{bytes} bytes of events");
}

#[test]
fn nothing_a_host_says_reaches_the_terminal_as_a_command() {
    if !can_lie() {
        return;
    }
    let liars = Liars::new();
    for evil in ["escape-bootstrap", "escape-facts"] {
        let done = liars
            .command(evil, &["doctor", "--verbose"])
            .output()
            .unwrap();
        let shown = text(&done.stdout) + &text(&done.stderr);
        assert!(shown.contains("owned"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
    }
    let runs = tempfile::tempdir().unwrap();
    let done = local(&["run", "pair", "--set", "samples=1"], runs.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let manifest = only_run(runs.path()).join("run.json");
    let words = std::fs::read_to_string(&manifest).unwrap();
    let words = words.replacen("\"id\": \"", "\"id\": \"\\u001b]0;owned\\u0007", 1);
    std::fs::write(&manifest, words).unwrap();
    let list = eastwest()
        .args(["runs", "list", "--runs-dir"])
        .arg(runs.path())
        .output()
        .unwrap();
    let shown = text(&list.stdout) + &text(&list.stderr);
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
}

/// Standard error is a pipe that is full and that nobody reads for longer than an agent waits for
/// its controller.
#[test]
fn a_terminal_that_stands_still_costs_no_host() {
    let runs = tempfile::tempdir().unwrap();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let args = [
        "run",
        "pair",
        "--live",
        "lines",
        "--set",
        "duration=3s",
        "--set",
        "samples=2",
        "--set",
        "rate=100M",
    ];
    let child = local(&args, runs.path())
        .stderr(writer.try_clone().unwrap())
        .spawn()
        .unwrap();
    // The agents are up and the first stage runs.
    std::thread::sleep(Duration::from_secs(4));
    let filler = std::thread::spawn(move || writer.write_all(&[b'.'; 1 << 17]).unwrap());
    std::thread::sleep(Duration::from_secs(10));
    let drain = std::thread::spawn(move || {
        let mut shown = String::new();
        reader.read_to_string(&mut shown).unwrap();
        shown
    });
    filler.join().unwrap();
    let done = child.wait_with_output().unwrap();
    let shown = drain.join().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}{shown}", text(&done.stdout));
    assert!(!shown.contains("lost"), "{shown}");
    let events = std::fs::read_to_string(only_run(runs.path()).join("events.jsonl")).unwrap();
    assert!(!events.contains("host-lost"), "{events}");
}

fn can_mount() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        println!("skipped: only root can mount");
    }
    is_root
}

/// A file system of its own, mounted for the test.
struct Mounted {
    dir: TempDir,
}

impl Mounted {
    fn new(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(args)
            .arg(dir.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "mount: {}", text(&done.stderr));
        Self { dir }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.dir.path())
            .status();
    }
}

#[test]
fn a_full_disk_is_told_at_once_and_keeps_the_verdict() {
    if !can_mount() {
        return;
    }
    let disk = Mounted::new(&["-t", "tmpfs", "-o", "size=128k", "none"]);
    let args = [
        "run",
        "mesh",
        "--live",
        "lines",
        "--set",
        "samples=2",
        "--set",
        "duration=500ms",
    ];
    let done = command_with_hosts(&args, "n[1-4]", disk.dir.path())
        .output()
        .unwrap();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(4), "{out}{err}");
    let reported = err
        .find("warning: the run goes on, but")
        .unwrap_or_else(|| panic!("{err}"));
    let ended = err.find("run ended").unwrap_or(err.len());
    assert!(reported < ended, "not reported while it ran: {err}");
    assert!(
        err.contains("No space left") && err.contains("not whole"),
        "{err}"
    );
    assert!(
        out.contains("verdict") || out.contains("INCOMPLETE") || out.len() > 500,
        "{out}"
    );
}

#[test]
fn a_disk_that_hesitates_costs_no_host() {
    if !can_mount() || !has_tool("mkfs.ext4") || !has_tool("fsfreeze") {
        return;
    }
    let image = tempfile::tempdir().unwrap();
    let image = image.path().join("disk");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(32 << 20)
        .unwrap();
    let image = image.to_str().unwrap().to_owned();
    let made = Command::new("mkfs.ext4")
        .args(["-q", &image])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let loops = Command::new("losetup").arg("-f").output();
    if !loops.is_ok_and(|found| found.status.success()) {
        println!("skipped: no loop devices");
        return;
    }
    let disk = Mounted::new(&["-o", "loop", &image]);
    let args = ["run", "pair", "--set", "duration=4s", "--set", "samples=2"];
    let child = local(&args, disk.dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let freeze = |how: &str| {
        Command::new("fsfreeze")
            .arg(how)
            .arg(disk.dir.path())
            .status()
    };
    let frozen = freeze("-f").is_ok_and(|status| status.success());
    std::thread::sleep(Duration::from_secs(6));
    let _ = freeze("-u");
    let done = finished(child);
    let err = text(&done.stderr);
    assert!(frozen, "fsfreeze");
    assert_eq!(done.status.code(), Some(0), "{err}");
    assert!(!err.contains("silent for"), "{err}");
}

/// 40 hosts take four descriptors each; the soft limit of a login is not the controller's bound.
#[test]
fn a_low_soft_limit_of_descriptors_is_raised() {
    let runs = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 96; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_eastwest"))
        .args(["tools", "--fleet", "local", "--hosts", "n[1-30]"])
        .current_dir(runs.path())
        .stdin(Stdio::null());
    let done = command.output().unwrap();
    let shown = text(&done.stdout) + &text(&done.stderr);
    assert!(!shown.contains("Too many open files"), "{shown}");
    assert!(done.status.success(), "{shown}");
}

fn local(args: &[&str], runs: &Path) -> Command {
    command_with_hosts(args, "n[1-2]", runs)
}

fn command_with_hosts(args: &[&str], hosts: &str, runs: &Path) -> Command {
    let mut command = eastwest();
    command
        .args(args)
        .args(["--fleet", "local", "--hosts", hosts, "--runs-dir"])
        .arg(runs)
        .stdout(Stdio::piped());
    command
}

fn finished(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

fn only_run(runs: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(runs).unwrap();
    let run = entries.find(|entry| entry.as_ref().unwrap().path().is_dir());
    run.unwrap().unwrap().path()
}
