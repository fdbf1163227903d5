//! What leaves the controller: `--webhook` and `--remote-write`, while a run goes on and after it,
//! and the log of a container.

use crate::common::{Finished, can_run_labs, eastwest};
use crate::metrics::{Prometheus, can_run_prometheus};
use crate::sequel::{PATIENCE, Received, pair, read_request};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Takes requests until one of them is the last, and answers each; the first is never answered
/// where it stalls.
fn webhook(stalls: bool) -> (SocketAddr, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let mut stalled: Vec<TcpStream> = Vec::new();
        let mut bodies = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            if stalls && stalled.is_empty() {
                stalled.push(stream);
                continue;
            }
            let Received { head, body } = read_request(&mut stream);
            assert!(
                head.starts_with("POST /hook?key=secret HTTP/1.1\r\n"),
                "{head}"
            );
            assert!(
                head.to_lowercase().contains("authorization: bearer t0ken"),
                "{head}"
            );
            let answer =
                "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            let body: Value = serde_json::from_str(&body).unwrap();
            let is_last = body["kind"] == "finished";
            bodies.push(body);
            if is_last {
                return bodies;
            }
        }
    });
    (address, thread)
}

#[test]
fn progress_and_findings_are_sent_to_a_webhook() {
    let runs = tempfile::tempdir().unwrap();
    let (address, bodies) = webhook(false);
    let url = format!("http://{address}/hook?key=secret");
    let finished = Finished::of(&pair(&runs, "rate=20M", "samples=2", &["--webhook", &url]));
    assert!(
        !finished.stderr.contains("did not arrive"),
        "{}",
        finished.stderr
    );
    let bodies = bodies.join().unwrap();
    let (first, last) = (&bodies[0], &bodies[bodies.len() - 1]);
    assert!(
        bodies.len() >= 2 && first["kind"] == "progress",
        "{bodies:#?}"
    );
    assert_eq!(last["exit_code"], finished.code);
    assert_eq!(
        last["verdict"]["findings"],
        finished.json["verdict"]["findings"]
    );
    assert_eq!(last["run_id"], finished.json["run"]["id"]);
}

#[test]
fn a_webhook_that_stalls_or_is_gone_is_a_warning_without_its_secret() {
    let runs = tempfile::tempdir().unwrap();
    let (address, bodies) = webhook(true);
    let url = format!("http://{address}/hook?key=secret");
    let finished = Finished::of(&pair(&runs, "rate=20M", "samples=1", &["--webhook", &url]));
    let last = bodies.join().unwrap();
    assert_eq!(last.last().unwrap()["kind"], "finished");
    let warning = |stderr: &str| {
        let mut lines = stderr.lines();
        let line = lines.find(|line| line.contains("did not arrive"));
        line.unwrap_or_else(|| panic!("{stderr}")).to_owned()
    };
    let said = warning(&finished.stderr);
    assert!(
        said.contains(&format!("--webhook http://{address}: 1 of")),
        "{said}"
    );
    assert!(!finished.stderr.contains("secret"), "{}", finished.stderr);
    // The listener is gone now.
    let finished = Finished::of(&pair(&runs, "rate=20M", "samples=1", &["--webhook", &url]));
    assert!(warning(&finished.stderr).contains(&address.to_string()));
    assert!(matches!(finished.code, 0 | 1 | 3), "{}", finished.stderr);
    let wrong = pair(
        &runs,
        "rate=20M",
        "samples=1",
        &["--remote-write", "prometheus:9090"],
    );
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_real_prometheus_takes_a_run_by_remote_write() {
    if !can_run_prometheus() {
        return;
    }
    let prometheus = Prometheus::receiving();
    let runs = tempfile::tempdir().unwrap();
    let url = format!("http://{}/api/v1/write", prometheus.address);
    let finished = Finished::of(&pair(
        &runs,
        "rate=20M",
        "samples=2",
        &["--remote-write", &url],
    ));
    assert!(
        !finished.stderr.contains("did not arrive"),
        "{}",
        finished.stderr
    );
    let value = |query: &str| -> Option<f64> {
        let found = prometheus.query(query);
        let sample = found.first()?["value"][1].as_str().map(str::to_owned);
        sample?.parse().ok()
    };
    let code = value("eastwest_result_exit_code{job=\"eastwest\",scenario=\"pair\"}");
    assert_eq!(code, Some(f64::from(finished.code)));
    let goodput = value("eastwest_result_stage_flow_goodput_bytes_per_second{stage=\"forward\"}");
    assert!((1.0e6..2.8e6).contains(&goodput.unwrap()), "{goodput:?}");
    let hosts =
        prometheus.query("eastwest_host_flow_payload_bytes_total{host=\"n1\",direction=\"tx\"}");
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    // Sent while it went on, and ended with it: what was true of a moment is no more.
    let sent = value("count_over_time(eastwest_run_info{scenario=\"pair\"}[5m])");
    assert!(sent.unwrap() >= 2.0, "{sent:?}");
    assert_eq!(value("eastwest_run_time_left_seconds"), None);
    // What needs no agent sends its results, too.
    let refused = eastwest()
        .args(["run", "dfsio", "--webhook", &url])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// Its runtime takes what a container's first process has written only for 2 s after its end.
#[test]
fn the_first_process_of_a_container_ends_when_its_log_is_read() {
    if !can_run_labs() {
        return;
    }
    let mut container = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child"])
        .args([env!("CARGO_BIN_EXE_eastwest"), "kubernetes", "rbac"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = container.stdout.take().unwrap();
    let mut text = vec![0];
    log.read_exact(&mut text).unwrap();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(container.try_wait().unwrap(), None);
    log.read_to_end(&mut text).unwrap();
    assert!(container.wait().unwrap().success());
    assert!(text.ends_with(b"name: \"eastwest\"}]\n"), "{text:?}");
}
