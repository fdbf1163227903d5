//! What follows a run: a push to a Pushgateway, and the comparison with the run before.

use crate::common::{Finished, eastwest};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A request as it came.
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn pair(runs: &TempDir, rate: &str, samples: &str, args: &[&str]) -> Output {
    let mut command: Command = eastwest();
    command
        .args(["run", "pair", "--fleet", "local", "--hosts", "n[1-2]"])
        .args(["--format", "json", "--seed", "7", "--quiet"])
        .args(["--set", "duration=300ms", "--set", "warm-up=100ms"])
        .args(["--set", "gap=100ms", "--set", rate, "--set", samples])
        .args(args)
        .env("EASTWEST_PUSH_AUTHORIZATION", "Bearer t0ken");
    command.arg("--runs-dir").arg(runs.path()).output().unwrap()
}

/// Takes one request, answers it, and gives it back.
fn gateway(answer: &'static str) -> (SocketAddr, JoinHandle<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let received = read_request(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
        received
    });
    (address, thread)
}

pub(crate) fn read_request(stream: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            if length.is_some_and(|length: usize| body.len() >= length) {
                let (head, body) = (head.to_owned(), body.to_owned());
                return Received { head, body };
            }
        }
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "cut off after {text}");
        bytes.extend_from_slice(&part[..read]);
    }
}

#[test]
fn a_run_is_pushed_with_its_results() {
    let runs = tempfile::tempdir().unwrap();
    let (address, request) = gateway("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    let url = format!("http://{address}/base/");
    let finished = Finished::of(&pair(&runs, "rate=20M", "samples=2", &["--push", &url]));
    let Received { head, body } = request.join().unwrap();
    assert!(
        !finished.stderr.contains("not pushed"),
        "{}",
        finished.stderr
    );
    let line = "PUT /base/metrics/job/eastwest/scenario/pair HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains("Bearer t0ken"), "{head}");
    let code = format!("eastwest_result_exit_code {}\n", finished.code);
    let goodput = "eastwest_result_stage_flow_goodput_bytes_per_second{stage=\"forward\",workload=\"tcp-stream\"} ";
    let sample = body.lines().find_map(|line| line.strip_prefix(goodput));
    let bytes_per_sec: f64 = sample.unwrap_or_else(|| panic!("{body}")).parse().unwrap();
    assert!((1.0e6..2.8e6).contains(&bytes_per_sec), "{bytes_per_sec}");
    for part in [
        code.as_str(),
        "eastwest_run_info{",
        "eastwest_host_flow_payload_bytes_total{",
    ] {
        assert!(body.contains(part), "no {part} in {body}");
    }
    assert!(!body.contains("eastwest_run_time_left_seconds"), "{body}");
}

#[test]
fn a_failed_push_is_a_warning_with_the_reason() {
    let runs = tempfile::tempdir().unwrap();
    let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 12\r\n\r\nno such job\n";
    let (address, request) = gateway(refusal);
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (address, reason) in [(address, "no such job"), (closed, "refused")] {
        let url = format!("http://{address}");
        let finished = Finished::of(&pair(&runs, "rate=20M", "samples=1", &["--push", &url]));
        assert!(matches!(finished.code, 0 | 3), "{}", finished.stderr);
        let warning = finished
            .stderr
            .lines()
            .find(|line| line.contains("not pushed"));
        let warning = warning.unwrap_or_else(|| panic!("{}", finished.stderr));
        assert!(
            warning.contains(&url) && warning.contains(reason),
            "{warning}"
        );
    }
    request.join().unwrap();
    let wrong = pair(
        &runs,
        "rate=20M",
        "samples=1",
        &["--push", "ftp://push.example"],
    );
    assert_eq!(wrong.status.code(), Some(2));
}

/// A run that is complete: on a busy machine rounds may be lost, and what is partial is no bar for
/// others.
fn complete_pair(runs: &TempDir, rate: &str) -> Finished {
    let judged = ["--compare-with", "last", "--threshold", "20%"];
    let tries = std::iter::repeat_with(|| Finished::of(&pair(runs, rate, "samples=8", &judged)));
    let found = tries.take(6).find(|finished| finished.code != 3);
    found.expect("six runs were partial")
}

#[test]
fn a_regression_against_the_last_run_fails() {
    let runs = tempfile::tempdir().unwrap();
    let first = complete_pair(&runs, "rate=20M");
    let words = "no complete run of `pair`";
    assert!(first.stderr.contains(words), "{}", first.stderr);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let same = complete_pair(&runs, "rate=20M");
    assert_eq!(same.code, 0, "{}", same.stderr);
    let slower = complete_pair(&runs, "rate=10M");
    assert_eq!(slower.code, 1, "{}", slower.stderr);
    assert!(slower.stderr.contains("Different"), "{}", slower.stderr);
}

#[test]
fn formats_of_k8s_netperf_are_refused_without_pods() {
    let runs = tempfile::tempdir().unwrap();
    let run = Finished::of(&pair(&runs, "rate=20M", "samples=1", &[]));
    assert!(matches!(run.code, 0 | 3), "{}", run.stderr);
    let pods = ["--format", "k8s-netperf-json", "--runs-dir"];
    for command in [&["run", "pair"][..], &["report"]] {
        let refused = eastwest()
            .args(command)
            .args(pods)
            .arg(runs.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains("`pair`") && stderr.contains("run pods"),
            "{stderr}"
        );
    }
}
