//! `eastwest run dfsio` on local agents: files through the whole binary, and what goes wrong with
//! them.

use crate::common::{Finished, eastwest, kill, text, wait_for};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

struct Place {
    runs: TempDir,
    mount: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            runs: tempfile::tempdir().unwrap(),
            mount: tempfile::tempdir().unwrap(),
        }
    }

    fn dfsio(&self, words: &str) -> Command {
        let target = format!("file://{}", self.mount.path().display());
        dfsio(self.runs.path(), &target, words)
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.mount.path()).unwrap().count()
    }
}

fn dfsio(runs: &Path, target: &str, words: &str) -> Command {
    let mut command = eastwest();
    command
        .args(["run", "dfsio", "--via", "local", "--hosts", "n[1-2]"])
        .args(["--target", target, "--runs-dir"])
        .arg(runs)
        .args(words.split_whitespace());
    command
}

#[test]
fn files_are_written_read_shown_again_and_removed() {
    let place = Place::new();
    let words = "--files 4 --file-size 3MiB --buffer-size 1MiB --parallel 2 --operations write,read,append,random-read --format json";
    let finished = Finished::of(&place.dfsio(words).output().unwrap());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(finished.json["status"], "nothing-wrong");
    let steps = finished.json["steps"].as_array().unwrap();
    let operations: Vec<_> = steps
        .iter()
        .map(|s| s["operation"].as_str().unwrap())
        .collect();
    assert_eq!(
        operations,
        ["write", "read", "append", "random-read", "clean"]
    );
    for step in &steps[..4] {
        assert_eq!(step["files_done"], 4, "{step}");
        assert_eq!(step["clients"].as_array().unwrap().len(), 2);
        assert!(step["dfsio"]["throughput_mb_per_sec"].as_f64().unwrap() > 0.0);
        assert!(step["common"]["overlap"].as_f64().unwrap() <= 1.0);
    }
    assert_eq!(steps[1]["bytes"], 12 << 20);
    assert_eq!(steps[3]["bytes"], 24 << 20, "append doubled the files");
    assert_eq!(place.left(), 0, "test files are left");

    let again = |format: &str| {
        let mut command = eastwest();
        command.args(["report", "latest", "--format", format, "--runs-dir"]);
        let out = command.arg(place.runs.path()).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let document: serde_json::Value = serde_json::from_str(&again("json")).unwrap();
    assert_eq!(document, finished.json, "an old run gives the same again");
    let shown = again("text");
    for label in [
        "PASS: all files whole, every byte read as written",
        "----- TestDFSIO ----- : write",
        "            Date & time: ",
        "        Number of files: 4",
        " Total MBytes processed: 12",
        "      Throughput mb/sec: ",
        " Average IO rate mb/sec: ",
        "  IO rate std deviation: ",
        "     Test exec time sec: ",
        "----- TestDFSIO ----- : random read",
        "common window: ",
        "first byte",
    ] {
        assert!(shown.contains(label), "no `{label}` in {shown}");
    }
    assert_eq!(again("csv").lines().count(), 1 + 5 * 4);
}

#[test]
fn a_flipped_byte_is_a_finding_and_no_figure() {
    let place = Place::new();
    let words = "--files 2 --file-size 1MiB --operations write --keep --seed 5";
    let out = place.dfsio(words).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let path = place.mount.path().join("eastwest-dfsio/test_io_1");
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 1 << 20);
    bytes[700_000] ^= 0x40;
    std::fs::write(&path, bytes).unwrap();

    let unknown = place
        .dfsio("--files 2 --file-size 1MiB --operations read")
        .output();
    let unknown = unknown.unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("--seed"),
        "{}",
        text(&unknown.stderr)
    );

    let words = "--files 2 --file-size 1MiB --operations read --seed 5";
    let read = place.dfsio(words).output().unwrap();
    assert_eq!(read.status.code(), Some(1), "{}", text(&read.stderr));
    let shown = text(&read.stdout);
    assert!(shown.starts_with("FAIL: 1 file"), "{shown}");
    assert!(
        shown.contains("test_io_1 holds wrong bytes from offset 700000: 1 byte differs"),
        "{shown}"
    );
    assert!(shown.contains("        Number of files: 1\n"), "{shown}");

    let words = "--operations clean";
    let cleaned = place.dfsio(words).output().unwrap();
    assert!(cleaned.status.success(), "{}", text(&cleaned.stderr));
    assert_eq!(place.left(), 0);
}

#[test]
fn what_cannot_be_done_is_named_with_its_exit_code() {
    let place = Place::new();
    let missing = place.mount.path().join("no-mount");
    let target = format!("file://{}", missing.display());
    let out = dfsio(place.runs.path(), &target, "--file-size 1MiB")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    assert!(shown.starts_with("NO DATA"), "{shown}");
    assert!(shown.contains("no such file or directory"), "{shown}");
    for (target, words, problem) in [
        ("ftp://nn/", "", "`ftp` is unknown"),
        ("hdfs:///x", "", "names no NameNode"),
        ("hdfs://nn:8020/", "--block-size 1000", "multiple of 512"),
        ("file:///tmp", "--replication 2", "are of HDFS"),
        ("file:///tmp", "--dfs-hosts x", "is of a fan-in"),
        ("file:///tmp", "--fan-in", "there is 1"),
        ("hdfs://nn:8020/", "--fan-in", "give --dfs-hosts FILE"),
        (
            "hdfs://nameservice/",
            "--fan-in",
            "asks the NameNode itself",
        ),
        ("/mnt", "", "write file:///PATH"),
        (
            "file:///tmp",
            "--direct --buffer-size 1000",
            "multiple of 4096",
        ),
        ("file:///tmp", "--files 30000", "at most 10000 per host"),
    ] {
        let out = dfsio(place.runs.path(), target, words).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{target} {words}");
        assert!(text(&out.stderr).contains(problem), "{}", text(&out.stderr));
    }
    let mut flows = eastwest();
    let flows = flows.args([
        "run", "pair", "--via", "local", "--hosts", "n[1-2]", "--keep",
    ]);
    let out = flows.output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("--keep is of `run dfsio`"));
}

#[test]
fn a_full_file_system_costs_its_files_and_nothing_more() {
    let place = Place::new();
    std::fs::create_dir(place.mount.path().join("eastwest-dfsio")).unwrap();
    let full = place.mount.path().join("eastwest-dfsio/test_io_1");
    std::os::unix::fs::symlink("/dev/full", full).unwrap();
    let words = "--files 4 --file-size 1MiB --no-fsync --format json";
    let finished = Finished::of(&place.dfsio(words).output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let (write, read) = (&finished.json["steps"][0], &finished.json["steps"][1]);
    assert_eq!(
        (&write["files_done"], &write["files_ordered"]),
        (&3.into(), &4.into())
    );
    let error = write["failures"][0]["error"].as_str().unwrap();
    assert!(error.contains("ENOSPC"), "{error}");
    assert_eq!(read["files_ordered"], 3, "only whole files are read");
    assert_eq!(place.left(), 0);
}

#[test]
fn ctrl_c_removes_the_files() {
    let place = Place::new();
    let child = place
        .dfsio("--files 2 --file-size 1TiB --buffer-size 64KiB --operations write,read")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = place.mount.path().join("eastwest-dfsio/test_io_0");
    let has_bytes = || std::fs::metadata(&path).is_ok_and(|file| file.len() > 0);
    wait_for("the first bytes", Duration::from_secs(20), has_bytes);
    kill("-INT", child.id());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).starts_with("NO DATA") || text(&out.stdout).starts_with("INCOMPLETE")
    );
    assert_eq!(place.left(), 0, "{}", text(&out.stderr));
}

/// An S3 server whose buckets are the folders of `root`, until the test process ends.
fn serve_s3(root: &Path) -> SocketAddr {
    let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).unwrap());
    builder.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = builder.build();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let socket = TokioIo::new(socket);
                tokio::spawn(http1::Builder::new().serve_connection(socket, service.clone()));
            }
        });
    });
    address
}

#[test]
fn objects_of_an_s3_server_are_as_good_as_files() {
    let place = Place::new();
    std::fs::create_dir(place.mount.path().join("bench")).unwrap();
    let address = serve_s3(place.mount.path());
    let target = format!("s3://bench/a?endpoint=http://{address}");
    let words = "--files 4 --file-size 18MiB --parallel 2 --operations write,read,random-read --format json";
    let run = |secret: Option<&str>| {
        let mut command = dfsio(place.runs.path(), &target, words);
        command
            .env_remove("AWS_SECRET_ACCESS_KEY")
            .env("AWS_ACCESS_KEY_ID", "key");
        if let Some(secret) = secret {
            command.env("AWS_SECRET_ACCESS_KEY", secret);
        }
        Finished::of(&command.output().unwrap())
    };
    let finished = run(Some("secret"));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    for step in &finished.json["steps"].as_array().unwrap()[..3] {
        assert_eq!(step["files_done"], 4, "{step}");
    }
    let left = std::fs::read_dir(place.mount.path().join("bench/a/eastwest-dfsio"));
    assert_eq!(left.map_or(0, Iterator::count), 0, "objects are left");
    for (secret, problem) in [(Some("wrong"), "access denied"), (None, "no credentials")] {
        let finished = run(secret);
        assert_eq!(finished.code, 4, "{}", finished.stderr);
        assert!(finished.stderr.contains(problem), "{}", finished.stderr);
    }
}

#[test]
fn a_killed_agent_costs_its_files_and_nothing_more() {
    let place = Place::new();
    let child = place
        .dfsio(
            "--files 2 --file-size 384MiB --buffer-size 4KiB --operations write,read --format json",
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = place.mount.path().join("eastwest-dfsio/test_io_1");
    let has_bytes = || std::fs::metadata(&path).is_ok_and(|file| file.len() > 0);
    wait_for("the first bytes", Duration::from_secs(20), has_bytes);
    // The last one started is the last host's.
    let agents = children_of(child.id());
    assert_eq!(agents.len(), 2, "{agents:?}");
    kill("-KILL", agents[1]);
    let finished = Finished::of(&child.wait_with_output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let write = &finished.json["steps"][0];
    assert_eq!(
        (&write["files_ordered"], &write["files_done"]),
        (&2.into(), &1.into())
    );
    assert_eq!(write["missing"].as_array().unwrap().len(), 1, "{write}");
    assert!(
        finished.stderr.contains("may be left below"),
        "{}",
        finished.stderr
    );
    let read = &finished.json["steps"][1];
    assert_eq!(
        (&read["files_ordered"], &read["files_done"]),
        (&1.into(), &1.into())
    );
}

/// Processes whose parent this is, oldest first.
fn children_of(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{parent}/task")).unwrap() {
        let list = task.unwrap().path().join("children");
        let list = std::fs::read_to_string(list).unwrap_or_default();
        children.extend(
            list.split_whitespace()
                .map(|pid| pid.parse::<u32>().unwrap()),
        );
    }
    children.sort_unstable();
    children
}

#[test]
fn hadoops_testdfsio_refuses_what_it_cannot_do() {
    let place = Place::new();
    for (words, problem) in [
        ("testdfsio --target file:///tmp", "needs HDFS"),
        (
            "testdfsio --target hdfs://nn:8020/ --parallel 2",
            "map tasks",
        ),
        (
            "testdfsio --target hdfs://nn:8020/ --submit-on n9",
            "no such host",
        ),
        (
            "testdfsio --target hdfs://nn:8020/ -D x",
            "expected KEY=VALUE",
        ),
        (
            "dfsio --target hdfs://nn:8020/ --hadoop /x",
            "is of run testdfsio",
        ),
        ("qualify --submit-on n1", "--submit-on is of"),
    ] {
        let mut run = eastwest();
        run.arg("run").args(words.split(' '));
        run.args(["--via", "local", "--hosts", "n[1-2]", "--runs-dir"]);
        let out = run.arg(place.runs.path()).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{words}");
        assert!(text(&out.stderr).contains(problem), "{}", text(&out.stderr));
    }
}

#[test]
fn fan_in_takes_targets_away_one_by_one() {
    let place = Place::new();
    let targets = ["a", "b", "c"].map(|name| {
        let path = place.mount.path().join(name);
        std::fs::create_dir(&path).unwrap();
        format!("file://{}", path.display())
    });
    let words = "--hosts n[1-3] --fan-in --files 6 --file-size 2MiB";
    let out = dfsio(place.runs.path(), "", "")
        .args(["--format", "json"])
        .output();
    assert_eq!(out.unwrap().status.code(), Some(2), "an empty target");
    let mut command = eastwest();
    command
        .args(["run", "dfsio", "--via", "local", "--runs-dir"])
        .arg(place.runs.path())
        .args(["--target", &targets.join(","), "--format", "json"])
        .args(words.split_whitespace());
    let finished = Finished::of(&command.output().unwrap());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let fan_in = finished.json["fan_in"].as_array().unwrap();
    assert_eq!(fan_in.len(), 2, "write and read");
    for operation in fan_in {
        let points = operation["points"].as_array().unwrap();
        let endpoints: Vec<_> = points
            .iter()
            .map(|p| p["endpoints"].as_u64().unwrap())
            .collect();
        assert_eq!(endpoints, [3, 2, 1]);
        assert!(
            points
                .iter()
                .all(|p| p["bytes_per_sec"].as_f64().unwrap() > 0.0)
        );
        assert!(operation["enough_endpoints"].as_u64().is_some());
    }
    // Three hosts on two targets: the first target has two of them.
    let steps = finished.json["steps"].as_array().unwrap();
    let two = steps
        .iter()
        .find(|s| s["endpoints"].as_array().unwrap().len() == 2);
    let two = two.unwrap()["endpoints"].as_array().unwrap();
    assert_eq!(
        (&two[0]["clients"], &two[1]["clients"]),
        (&2.into(), &1.into())
    );
    assert_eq!(two[0]["bytes"], 4 * (2 << 20));
    for name in ["a", "b", "c"] {
        let left = std::fs::read_dir(place.mount.path().join(name)).unwrap();
        assert_eq!(left.count(), 0, "files are left in {name}");
    }
}
