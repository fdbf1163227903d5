//! `eastwest iperf3` as people and scripts use it, on loopback, without the stock one (ew-iperf3's
//! tests have that).

use crate::common::{eastwest, kill, text, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a port of its own, ended with the test.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start(flags: &[&str]) -> Self {
        let child = eastwest()
            .args(["iperf3", "-s", "-p", "0"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self {
            child,
            port: String::new(),
        };
        let out = BufReader::new(server.child.stdout.take().unwrap());
        let banner = out.lines().map_while(Result::ok).nth(1).unwrap();
        server.port = banner.split(' ').nth(3).unwrap().to_owned();
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_prints_iperf3s_lines_and_its_document() {
    let server = Server::start(&[]);
    let ask = |flags: &[&str]| {
        let mut client = eastwest();
        client.args(["iperf3", "-c", "127.0.0.1", "-p", &server.port, "-n", "1M"]);
        client.args(flags).output().unwrap()
    };
    let reverse = ask(&["-R"]);
    assert!(text(&reverse.stdout).contains("Reverse mode, remote host 127.0.0.1 is sending"));
    let lines = ask(&[]);
    assert!(lines.status.success(), "{}", text(&lines.stderr));
    let lines = text(&lines.stdout);
    assert!(
        lines.contains("sec  1.00 MBytes ") && lines.contains("  receiver\n"),
        "{lines}"
    );
    assert!(lines.ends_with("\niperf Done.\n"), "{lines}");
    let document: Value = serde_json::from_slice(&ask(&["-J"]).stdout).unwrap();
    assert_eq!(document["end"]["sum_received"]["bytes"], 1024 * 1024);
}

#[test]
fn a_server_in_the_background_is_found_by_its_file_and_streams_of_json_are_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let port = free_port();
    let started = eastwest()
        .args(["iperf3", "-sD", "-p", &port, "-I"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(started.status.success(), "{}", text(&started.stderr));
    wait_for("the process id", PATIENCE, || {
        std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let taken = eastwest()
        .args(["iperf3", "-sD", "-p", &port])
        .output()
        .unwrap();
    assert_eq!(taken.status.code(), Some(4), "{}", text(&taken.stderr));
    let out = eastwest()
        .args([
            "iperf3",
            "-c",
            "127.0.0.1",
            "-p",
            &port,
            "-t",
            "2",
            "--json-stream",
        ])
        .output()
        .unwrap();
    let lines = text(&out.stdout);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert_eq!(
        (of("start"), of("end"), of("error")),
        (1, 1, 0),
        "{lines:?}"
    );
    assert!(of("interval") >= 2, "{lines:?}");
    let last = &lines[lines.len() - 1]["data"];
    assert!(
        last["sum_received"]["bytes"].as_u64().unwrap() > 0,
        "{last}"
    );
    let pid = std::fs::read_to_string(&file).unwrap();
    kill("-TERM", pid.trim().parse().unwrap());
    wait_for("the end of the server", PATIENCE, || !file.exists());
}

fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

#[test]
fn failures_are_documents_with_j_and_words_without() {
    let ask = |flags: &[&str]| {
        let mut client = eastwest();
        client.args(["iperf3", "-c", "127.0.0.1", "-p", "1"]);
        client.args(flags).output().unwrap()
    };
    for (flags, code, words) in [
        (
            &["-J"][..],
            4,
            "unable to connect to server: Connection refused",
        ),
        (&["-uJ", "-l", "1"], 2, "block size must be from 16"),
        (&["-J", "-t", "1", "-n", "1"], 2, "cannot be used with"),
        (&["--json", "-S", "300"], 2, "300"),
    ] {
        let output = ask(flags);
        assert_eq!(output.status.code(), Some(code), "{flags:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = document["error"].as_str().unwrap();
        assert!(error.contains(words), "{flags:?}: {error}");
    }
    let output = ask(&[]);
    assert_eq!(output.status.code(), Some(4));
    let words = text(&output.stderr);
    assert!(
        words.starts_with("error: unable to connect to server"),
        "{words}"
    );
}

#[test]
fn a_server_for_one_client_ends_with_a_document() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut server = Server::start(&["-1", "--logfile", "/dev/stdout"]);
    let client = eastwest()
        .args([
            "iperf3",
            "-c",
            "127.0.0.1",
            "-p",
            &server.port,
            "-u",
            "-n",
            "100K",
        ])
        .arg("--logfile")
        .arg(log.path())
        .output()
        .unwrap();
    assert!(client.status.success(), "{}", text(&client.stderr));
    assert!(
        std::fs::read_to_string(log.path())
            .unwrap()
            .contains("Lost/Total")
    );
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
