//! `run --web`: a run as it goes, for whoever has the token, and for nobody else.

use crate::common::{eastwest, kill, text, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A run with a live page; it is killed with the test.
struct Shown {
    child: Child,
    address: SocketAddr,
    /// `/TOKEN`.
    base: String,
    stderr: BufReader<ChildStderr>,
    runs: TempDir,
}

impl Shown {
    fn start(samples: &str) -> Self {
        let runs = tempfile::tempdir().unwrap();
        let mut command: Command = eastwest();
        command
            .args(["run", "mesh", "--fleet", "local", "--hosts", "n[1-3]"])
            .args(["--set", "duration=300ms", "--set", samples, "--seed", "7"])
            .args(["--web", "--live", "lines", "--format", "json"])
            .arg("--runs-dir")
            .arg(runs.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let (address, base) = parts(line.trim().strip_prefix("live page: ").unwrap());
        Self {
            child,
            address,
            base,
            stderr,
            runs,
        }
    }

    fn get(&self, page: &str) -> (u16, String) {
        get(self.address, &format!("{}/{page}", self.base))
    }

    fn state(&self, page: &str) -> Value {
        let (status, body) = self.get(page);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn rounds_done(&self) -> u64 {
        self.state("state")["rounds_done"].as_u64().unwrap()
    }

    fn wait_for_rounds(&self, count: u64) {
        wait_for("rounds", PATIENCE, || self.rounds_done() >= count);
    }

    /// Rounds that the run has written to its record.
    fn rounds_recorded(&self) -> u64 {
        let mut dirs = std::fs::read_dir(self.runs.path()).unwrap();
        let events: PathBuf = dirs.next().unwrap().unwrap().path().join("events.jsonl");
        let events = std::fs::read_to_string(events).unwrap();
        events.matches("\"type\":\"round-finished\"").count() as u64
    }

    /// How it ends, and the rest of what it printed.
    fn interrupt(mut self) -> (i32, String) {
        kill("-INT", self.child.id());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // Both fail only when it is over and reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Address and `/TOKEN` of `http://ADDRESS/TOKEN/`.
pub(crate) fn parts(url: &str) -> (SocketAddr, String) {
    let rest = url
        .strip_prefix("http://")
        .unwrap_or_else(|| panic!("no address in `{url}`"));
    let (address, token) = rest.trim_end_matches('/').split_once('/').unwrap();
    assert!(
        token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()),
        "{token}"
    );
    (address.parse().unwrap(), format!("/{token}"))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, &format!("GET {path} HTTP/1.0\r\n\r\n")).expect("no answer")
}

/// Status and body. `None` when nobody answers.
fn ask(address: SocketAddr, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = text(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[test]
fn a_run_is_shown_as_it_goes_and_only_with_its_token() {
    let run = Shown::start("samples=60");
    let news = TcpStream::connect(run.address).unwrap();
    news.set_read_timeout(Some(PATIENCE)).unwrap();
    let asked = format!("GET {}/news HTTP/1.1\r\nHost: localhost\r\n\r\n", run.base);
    (&news).write_all(asked.as_bytes()).unwrap();
    run.wait_for_rounds(2);

    // What has ended is there within 2 s of its end, without a reload of anything.
    let ended = run.rounds_recorded();
    let since = Instant::now();
    while run.rounds_done() < ended {
        assert!(since.elapsed() < Duration::from_secs(2), "{ended} rounds");
    }
    // Who comes only now sees all of it, and a report of it.
    let state = run.state("state");
    let rounds = state["rounds"].as_array().unwrap();
    assert_eq!(rounds.len() as u64, state["rounds_done"].as_u64().unwrap());
    assert!(
        rounds[0]["bits_per_sec"].as_f64().unwrap() > 0.0,
        "{state:#}"
    );
    assert!(
        state["status"].as_str().unwrap().contains("mesh"),
        "{state:#}"
    );
    assert!(state["host_rows"].is_null());
    let (status, page) = run.get("");
    assert!(
        status == 200 && page.contains("connect-src 'self'"),
        "{page}"
    );
    let (status, report) = run.get("report");
    assert!(
        status == 200 && report.contains("id=\"findings\""),
        "{report}"
    );
    let hosts = run.state("state?hosts");
    let names = hosts["host_rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["n1", "n2", "n3"]);

    let mut lines = BufReader::new(news).lines();
    let told = lines
        .by_ref()
        .filter(|line| line.as_ref().unwrap().starts_with("data: "));
    assert_eq!(told.take(2).count(), 2, "no news");

    check_strangers(&run);
    let (code, rest) = run.interrupt();
    assert_eq!(code, 130, "{rest}");
}

/// Nothing is shown to who has no token, to another site's name, or to what only reads are not.
fn check_strangers(run: &Shown) {
    let id = run.state("state")["run_id"].as_str().unwrap().to_owned();
    let wrong = format!("/{}", "0".repeat(32));
    for base in ["", &wrong, &run.base[..20], &format!("{}0", run.base)] {
        for page in ["/", "/state", "/news", "/report", "/metrics"] {
            let (status, body) = get(run.address, &format!("{base}{page}"));
            assert_eq!(status, 404, "{base}{page}: {body}");
            assert!(
                !body.contains(&id) && body.len() < 200,
                "{base}{page}: {body}"
            );
        }
    }
    let foreign = format!(
        "GET {}/state HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        run.base
    );
    assert_eq!(ask(run.address, &foreign).unwrap().0, 403);
    let post = format!(
        "POST {}/state HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
        run.base
    );
    assert_eq!(ask(run.address, &post).unwrap().0, 405);
    assert_eq!(run.get("../../etc/passwd").0, 404);
}

#[test]
fn a_stalled_browser_holds_up_nobody() {
    let run = Shown::start("samples=60");
    let stalled = |page: &str| {
        let mut stream = TcpStream::connect(run.address).unwrap();
        let asked = format!(
            "GET {}/{page} HTTP/1.1\r\nHost: localhost\r\n\r\n",
            run.base
        );
        stream.write_all(asked.as_bytes()).unwrap();
        stream
    };
    // More streams than are kept, pages that nobody reads, and connections that ask for nothing.
    let mut open: Vec<TcpStream> = (0..12).map(|_| stalled("news")).collect();
    open.extend((0..4).map(|_| stalled("report")));
    open.extend((0..30).map(|_| TcpStream::connect(run.address).unwrap()));
    run.wait_for_rounds(1);
    let before = run.rounds_done();
    run.wait_for_rounds(before + 3);
    drop(open);
    let (code, rest) = run.interrupt();
    assert_eq!(code, 130, "{rest}");
}

#[test]
fn the_page_stays_with_the_final_report_until_it_is_ended() {
    let run = Shown::start("samples=1");
    wait_for("the run's end", PATIENCE, || {
        run.state("state")["over"] == true
    });
    let page = || {
        std::fs::read_dir(run.runs.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    wait_for("the report", PATIENCE, || {
        page().join("report.html").exists()
    });
    let (status, report) = run.get("report");
    assert_eq!(status, 200);
    let written = std::fs::read_to_string(page().join("report.html")).unwrap();
    assert_eq!(report, written);
    let state = run.state("state");
    assert!(
        state["status"].as_str().unwrap().starts_with("over"),
        "{state:#}"
    );
    // A line is printed once it waits; before, a signal would be that of a run.
    let (address, base) = (run.address, run.base.clone());
    let mut run = run;
    let mut line = String::new();
    while !line.contains("Ctrl-C ends the page") {
        line.clear();
        assert!(
            run.stderr.read_line(&mut line).unwrap() > 0,
            "it ended by itself"
        );
    }
    let (code, rest) = run.interrupt();
    assert!(matches!(code, 0 | 1 | 3), "{code}: {rest}");
    assert!(
        ask(address, &format!("GET {base}/ HTTP/1.0\r\n\r\n")).is_none(),
        "still served"
    );
}
