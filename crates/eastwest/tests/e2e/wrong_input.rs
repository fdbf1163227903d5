//! Wrong input, and places that cannot be written to: code 2 with the remedy, before anything
//! starts. What cannot be written afterwards costs no verdict.

use crate::common::{eastwest, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The network that is simulated where a run needs one.
const LAB: &str = "name: sim\nracks: 1\nhosts-per-rack: 4\nnic: 1G\n";

struct Work(TempDir);

impl Work {
    fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        std::fs::write(work.path().join("lab.yaml"), LAB).unwrap();
        Self(work)
    }

    /// `eastwest` in the directory, which is where its runs are, too.
    fn command(&self, line: &str) -> Command {
        let mut command = eastwest();
        command.args(line.split_whitespace());
        command.current_dir(self.0.path());
        command
    }

    fn simulated(&self, more: &str) -> Output {
        let line = format!("run mesh --via sim --topology lab.yaml --set samples=2 -q {more}");
        self.command(&line).output().unwrap()
    }

    /// The seeds of the runs in the directory.
    fn seeds(&self) -> BTreeSet<u64> {
        let runs = std::fs::read_dir(self.0.path().join("runs"));
        let runs = runs.into_iter().flatten().flatten();
        let manifests = runs.filter_map(|run| std::fs::read(run.path().join("run.json")).ok());
        let seed = |text: Vec<u8>| serde_json::from_slice::<Value>(&text).unwrap()["seed"].as_u64();
        manifests.filter_map(seed).collect()
    }
}

fn is_refused(out: &Output, expected: &str) {
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{expected}: {stderr}");
    assert!(stderr.contains(expected), "{expected}: {stderr}");
}

#[test]
fn each_mistake_is_code_2_with_the_remedy() {
    let work = Work::new();
    let cases = [
        (
            "pair a b --print-manifests --dry-run",
            "--print-manifests is of --via kubernetes",
        ),
        (
            "pair a b --topology lab.yaml --dry-run",
            "--topology is of --via sim",
        ),
        (
            "run mesh --via sim --topology lab.yaml --host-network",
            "give --via kubernetes",
        ),
        (
            "run mesh --via sim --topology lab.yaml --namespace x",
            "--namespace is of",
        ),
        (
            "run mesh --via sim --topology lab.yaml --job 7",
            "--job is of --via slurm",
        ),
        (
            "run mesh --via sim --topology lab.yaml --dial-ports 1-2",
            "--dial-ports is of",
        ),
        (
            "run mesh --via sim --topology lab.yaml --ssh-user x",
            "--ssh-user has no meaning",
        ),
        (
            "run mesh -w a,b --submit-on a --dry-run",
            "--submit-on is of `run testdfsio`",
        ),
        (
            "run mesh -w a,b --disk /x --dry-run",
            "--disk is of `run dfsio`",
        ),
        ("run /dev/zero", "larger than 16 MiB"),
        (
            "run mesh --via sim --topology /dev/zero",
            "larger than 16 MiB",
        ),
        ("pair a b --fanout 0", "0 is not in 1.."),
        ("pair a b --seed -1", "`-1` is no seed; give a whole number"),
        (
            "size --data 1TB --within 1h --price x",
            "`x` is no price; give a number",
        ),
        ("size --data x --within 1h", "`x` is not an amount of data"),
        (
            "storage restore --dfs-hosts nosuch",
            "give the file that the fan-in had",
        ),
        ("man lab.yaml/x", "cannot write manual pages"),
        (
            "image -o image.tar --name Wrong",
            "`Wrong` is no image name",
        ),
        ("image -o no/where.tar", "cannot write"),
    ];
    for (line, expected) in cases {
        is_refused(&work.command(line).output().unwrap(), expected);
    }
    assert!(work.seeds().is_empty());
}

#[test]
fn words_of_any_bytes_are_taken_or_refused() {
    let work = Work::new();
    let name = OsStr::from_bytes(b"lab\xff.yaml");
    std::fs::write(work.0.path().join(name), LAB).unwrap();
    let mut command = work.command("run mesh --via sim -q --set samples=2 --topology");
    let out = command.arg(name).output().unwrap();
    assert_eq!(work.seeds().len(), 1, "{}", text(&out.stderr));
    let mut command = work.command("hosts --format json");
    is_refused(&command.arg(name).output().unwrap(), "invalid UTF-8");
}

#[test]
fn a_full_stdout_is_code_4_and_a_closed_one_is_none() {
    let work = Work::new();
    let lines = [
        "hosts n1",
        "line-rate --link 10G",
        "schema",
        "man",
        "completions bash",
        "scenario show qualify",
        "scenario list",
        "runs list --json",
        "kubernetes rbac",
        "run pair a b --dry-run --format json",
    ];
    for line in lines {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let out = work.command(line).stdout(full).output().unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{line}: {stderr}");
        assert!(
            stderr.contains("cannot write to stdout"),
            "{line}: {stderr}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = work.command(line).stdout(writer).output().unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{line}: {stderr}");
        assert!(!stderr.contains("error"), "{line}: {stderr}");
    }
}

#[test]
fn a_place_for_the_result_is_tried_before_the_load_and_costs_no_verdict() {
    let work = Work::new();
    let nowhere = "pair a b --via local -t 200ms --output no/where.html";
    is_refused(
        &work.command(nowhere).output().unwrap(),
        "nothing was started",
    );
    assert!(work.seeds().is_empty());
    let out = work.simulated("--output /dev/full");
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("cannot write `/dev/full`"), "{stderr}");
    assert!(stdout.contains("mesh"), "no verdict: {stdout}");
    let report = work.command("report -O no/where.html").output().unwrap();
    is_refused(&report, "cannot write `no/where.html`");
}

#[test]
fn a_run_is_repeated_with_other_options() {
    let work = Work::new();
    work.simulated("--output first.json --seed 7");
    let first = work.0.path().join("first.json");
    std::fs::remove_file(&first).unwrap();
    let repeat = "runs repeat last -- -q --seed 8 --output again.json";
    let out = work.command(repeat).output().unwrap();
    assert!(!first.exists(), "{}", text(&out.stderr));
    assert!(work.0.path().join("again.json").exists());
    assert_eq!(work.seeds(), BTreeSet::from([7, 8]));
}

#[test]
fn a_dry_run_of_files_names_every_target() {
    let work = Work::new();
    let [a, b] = ["a", "b"].map(|name| work.0.path().join(name));
    let target = |path: &Path| format!("--target file://{}", path.display());
    let line = format!(
        "run dfsio --via local -w n[1-3] --files 1 --dry-run {} {}",
        target(&a),
        target(&b)
    );
    let shown = text(&work.command(&line).output().unwrap().stdout);
    let both = format!("file://{}, file://{}: 1 file of ", a.display(), b.display());
    assert!(shown.starts_with(&both), "{shown}");
    assert!(shown.contains("on 3 hosts (n[1-3])"), "{shown}");
    let plan = work.command(&format!("{line} --json")).output();
    let plan = plan.unwrap().stdout;
    let plan: Value = serde_json::from_slice(&plan).unwrap();
    assert_eq!(plan["targets"].as_array().unwrap().len(), 2);
}
