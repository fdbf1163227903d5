//! `eastwest tools`, in a lab over real ssh. The package manager is a stand-in below a host's own
//! mounts: what it is ordered to do, and that the tool is there afterwards, is what counts here.

use crate::common::{TestLab, can_run_labs, eastwest, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LAB: &str = "racks: 1\nhosts-per-rack: 2\nnic: 200M\nsshd: true\n";
/// Taken away from r1h2 only.
const TOOL: &str = "/usr/bin/iperf3";

struct ToolsLab {
    lab: TestLab,
    said: PathBuf,
}

impl ToolsLab {
    /// r1h2 has no iperf3, and an apt-get that does `then`.
    fn new(then: &str) -> Self {
        let lab = TestLab::up(LAB);
        let said = lab.work.path().join("printed");
        let apt_get = lab.work.path().join("apt-get");
        let script = format!("#!/bin/sh\necho \"$*\" >>{}\n{then}\n", said.display());
        std::fs::write(&apt_get, script).unwrap();
        std::fs::set_permissions(&apt_get, std::fs::Permissions::from_mode(0o755)).unwrap();
        let os_release = lab.work.path().join("os-release");
        std::fs::write(
            &os_release,
            "ID=debian\nPRETTY_NAME=\"Debian of the lab\"\n",
        )
        .unwrap();
        let all = Self { lab, said };
        all.bind(&apt_get, "/usr/bin/apt-get");
        all.bind(&os_release, "/etc/os-release");
        all.bind(Path::new("/dev/null"), TOOL);
        all
    }

    /// Over ssh, because the host's sshd has mounts of its own.
    fn bind(&self, from: &Path, to: &str) {
        let mut ssh = self.lab.exec("controller");
        ssh.args(["ssh", "-F"]).arg(self.lab.dir.join("ssh_config"));
        ssh.args(["r1h2", "mount", "--bind"]).arg(from).arg(to);
        let done = ssh.output().unwrap();
        assert!(done.status.success(), "{to}: {}", text(&done.stderr));
    }

    fn tools(&self, more: &[&str]) -> Output {
        let mut command: Command = self.lab.exec("controller");
        command
            .arg(env!("CARGO_BIN_EXE_eastwest"))
            .args([
                "tools",
                "--hosts",
                "r1h[1-2]",
                "--tool",
                "iperf3,ping",
                "--ssh-config",
            ])
            .arg(self.lab.dir.join("ssh_config"))
            .args(more);
        command.output().unwrap()
    }
}

#[test]
fn what_is_missing_is_told_with_the_commands_and_nothing_is_done() {
    if !can_run_labs() {
        return;
    }
    let lab = ToolsLab::new("exit 100");
    let out = lab.tools(&[]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert!(
        said.contains("iperf3    r1h1                     iperf 3."),
        "{said}"
    );
    assert!(
        said.contains("iperf3    r1h2                     -"),
        "{said}"
    );
    assert!(
        said.contains("r1h2 (Debian of the lab): missing iperf3"),
        "{said}"
    );
    assert!(
        said.contains("apt-get install -y --no-install-recommends iperf3"),
        "{said}"
    );
    assert!(!lab.said.exists(), "nothing was asked to be installed");

    let out = lab.tools(&["--json"]);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["hosts"][1]["host"], "r1h2");
    assert_eq!(json["hosts"][1]["tools"]["iperf3"], Value::Null);
    assert_eq!(json["hosts"][0]["commands"], Value::Null);
}

#[test]
fn what_is_missing_is_installed_where_it_is_missing() {
    if !can_run_labs() {
        return;
    }
    let lab = ToolsLab::new(&format!(
        "case \"$1\" in install) umount {TOOL};; *) cat >/dev/null;; esac"
    ));
    let out = lab.tools(&["--install-tools"]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert!(said.contains("r1h1: nothing was missing"), "{said}");
    assert!(said.contains("r1h2: installed iperf3"), "{said}");
    assert!(said.contains("iperf3    r1h[1-2]"), "{said}");
    let asked = std::fs::read_to_string(&lab.said).unwrap();
    assert_eq!(asked, "update\ninstall -y --no-install-recommends iperf3\n");
}

#[test]
fn an_installation_that_fails_is_code_3_in_the_package_managers_words() {
    if !can_run_labs() {
        return;
    }
    let lab = ToolsLab::new("echo 'E: no such mirror' >&2; exit 100");
    let out = lab.tools(&["--install-tools"]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(3), "{said}{}", text(&out.stderr));
    assert!(said.contains("r1h2: nothing installed"), "{said}");
    assert!(said.contains("E: no such mirror"), "{said}");
    let asked = std::fs::read_to_string(&lab.said).unwrap();
    assert_eq!(asked, "update\n", "the first failure ends it");
}

#[test]
fn a_missing_tool_is_told_once_and_its_tests_are_left_out() {
    if !can_run_labs() {
        return;
    }
    let lab = ToolsLab::new("exit 100");
    let work = lab.lab.work.path();
    let remote = work.join("remote");
    std::fs::create_dir(&remote).unwrap();
    let scenario = work.join("two.yaml");
    let tests = "tests: [{name: theirs, pattern: pair, tool: iperf3}, {name: ours, pattern: pair}]";
    let yaml = format!("name: two\ndefaults: {{duration: 300ms, samples: 2}}\n{tests}\n");
    std::fs::write(&scenario, yaml).unwrap();
    let run = |args: &[&str]| {
        let name = scenario.display().to_string();
        let mut command = lab.lab.ssh_run_command(&name, &remote);
        command.args(["--hosts", "r1h[1-2]"]).args(args);
        command.output().unwrap()
    };
    let out = run(&[]);
    let words = "iperf3 is not installed on r1h2; skipped: theirs; `eastwest tools";
    assert_eq!(
        text(&out.stderr).matches(words).count(),
        1,
        "{}",
        text(&out.stderr)
    );
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["stages"].as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!(json["stages"][0]["name"], "ours");
    let warnings = json["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w.as_str().unwrap().contains(words)));

    let out = run(&["--tool", "iperf3"]);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    let words = "no test is left: iperf3 is not installed on r1h2; skipped: theirs, ours";
    assert!(text(&out.stdout).contains(words), "{}", text(&out.stdout));
}

#[test]
fn this_machines_tools_are_listed() {
    let out = eastwest()
        .args(["tools", "--fleet", "local", "--hosts", "n1", "--json"])
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let host = &json["hosts"][0];
    assert!(host["os"].is_string() && host["error"].is_null(), "{json}");
    assert_eq!(host["tools"].as_object().unwrap().len(), 9, "{json}");
}

#[test]
fn a_tool_that_is_not_known_is_code_2() {
    let out = eastwest()
        .args([
            "tools", "--fleet", "local", "--hosts", "n1", "--tool", "iperf4",
        ])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("iperf3"));
}
