//! What the end-to-end tests share: the built binary, labs that end with their test, and what a run
//! left behind.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The binary under test.
pub(crate) fn eastwest() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eastwest"));
    command.env_remove("EASTWEST_RUNS").stdin(Stdio::null());
    command
}

/// Whether labs can be built here; prints why not. In CI a test that cannot run is a failure.
pub(crate) fn can_run_labs() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| {
        use std::os::unix::fs::MetadataExt;
        m.uid() == 0
    });
    let missing = ["ip", "tc", "sshd", "ssh", "iperf3"]
        .into_iter()
        .filter(|tool| !has_tool(tool))
        .collect::<Vec<_>>();
    if is_root && missing.is_empty() {
        return true;
    }
    let reason = if is_root {
        format!("missing {}", missing.join(", "))
    } else {
        "not root".into()
    };
    assert!(
        std::env::var_os("CI").is_none(),
        "labs cannot be built in CI: {reason}"
    );
    println!("skipped: labs cannot be built here: {reason}");
    false
}

pub(crate) fn has_tool(name: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(name).exists())
}

/// A lab that goes down with the test. It carries so little that several leave most of the CPUs
/// idle.
pub(crate) struct TestLab {
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) work: TempDir,
}

impl TestLab {
    /// `yaml` without a name: it gets one of its own.
    pub(crate) fn up(yaml: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}-{number}", std::process::id());
        let work = tempfile::tempdir().unwrap();
        let file = work.path().join("lab.yaml");
        std::fs::write(&file, format!("name: {name}\n{yaml}")).unwrap();
        let up = eastwest()
            .args(["lab", "up", "-f"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(up.status.success(), "lab up: {}", text(&up.stderr));
        let dir = PathBuf::from("/run/eastwest/labs").join(&name);
        assert!(
            dir.join("ssh_config").exists() || !yaml.contains("sshd"),
            "no ssh_config"
        );
        Self { name, dir, work }
    }

    /// A command on a host of the lab.
    pub(crate) fn exec(&self, host: &str) -> Command {
        let mut command = eastwest();
        command.args(["lab", "exec", "--lab", &self.name, host, "--"]);
        command
    }

    /// `eastwest run SCENARIO` over this lab by the lab launcher, result as JSON.
    pub(crate) fn run(&self, scenario: &str, args: &[&str]) -> Finished {
        let mut command = self.run_command(scenario);
        command.args(args);
        Finished::of(&command.output().unwrap())
    }

    pub(crate) fn run_command(&self, scenario: &str) -> Command {
        let mut command = eastwest();
        command
            .args([
                "run", scenario, "--fleet", "lab", "--lab", &self.name, "--format", "json",
            ])
            .arg("--runs-dir")
            .arg(self.runs_dir());
        command
    }

    /// `eastwest run SCENARIO` on the lab's controller host, by ssh.
    pub(crate) fn ssh_run_command(&self, scenario: &str, remote_dir: &Path) -> Command {
        let mut command = self.exec("controller");
        command
            .arg(env!("CARGO_BIN_EXE_eastwest"))
            .args([
                "run",
                scenario,
                "--fleet",
                "ssh",
                "--format",
                "json",
                "--ssh-config",
            ])
            .arg(self.dir.join("ssh_config"))
            .arg("--remote-dir")
            .arg(remote_dir)
            .arg("--runs-dir")
            .arg(self.runs_dir());
        command
    }

    pub(crate) fn runs_dir(&self) -> PathBuf {
        self.work.path().join("runs")
    }

    pub(crate) fn fault(&self, target: &str, fault: &str) {
        let done = eastwest()
            .args(["lab", "fault", "--lab", &self.name, target, fault])
            .output()
            .unwrap();
        assert!(done.status.success(), "lab fault: {}", text(&done.stderr));
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        let down = eastwest()
            .args(["lab", "down", "--lab", &self.name])
            .output();
        if !std::thread::panicking() {
            assert!(
                down.is_ok_and(|d| d.status.success()),
                "lab {} did not go down",
                self.name
            );
        }
    }
}

/// A run that ended, with its JSON.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn of(output: &Output) -> Self {
        let stderr = text(&output.stderr);
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
            panic!("stdout is no JSON: {e}\n{}\n{stderr}", text(&output.stdout))
        });
        Self {
            code: output.status.code().unwrap_or(-1),
            json,
            stderr,
        }
    }

    /// Whether it ran to its end, whatever single moments on a shared CPU make of the verdict: code
    /// 3 is also that of flows that too few rounds explain.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.code, 0 | 1 | 3)
    }

    /// The verdict's findings as (cause, sentence).
    pub(crate) fn findings(&self) -> Vec<(String, String)> {
        let findings = self.json["verdict"]["findings"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        findings
            .iter()
            .map(|f| (word(&f["cause"]), word(&f["sentence"])))
            .collect()
    }
}

pub(crate) fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until `done`, at most `limit`.
pub(crate) fn wait_for(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Process ids whose command line, or program, contains all the words: an agent is started in its
/// directory, by a relative name.
pub(crate) fn processes_with(words: &[&str]) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let program = std::fs::read_link(entry.path().join("exe")).unwrap_or_default();
        let line = format!("{} {}", text(&line).replace('\0', " "), program.display());
        if words.iter().all(|word| line.contains(word)) {
            found.push(pid);
        }
    }
    found
}

/// Sends a signal by its name, for example `-KILL`, to a process the test started.
pub(crate) fn kill(name: &str, pid: u32) {
    assert!(signal(name, pid), "kill {name} {pid}");
}

/// Sends a signal by its name to a process the test started; false where it is gone.
pub(crate) fn signal(name: &str, pid: u32) -> bool {
    let done = Command::new("kill").args([name, &pid.to_string()]).status();
    done.unwrap().success()
}
