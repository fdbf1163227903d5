//! `eastwest run dfsio` on local agents: files through the whole binary, and what goes wrong with
//! them.

use crate::common::{Finished, TestLab, can_run_labs, eastwest, kill, text, wait_for};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

struct TempDirs {
    runs: TempDir,
    mount: TempDir,
}

impl TempDirs {
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
    let dirs = TempDirs::new();
    let words = "--files 4 --file-size 3MiB --buffer-size 1MiB --parallel 2 --operations write,read,append,random-read --format json";
    let finished = Finished::of(&dirs.dfsio(words).output().unwrap());
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
        for client in step["clients"].as_array().unwrap() {
            assert_eq!(client["file_times"]["count"], 2, "{client}");
            let p99_ns = client["calls"]["p99_ns"].as_u64();
            assert!(p99_ns >= client["calls"]["p50_ns"].as_u64() && p99_ns > Some(0));
        }
        let by_node = &step["times_by_node"];
        assert_eq!(by_node["files_of_one_node"], 4, "{by_node}");
        assert_eq!(by_node["nodes"][0]["first_byte"]["count"], 4, "{by_node}");
    }
    assert_eq!(steps[1]["bytes"], 12 << 20);
    assert_eq!(steps[3]["bytes"], 24 << 20, "append doubled the files");
    assert_eq!(dirs.left(), 0, "test files are left");

    let again = |format: &str| report(&dirs, format);
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
        "client  time ",
        "page cache: dropped on the client before each read",
    ] {
        assert!(shown.contains(label), "no `{label}` in {shown}");
    }
    assert_eq!(again("csv").lines().count(), 1 + 5 * 4);
}

/// `--warm` keeps the client's page cache, and whoever sees the figures sees it.
#[test]
fn warm_reads_are_called_so() {
    let dirs = TempDirs::new();
    let words = "--files 2 --file-size 1MiB --warm";
    let out = dirs.dfsio(words).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let warm = "page cache: warm, reads may not reach the storage";
    for shown in [text(&out.stdout), report(&dirs, "html")] {
        assert!(shown.contains(warm), "{shown}");
        assert!(!shown.contains("page cache: dropped"), "{shown}");
    }
    let document: serde_json::Value = serde_json::from_str(&report(&dirs, "json")).unwrap();
    assert_eq!(document["steps"][1]["notes"][0], warm);
    assert_eq!(document["job"]["drop_cache"], false);
}

/// All workers wait for the common start, which is 0, and begin soon after it. The bound leaves a
/// busy machine its delays.
#[test]
fn workers_of_all_hosts_start_together() {
    let dirs = TempDirs::new();
    let words = "--files 16 --parallel 4 --file-size 64KiB --operations write --hosts n[1-4]";
    let mut command = eastwest();
    let target = format!("file://{}", dirs.mount.path().display());
    command
        .args(["run", "dfsio", "--via", "local", "--target", &target])
        .args(["--format", "csv", "--runs-dir"])
        .arg(dirs.runs.path())
        .args(words.split_whitespace());
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let csv = text(&out.stdout);
    let mut firsts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in csv.lines().filter(|line| line.contains(",write,")) {
        let columns: Vec<&str> = line.split(',').collect();
        let start_ns: u64 = columns[5].parse().unwrap();
        let first = firsts.entry((columns[2], columns[4])).or_insert(start_ns);
        *first = start_ns.min(*first);
    }
    let hosts: BTreeSet<&str> = firsts.keys().map(|(host, _)| *host).collect();
    assert_eq!(hosts.len(), 4, "{csv}");
    let starts = || firsts.values().copied();
    let (first_ns, last_ns) = (starts().min().unwrap(), starts().max().unwrap());
    assert!(first_ns > 0, "a worker did not wait: {csv}");
    assert!(last_ns < 1_000_000_000, "a worker came {last_ns} ns late");
}

/// The last run again.
fn report(dirs: &TempDirs, format: &str) -> String {
    let mut command = eastwest();
    command.args(["report", "latest", "--format", format, "--runs-dir"]);
    let out = command.arg(dirs.runs.path()).output().unwrap();
    text(&out.stdout)
}

#[test]
fn a_flipped_byte_is_a_finding_and_no_figure() {
    let dirs = TempDirs::new();
    let words = "--files 2 --file-size 1MiB --operations write --keep --seed 5";
    let out = dirs.dfsio(words).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let path = dirs.mount.path().join("eastwest-dfsio/test_io_1");
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 1 << 20);
    bytes[700_000] ^= 0x40;
    std::fs::write(&path, bytes).unwrap();

    let unknown = dirs
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
    let read = dirs.dfsio(words).output().unwrap();
    assert_eq!(read.status.code(), Some(1), "{}", text(&read.stderr));
    let shown = text(&read.stdout);
    assert!(shown.starts_with("FAIL: 1 file"), "{shown}");
    assert!(
        shown.contains("test_io_1 contains wrong bytes from offset 700000: 1 byte differs"),
        "{shown}"
    );
    assert!(shown.contains("        Number of files: 1\n"), "{shown}");

    let words = "--operations clean";
    let cleaned = dirs.dfsio(words).output().unwrap();
    assert!(cleaned.status.success(), "{}", text(&cleaned.stderr));
    assert_eq!(dirs.left(), 0);
}

#[test]
fn what_cannot_be_done_is_named_with_its_exit_code() {
    let dirs = TempDirs::new();
    let missing = dirs.mount.path().join("no-mount");
    let target = format!("file://{}", missing.display());
    let out = dfsio(dirs.runs.path(), &target, "--file-size 1MiB")
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
        let out = dfsio(dirs.runs.path(), target, words).output().unwrap();
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
    let dirs = TempDirs::new();
    std::fs::create_dir(dirs.mount.path().join("eastwest-dfsio")).unwrap();
    let full = dirs.mount.path().join("eastwest-dfsio/test_io_1");
    std::os::unix::fs::symlink("/dev/full", full).unwrap();
    let words = "--files 4 --file-size 1MiB --no-fsync --format json";
    let finished = Finished::of(&dirs.dfsio(words).output().unwrap());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let (write, read) = (&finished.json["steps"][0], &finished.json["steps"][1]);
    assert_eq!(
        (&write["files_done"], &write["files_ordered"]),
        (&3.into(), &4.into())
    );
    let error = write["failures"][0]["error"].as_str().unwrap();
    assert!(error.contains("ENOSPC"), "{error}");
    assert_eq!(read["files_ordered"], 3, "only whole files are read");
    assert_eq!(dirs.left(), 0);
}

#[test]
fn ctrl_c_removes_the_files() {
    let dirs = TempDirs::new();
    let child = dirs
        .dfsio("--files 2 --file-size 1TiB --buffer-size 64KiB --operations write,read")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = dirs.mount.path().join("eastwest-dfsio/test_io_0");
    let has_bytes = || std::fs::metadata(&path).is_ok_and(|file| file.len() > 0);
    wait_for("the first bytes", Duration::from_secs(20), has_bytes);
    kill("-INT", child.id());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).starts_with("NO DATA") || text(&out.stdout).starts_with("INCOMPLETE")
    );
    assert_eq!(dirs.left(), 0, "{}", text(&out.stderr));
}

/// Requests that get 503: a method, and what their URI contains.
type Refused = Arc<Mutex<Option<(Method, &'static str)>>>;

fn is_refused<T>(refused: &Refused, request: &Request<T>) -> bool {
    let refused = refused.lock().unwrap();
    refused.as_ref().is_some_and(|(method, part)| {
        request.method() == method && request.uri().to_string().contains(part)
    })
}

/// An S3 server whose buckets are the folders of `root`, until the test process ends.
fn serve_s3(root: &Path, refused: &Refused) -> SocketAddr {
    let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).unwrap());
    builder.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = builder.build();
    let refused = Arc::clone(refused);
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
                let (service, refused) = (service.clone(), Arc::clone(&refused));
                let answer = service_fn(move |request: Request<Incoming>| {
                    let (service, refused) = (service.clone(), Arc::clone(&refused));
                    async move {
                        if !is_refused(&refused, &request) {
                            return service.call(request.map(s3s::Body::from)).await;
                        }
                        // Whoever closes with half a body unread resets the connection, and the
                        // answer may be lost.
                        let _ = request.into_body().collect().await;
                        let busy =
                            s3s::Body::from("<Error><Code>SlowDown</Code></Error>".to_owned());
                        let mut busy = Response::new(busy);
                        *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                        Ok(busy)
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(socket, answer));
            }
        });
    });
    address
}

#[test]
fn objects_of_an_s3_server_are_as_good_as_files() {
    let dirs = TempDirs::new();
    std::fs::create_dir(dirs.mount.path().join("bench")).unwrap();
    let address = serve_s3(dirs.mount.path(), &Refused::default());
    let target = format!("s3://bench/a?endpoint=http://{address}");
    let words = "--files 4 --file-size 18MiB --parallel 2 --operations write,read,random-read --format json";
    let run = |secret: Option<&str>| {
        let mut command = dfsio(dirs.runs.path(), &target, words);
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
    let left = std::fs::read_dir(dirs.mount.path().join("bench/a/eastwest-dfsio"));
    assert_eq!(left.map_or(0, Iterator::count), 0, "objects are left");
    for (secret, problem) in [(Some("wrong"), "access denied"), (None, "no credentials")] {
        let finished = run(secret);
        assert_eq!(finished.code, 4, "{}", finished.stderr);
        assert!(finished.stderr.contains(problem), "{}", finished.stderr);
    }
}

/// A server that is too busy for one object in the middle of its upload, and for another when it is
/// read, and an object that is not the one that was written.
#[test]
fn a_busy_s3_server_and_a_wrong_object_cost_their_files() {
    let dirs = TempDirs::new();
    let folder = dirs.mount.path().join("bench/a/eastwest-dfsio");
    std::fs::create_dir(dirs.mount.path().join("bench")).unwrap();
    let refused = Refused::default();
    let address = serve_s3(dirs.mount.path(), &refused);
    let target = format!("s3://bench/a?endpoint=http://{address}");
    let run = |words: &str| {
        let mut command = dfsio(dirs.runs.path(), &target, words);
        command
            .args(["--file-size", "18MiB", "--files", "4", "--format", "json"])
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        Finished::of(&command.output().unwrap())
    };
    let refuse = |what| *refused.lock().unwrap() = what;
    let failed = |finished: &Finished, step: usize, host: &str| {
        assert_eq!(finished.code, 3, "{}", finished.stderr);
        let step = &finished.json["steps"][step];
        assert_eq!(step["files_done"], 3, "{step}");
        assert_eq!(step["bytes"], 3 * (18 << 20), "nothing is half-counted");
        let failures = step["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 1, "{step}");
        assert_eq!(failures[0]["host"], host);
        let error = failures[0]["error"].as_str().unwrap();
        assert!(error.contains("503"), "{error}");
    };

    refuse(Some((Method::PUT, "test_io_1?partNumber=2")));
    let finished = run("--operations write,read");
    failed(&finished, 0, "n2");
    let read = &finished.json["steps"][1];
    assert_eq!(read["files_ordered"], 3, "only whole objects are read");
    let left = || std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert_eq!(left(), 0, "{}", finished.stderr);

    refuse(None);
    let finished = run("--operations write --keep --seed 5");
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    refuse(Some((Method::GET, "test_io_2")));
    failed(&run("--operations read --keep --seed 5"), 0, "n1");

    refuse(None);
    std::fs::copy(folder.join("test_io_0"), folder.join("test_io_3")).unwrap();
    let finished = run("--operations read --keep --seed 5");
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(finished.json["status"], "worse");
    let corrupt = finished.json["steps"][0]["corrupt"].as_array().unwrap();
    assert_eq!(corrupt.len(), 1);
    assert_eq!(corrupt[0]["file"], 3);
    let found = corrupt[0]["found"].as_str().unwrap();
    assert!(found.ends_with("offset 0 of file 0"), "{found}");
    assert_eq!(run("--operations clean").code, 0);
    assert_eq!(left(), 0);
}

/// Each on a file system of its own, one of them too small: what is on which disk is known, and the
/// full one costs its own files only.
#[test]
fn two_hosts_write_to_their_own_disks() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 2\nnic: 100M\n");
    let disk = lab.work.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let target = format!("file://{}", disk.display());
    for (host, size) in [("r1h1", "size=64m"), ("r1h2", "size=3m")] {
        let mount = ["mount", "-t", "tmpfs", "-o", size, host];
        let done = lab.exec(host).args(mount).arg(&disk).status().unwrap();
        assert!(done.success(), "mount on {host}");
    }
    let on_disk = |host: &str| {
        let folder = disk.join("eastwest-dfsio");
        let list = lab.exec(host).arg("ls").arg(folder).output().unwrap();
        text(&list.stdout)
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let words = ["--target", &target, "--files", "4", "--file-size", "2MiB"];
    let keep = ["--operations", "write", "--keep", "--seed", "5"];
    let finished = lab.run("dfsio", &[&words[..], &keep].concat());
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    let write = &finished.json["steps"][0];
    assert_eq!(write["files_done"], 3, "{write}");
    assert_eq!(write["failures"][0]["host"], "r1h2");
    let error = write["failures"][0]["error"].as_str().unwrap();
    assert!(error.contains("ENOSPC"), "{error}");
    assert_eq!(on_disk("r1h1"), ["test_io_0", "test_io_2"]);
    assert_eq!(on_disk("r1h2"), ["test_io_1"]);
    assert_eq!(
        std::fs::read_dir(&disk).unwrap().count(),
        0,
        "outside of both"
    );

    let read = ["--operations", "read", "--seed", "5"];
    let words = ["--target", &target, "--files", "2", "--file-size", "2MiB"];
    let finished = lab.run("dfsio", &[&words[..], &read].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let cleaned = lab.run("dfsio", &["--target", &target, "--operations", "clean"]);
    assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
    assert!(on_disk("r1h1").is_empty() && on_disk("r1h2").is_empty());
}

#[test]
fn a_killed_agent_costs_its_files_and_nothing_more() {
    let dirs = TempDirs::new();
    let child = dirs
        .dfsio(
            "--files 2 --file-size 384MiB --buffer-size 4KiB --operations write,read --format json",
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = dirs.mount.path().join("eastwest-dfsio/test_io_1");
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
    let shown = report(&dirs, "text");
    assert!(
        shown.contains("warning: 1 test file(s) of n2 may be left"),
        "{shown}"
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
    let dirs = TempDirs::new();
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
        let out = run.arg(dirs.runs.path()).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{words}");
        assert!(text(&out.stderr).contains(problem), "{}", text(&out.stderr));
    }
}

#[test]
fn fan_in_takes_targets_away_one_by_one() {
    let dirs = TempDirs::new();
    let targets = ["a", "b", "c"].map(|name| {
        let path = dirs.mount.path().join(name);
        std::fs::create_dir(&path).unwrap();
        format!("file://{}", path.display())
    });
    let words = "--hosts n[1-3] --fan-in --files 6 --file-size 2MiB";
    let out = dfsio(dirs.runs.path(), "", "")
        .args(["--format", "json"])
        .output();
    assert_eq!(out.unwrap().status.code(), Some(2), "an empty target");
    let mut command = eastwest();
    command
        .args(["run", "dfsio", "--via", "local", "--runs-dir"])
        .arg(dirs.runs.path())
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
    endpoints_have_times(&dirs, steps, &targets);
    for name in ["a", "b", "c"] {
        let left = std::fs::read_dir(dirs.mount.path().join(name)).unwrap();
        assert_eq!(left.count(), 0, "files are left in {name}");
    }
}

/// Of the files and calls of the clients that used each, in every form of the report.
fn endpoints_have_times(dirs: &TempDirs, steps: &[serde_json::Value], targets: &[String]) {
    for form in ["text", "html"] {
        let shown = report(dirs, form);
        assert!(shown.contains("storage node  "), "{shown}");
    }
    let csv = report(dirs, "csv");
    for step in steps.iter().filter(|step| step["operation"] == "read") {
        let nodes = step["times_by_node"]["nodes"].as_array().unwrap();
        let endpoints = step["endpoints"].as_array().unwrap();
        assert_eq!(nodes.len(), endpoints.len(), "{step}");
        let files = |node: &serde_json::Value| node["file_times"]["count"].as_u64().unwrap();
        assert_eq!(nodes.iter().map(files).sum::<u64>(), 6, "{step}");
        for node in nodes {
            assert!(
                targets.iter().any(|target| node["node"] == **target),
                "{node}"
            );
            let calls = node["calls"]["count"].as_u64().unwrap();
            assert!(calls >= 2 * files(node), "2 MiB are two calls: {node}");
        }
    }
    let of_a = format!(",done,{}", targets[0]);
    assert!(csv.lines().any(|line| line.ends_with(&of_a)), "{csv}");
}

/// Storage nodes and clients vary, and the network is measured alone.
fn fan_in_of_both(dirs: &TempDirs) -> Finished {
    let targets = ["a", "b"].map(|name| {
        let path = dirs.mount.path().join(name);
        std::fs::create_dir(&path).unwrap();
        format!("file://{}", path.display())
    });
    let mut command = eastwest();
    command
        .args(["run", "fan-in", "--via", "local", "--runs-dir"])
        .arg(dirs.runs.path())
        .args(["--clients", "n[1-4]", "--servers", "s[1-2]"])
        .args(["--target", &targets.join(","), "--disk"])
        .arg(dirs.mount.path())
        .args(["--storage-nodes", "2,1", "--client-counts", "2,4"])
        .args(["--files", "16", "--file-size", "4MiB", "--format", "json"]);
    for setting in ["duration=200ms", "warm-up=50ms", "gap=50ms"] {
        command.args(["--set", setting]);
    }
    // A machine with other work may cost a round of the network.
    let is_measured = |finished: &Finished| {
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        [0, 2].into_iter().all(|operation| {
            let alone = &finished.json["fan_in"][operation]["alone"];
            let rates = ["client", "node", "network", "disk"];
            let fewer = alone["by_servers"].as_array().map(Vec::len);
            fewer == Some(2) && rates.iter().all(|rate| alone[rate]["value"].is_f64())
        })
    };
    let mut runs = (0..3).map(|_| Finished::of(&command.output().unwrap()));
    runs.find(is_measured).unwrap()
}

#[test]
fn a_fan_in_over_clients_and_storage_nodes_is_sized_and_drawn() {
    let dirs = TempDirs::new();
    let finished = fan_in_of_both(&dirs);
    let fan_ins = finished.json["fan_in"].as_array().unwrap();
    let seen = |fan_in: &serde_json::Value| -> (String, Vec<(u64, u64)>) {
        let points = fan_in["points"].as_array().unwrap().iter();
        let count = |p: &serde_json::Value, key: &str| p[key].as_u64().unwrap();
        let counts = points.map(|p| (count(p, "endpoints"), count(p, "clients")));
        let word = |key: &str| crate::common::word(&fan_in[key]);
        (
            format!("{} {}", word("operation"), word("axis")),
            counts.collect(),
        )
    };
    let seen: Vec<_> = fan_ins.iter().map(seen).collect();
    let (nodes, clients) = (vec![(2, 4), (1, 4)], vec![(2, 4), (2, 2)]);
    let expected = [
        ("write storage-nodes".to_owned(), nodes.clone()),
        ("write clients".to_owned(), clients.clone()),
        ("read storage-nodes".to_owned(), nodes),
        ("read clients".to_owned(), clients),
    ];
    assert_eq!(seen, expected);
    let by_servers = fan_ins[0]["alone"]["by_servers"].as_array().unwrap();
    let servers = by_servers.iter().map(|by| by["servers"].as_u64().unwrap());
    assert_eq!(servers.collect::<Vec<_>>(), [2, 1], "fewer sinks");
    // Two clients have half of the files that four have.
    let steps = finished.json["steps"].as_array().unwrap().iter();
    let of_two = steps.filter(|step| {
        let clients = step["clients"].as_array().unwrap().len();
        step["operation"] == "write" && clients == 2 && step["is_disk_alone"] == false
    });
    let files: Vec<_> = of_two.map(|step| step["files_done"].as_u64()).collect();
    assert_eq!(files, [Some(8)]);
    it_is_drawn(&dirs);
    it_is_sized(&dirs);
}

fn it_is_drawn(dirs: &TempDirs) {
    let page = report(dirs, "html");
    for part in [
        "Write against storage nodes",
        "Read against clients",
        "<strong>Throughput</strong>",
        "<strong>Execution time</strong>",
        "<strong>Client throughput</strong>",
        "<strong>File operations</strong>",
        "2 endpoints, 4 clients",
        "----- TestDFSIO ----- : read",
    ] {
        assert!(page.contains(part), "no `{part}` in the page");
    }
    assert!(!page.contains("http://") && !page.contains("https://"));
    assert!(!page.contains("NaN"));
}

/// Each constraint by itself, as measured alone.
fn it_is_sized(dirs: &TempDirs) {
    let mut size = eastwest();
    size.args(["size", "--data", "1GB", "--within", "1h", "--json"]);
    size.args(["--run", "latest", "--runs-dir"])
        .arg(dirs.runs.path());
    let out = size.output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let needs = document["answer"]["needs"].as_array().unwrap().iter();
    let needs = needs.map(|need| need["constraint"].as_str().unwrap());
    // Without a model that fits there is no figure of the node as a whole.
    let needs: Vec<_> = needs.filter(|need| *need != "node").collect();
    assert_eq!(needs, ["disk", "nic-rx", "nic-tx", "placement"]);
    let question = &document["question"];
    assert!(question["client_bytes_per_sec"].as_f64().unwrap() > 0.0);
    let uplink = ["uplink_bytes_per_sec", "uplink_carried_bytes_per_sec"];
    let known = uplink.iter().filter(|key| question[**key].is_f64());
    assert_eq!(known.count(), 1, "{question}");
}

#[test]
fn settings_of_flows_are_refused_without_flows() {
    let dirs = TempDirs::new();
    let out = dirs.dfsio("--set duration=1s").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("--set"), "{}", text(&out.stderr));
    let out = dirs.dfsio("--fan-in --client-counts 3").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(
        said.contains("--client-counts 3: there are 2 clients"),
        "{said}"
    );
}

/// A file has the same options as the flags, which override it.
#[test]
fn a_scenario_file_with_storage_moves_files() {
    let dirs = TempDirs::new();
    let file = dirs.runs.path().join("job.yaml");
    let target = format!("file://{}", dirs.mount.path().display());
    let job = format!(
        "name: nightly\nroles: {{clients: 'n[1-2]', servers: s1}}\nstorage:\n  target: {target}\n  operations: [write, read]\n  files: 4\n  file-size: 1MiB\n  verify: true\n"
    );
    std::fs::write(&file, job).unwrap();
    let mut command = eastwest();
    command
        .arg("run")
        .arg(&file)
        .args(["--via", "local", "--format", "json"]);
    command
        .args(["--files", "6", "--runs-dir"])
        .arg(dirs.runs.path());
    let finished = Finished::of(&command.output().unwrap());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(finished.json["job"]["verify"], true);
    let steps = finished.json["steps"].as_array().unwrap();
    let operations: Vec<_> = steps
        .iter()
        .map(|s| s["operation"].as_str().unwrap())
        .collect();
    assert_eq!(operations, ["write", "read", "clean"]);
    assert_eq!(
        (&steps[0]["files_done"], &steps[0]["bytes"]),
        (&6.into(), &(6 << 20).into())
    );
    let clients = steps[0]["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 2, "servers move no files");
    assert_eq!(dirs.left(), 0);
    std::fs::write(&file, "name: s\nstorage: {targets: x}\n").unwrap();
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("`targets`"),
        "{}",
        text(&out.stderr)
    );
}
