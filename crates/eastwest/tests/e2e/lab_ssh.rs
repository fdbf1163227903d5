//! Real sshd in lab hosts: what a run leaves behind, however it ends. Nothing.

use crate::common::{
    Finished, TestLab, can_run_labs, kill, processes_with, signal, text, wait_for,
};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const LAB: &str = "racks: 2\nhosts-per-rack: 2\nnic: 200M\noversubscription: 1\nsshd: true\n";
/// Goes on when one host is lost.
const LARGER_LAB: &str =
    "racks: 2\nhosts-per-rack: 3\nnic: 200M\noversubscription: 1\nsshd: true\n";
/// From the end of a run, however it came, to clean hosts.
const CLEAN_WITHIN: Duration = Duration::from_secs(5);

struct SshRun {
    lab: TestLab,
    remote: TempDir,
}

impl SshRun {
    fn new() -> Self {
        Self::of(LAB)
    }

    fn of(lab: &str) -> Self {
        Self {
            lab: TestLab::up(lab),
            remote: tempfile::tempdir().unwrap(),
        }
    }

    fn command(&self, duration: &str) -> Command {
        let mut command = self.lab.ssh_run_command("mesh", self.remote.path());
        command
            .args(["--racks", "@r[1-2]", "--set", "expect.oversubscription=1"])
            .args(["--set", &format!("duration={duration}")]);
        command
    }

    fn start(&self) -> Child {
        let child = spawn(&mut self.command("3s"));
        wait_for("agents on all hosts", Duration::from_secs(30), || {
            self.agents().len() == 4
        });
        // Into the middle of a round.
        std::thread::sleep(Duration::from_secs(2));
        child
    }

    /// Into the middle of the copy to r1h2 of a larger lab: its NIC takes minutes for the binary.
    /// The other hosts are up.
    fn start_with_a_slow_copy(&self) -> Child {
        self.lab.fault("r1h2", "nic=4M");
        let child = spawn(self.command("300ms").args(["--launch-timeout", "180s"]));
        wait_for("all other agents", Duration::from_secs(150), || {
            self.agents().len() == 5
        });
        wait_for("only the slow host's directory", CLEAN_WITHIN, || {
            self.files() == 1
        });
        assert!(self.bootstraps().len() > 5, "the slow host's shells");
        child
    }

    /// The shells that start agents, and what else there is while a copy is on its way.
    fn bootstraps(&self) -> Vec<u32> {
        let remote = self.remote.path().display().to_string();
        // The ssh clients and login shells have the same words behind their own.
        let is_named = |pid: &u32, name: &[u8]| {
            std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == name)
        };
        let mut found = processes_with(&["sh -c parent=", &remote]);
        found.retain(|pid| is_named(pid, b"sh\n"));
        let copies = processes_with(&["head -c "]);
        found.extend(
            copies
                .into_iter()
                .filter(|pid| is_named(pid, b"head\n") && works_in(*pid, &remote)),
        );
        found
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.remote.path()).unwrap().count()
    }

    fn agents(&self) -> Vec<u32> {
        processes_with(&[
            "agent --remove-self",
            &self.remote.path().display().to_string(),
        ])
        .into_iter()
        .filter(|pid| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
            exe.is_ok_and(|exe| exe.display().to_string().contains("eastwest."))
        })
        .collect()
    }

    fn listening(&self) -> String {
        let mut ports = String::new();
        for host in ["r1h1", "r1h2", "r2h1", "r2h2"] {
            let out = self
                .lab
                .exec(host)
                .args(["cat", "/proc/net/tcp"])
                .output()
                .unwrap();
            for line in text(&out.stdout)
                .lines()
                .filter(|line| line.contains(" 0A "))
            {
                let port = line.split_whitespace().nth(1).unwrap_or_default();
                // sshd's own port 22.
                if !port.ends_with(":0016") {
                    ports.push_str(&format!("{host} {port}; "));
                }
            }
        }
        ports
    }

    fn assert_clean(&self) {
        wait_for("clean hosts", CLEAN_WITHIN, || {
            self.agents().is_empty() && self.bootstraps().is_empty() && self.files() == 0
        });
        assert_eq!(self.listening(), "", "listening ports");
    }
}

#[test]
fn after_its_end() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::new();
    let finished = Finished::of(&run.command("300ms").output().unwrap());
    assert!(
        finished.is_measured(),
        "{}\n{}",
        finished.stderr,
        finished.json["verdict"]
    );
    assert_eq!(finished.json["cells"].as_array().unwrap().len(), 12);
    run.assert_clean();
}

/// A stand-in for ssh records the output of the hosts' scripts.
#[test]
fn a_rack_gets_the_agent_once_and_hands_it_on() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::of(LARGER_LAB);
    let bin = tempfile::tempdir().unwrap();
    let said = bin.path().join("printed");
    let mut command = run.command("300ms");
    command.args(["--relay", "always"]);
    let script = format!("{{ ssh \"$@\"; }} | tee -a {}", said.display());
    put_before_ssh(&mut command, bin.path(), &script);
    let finished = Finished::of(&command.output().unwrap());
    assert!(finished.is_measured(), "{}", finished.stderr);
    let said = std::fs::read(said).unwrap();
    let said = String::from_utf8_lossy(&said);
    let greetings = |packing: &str| {
        let words = format!(
            "eastwest-bootstrap-on Linux {} {packing}",
            std::env::consts::ARCH
        );
        said.matches(&words).count()
    };
    assert_eq!((greetings("gzip"), greetings("relayed")), (2, 4));
    run.assert_clean();
}

/// A stand-in for ssh has r1h2 refuse connections until both tries of its first launch are over.
#[test]
fn a_host_that_boots_while_the_others_are_launched_takes_part() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::new();
    let bin = tempfile::tempdir().unwrap();
    let calls = bin.path().join("calls");
    let mut command = run.command("300ms");
    let script = format!(
        "case $*:$* in *-G*:*) ;; *:*' r1h2 '*) echo >>{0}; [ $(wc -l <{0}) -gt 2 ] || {{ echo 'ssh: connect to host r1h2 port 22: Connection refused' >&2; \
         exit 255; }} ;; esac; exec ssh \"$@\"",
        calls.display()
    );
    put_before_ssh(&mut command, bin.path(), &script);
    let finished = Finished::of(&command.output().unwrap());
    assert!(finished.is_measured(), "{}", finished.stderr);
    assert_eq!(finished.json["cells"].as_array().unwrap().len(), 12);
    assert!(
        !finished.stderr.contains("did not come up"),
        "{}",
        finished.stderr
    );
    let calls = std::fs::read_to_string(calls).unwrap().lines().count();
    assert_eq!(calls, 3);
    run.assert_clean();
}

#[test]
fn after_ctrl_c_once_and_twice() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::new();
    let child = run.start();
    let controller = controller_pid(&run);
    kill("-INT", controller);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    run.assert_clean();

    let child = run.start();
    let controller = controller_pid(&run);
    kill("-INT", controller);
    std::thread::sleep(Duration::from_millis(50));
    // One that is quick has ended by now.
    signal("-INT", controller);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    run.assert_clean();
}

#[test]
fn after_a_sigkill_of_the_controller() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::new();
    let mut child = run.start();
    kill("-KILL", controller_pid(&run));
    child.wait().unwrap();
    run.assert_clean();
}

#[test]
fn after_a_sigkill_of_the_controller_in_mid_copy() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::of(LARGER_LAB);
    let mut child = run.start_with_a_slow_copy();
    kill("-KILL", controller_pid(&run));
    child.wait().unwrap();
    run.assert_clean();
}

#[test]
fn after_a_link_cut_in_mid_copy_and_the_rest_goes_on() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::of(LARGER_LAB);
    let child = run.start_with_a_slow_copy();
    run.lab.fault("r1h2", "link-down");
    wait_for("the cut host to be clean", CLEAN_WITHIN, || {
        // Each agent has a shell above it.
        run.bootstraps().len() <= run.agents().len() && run.files() == 0
    });
    let finished = Finished::of(&child.wait_with_output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("r1h2: stalled while copying"),
        "{}",
        finished.stderr
    );
    let said = finished.findings().iter().any(|(_, s)| s.contains("r1h2"));
    assert!(said, "{:?}", finished.findings());
    run.lab.fault("r1h2", "link-up");
    run.assert_clean();
}

#[test]
fn after_a_cut_link_and_the_rest_goes_on() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::new();
    let child = run.start();
    run.lab.fault("r1h2", "link-down");
    wait_for("the cut host's agent to end", CLEAN_WITHIN, || {
        run.agents().len() <= 3
    });
    let finished = Finished::of(&child.wait_with_output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    assert!(
        finished
            .findings()
            .iter()
            .any(|(_, sentence)| sentence.contains("r1h2"))
    );
    run.lab.fault("r1h2", "link-up");
    run.assert_clean();
}

#[test]
fn after_an_ssh_session_is_killed() {
    if !can_run_labs() {
        return;
    }
    let run = SshRun::new();
    let child = run.start();
    let config = run.lab.dir.join("ssh_config").display().to_string();
    let sessions = processes_with(&["ssh -F", &config, " r2h2 "]);
    assert_eq!(sessions.len(), 1, "one ssh client for r2h2");
    kill("-KILL", sessions[0]);
    let finished = Finished::of(&child.wait_with_output().unwrap());
    let cells = finished.json["cells"].as_array().unwrap();
    assert!(
        cells
            .iter()
            .all(|c| c["bits_per_sec"].as_f64() != Some(0.0))
    );
    let others = cells.iter().filter(|c| c["src"] != 3 && c["dst"] != 3);
    assert!(others.clone().count() == 6 && others.clone().all(|c| c["bits_per_sec"].is_f64()));
    run.assert_clean();
}

#[test]
fn a_dead_host_is_named_in_sshs_own_words_and_the_others_go_on() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(LARGER_LAB);
    let remote = tempfile::tempdir().unwrap();
    lab.fault("r1h3", "link-down");
    let base = |extra: &[&str]| {
        let mut command = lab.ssh_run_command("mesh", remote.path());
        command.args([
            "--racks",
            "@r[1-2]",
            "--set",
            "duration=300ms",
            "--launch-timeout",
            "15s",
        ]);
        Finished::of(&command.args(extra).output().unwrap())
    };
    let finished = base(&[]);
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let said = finished.findings().iter().any(|(_, s)| s.contains("r1h3"));
    assert!(said, "{:?}", finished.findings());
    assert!(
        finished.stderr.contains("timed out") || finished.stderr.contains("No route"),
        "{}",
        finished.stderr
    );
    assert_eq!(base(&["--require-all"]).code, 4);
}

/// The command finds a script as `ssh`, in which `ssh` is the real one.
fn put_before_ssh(command: &mut Command, bin: &Path, script: &str) {
    let ssh = bin.join("ssh");
    std::fs::write(&ssh, format!("#!/bin/sh\nPATH=${{PATH#*:}}\n{script}\n")).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.display()));
}

/// Whether a process' working directory is below another, which may be gone.
fn works_in(pid: u32, directory: &str) -> bool {
    let own = std::fs::read_link(format!("/proc/{pid}/cwd"));
    own.is_ok_and(|own| own.starts_with(directory))
}

fn spawn(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The run's own process, below `lab exec`.
fn controller_pid(run: &SshRun) -> u32 {
    let runs = run.lab.runs_dir().display().to_string();
    let found = processes_with(&["run mesh --fleet ssh", &runs]);
    // `lab exec` has the same words behind its own.
    let own = |pid: &&u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !text(&line).contains("\0exec\0")
    };
    *found.iter().find(own).expect("the controller runs")
}

#[test]
fn the_doctor_finds_a_closed_host() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(LAB);
    let doctor = || {
        lab.exec("controller")
            .arg(env!("CARGO_BIN_EXE_eastwest"))
            .args([
                "doctor",
                "--racks",
                "@r[1-2]",
                "--launch-timeout",
                "60s",
                "--ssh-config",
            ])
            .arg(Path::new(&lab.dir).join("ssh_config"))
            .output()
            .unwrap()
    };
    let well = doctor();
    assert!(
        !text(&well.stdout).contains("FAIL"),
        "{}",
        text(&well.stdout)
    );
    lab.fault("r2h1", "link-down");
    let ill = doctor();
    assert_eq!(ill.status.code(), Some(3), "{}", text(&ill.stdout));
    assert!(
        text(&ill.stdout).contains("FAIL  r2h1: ssh"),
        "{}",
        text(&ill.stdout)
    );
}
