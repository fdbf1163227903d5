//! `run --metrics`, scraped by a real Prometheus, and asked by clients that mean no good.

use crate::common::{TestLab, can_run_labs, eastwest, has_tool, kill, text, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(120);
/// Begins of the metrics that some kernels and containers do not report (pressure, quota, disks),
/// and of those that only runs of files have.
const ABSENT_ON_SOME: [&str; 4] = [
    "eastwest_storage_",
    "eastwest_host_pressure_",
    "eastwest_agent_cgroup_",
    "eastwest_host_disk_",
];

/// A run with metrics at a port of the kernel's choice; it is interrupted when the test is done
/// with it.
struct ServedRun {
    child: Child,
    address: SocketAddr,
    stderr: BufReader<ChildStderr>,
}

impl ServedRun {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .args(["--metrics", "127.0.0.1:0", "--live", "lines"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = (&mut stderr).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let rest = line.strip_prefix("metrics: http://")?;
            rest.strip_suffix("/metrics").map(str::to_owned)
        });
        let address = address.expect("an address");
        Self {
            child,
            address: address.parse().unwrap(),
            stderr,
        }
    }

    /// On loopback, a minute or so of rounds.
    fn on_loopback(runs: &TempDir) -> Self {
        let mut command = eastwest();
        command
            .args(["run", "mesh", "--fleet", "local", "--hosts", "n[1-3]"])
            .args(["--set", "duration=300ms", "--set", "samples=60"])
            .arg("--runs-dir")
            .arg(runs.path());
        Self::start(command)
    }

    fn page(&self) -> String {
        get(self.address, "/metrics").1
    }

    fn wait_for_a_round(&self) {
        wait_for("a round's figures", PATIENCE, || {
            self.page()
                .contains("eastwest_host_goodput_bytes_per_second{")
        });
    }

    fn interrupt(mut self) -> SocketAddr {
        kill("-INT", self.child.id());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{rest}");
        self.address
    }
}

pub(crate) struct Prometheus {
    child: Child,
    pub(crate) address: SocketAddr,
    _work: TempDir,
}

impl Prometheus {
    fn scraping(target: SocketAddr) -> Self {
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n\
             - job_name: eastwest\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        Self::start(&config, &[])
    }

    /// It scrapes nothing, and takes what is written to it.
    pub(crate) fn receiving() -> Self {
        Self::start("", &["--web.enable-remote-write-receiver"])
    }

    fn start(scrape: &str, args: &[&str]) -> Self {
        let work = tempfile::tempdir().unwrap();
        let config = work.path().join("prometheus.yml");
        std::fs::write(&config, scrape).unwrap();
        // Free a moment ago; nobody else is given it by chance.
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                work.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(work.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let prometheus = Self {
            child,
            address,
            _work: work,
        };
        wait_for("Prometheus", PATIENCE, || {
            try_get(address, "/-/ready").is_some_and(|(status, _)| status == 200)
        });
        prometheus
    }

    /// What a panel, an annotation or a variable of the dashboard gets.
    fn panel(&self, expression: &str) -> Vec<Value> {
        if expression.starts_with("label_values") {
            return self.label_values(expression);
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let (query, start) = (url_encoded(expression), now - 60);
        let path = format!("/api/v1/query_range?query={query}&start={start}&end={now}&step=5");
        self.data(&path, expression)["result"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// The samples an expression gives now.
    pub(crate) fn query(&self, expression: &str) -> Vec<Value> {
        let path = format!("/api/v1/query?query={}", url_encoded(expression));
        self.data(&path, expression)["result"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// What `label_values(METRIC, LABEL)` of the dashboard gives.
    fn label_values(&self, definition: &str) -> Vec<Value> {
        let inner = definition.strip_prefix("label_values(").unwrap();
        let (metric, label) = inner.trim_end_matches(')').split_once(", ").unwrap();
        let path = format!("/api/v1/label/{label}/values?match[]={metric}");
        self.data(&path, definition).as_array().unwrap().clone()
    }

    fn data(&self, path: &str, asked: &str) -> Value {
        let (status, body) = get(self.address, path);
        assert_eq!(status, 200, "{asked}: {body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["status"], "success", "{asked}: {body}");
        answer["data"].clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only when it is over and reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints why not. In CI a test that cannot run is a failure.
pub(crate) fn can_run_prometheus() -> bool {
    let is_here = has_tool("prometheus") && has_tool("promtool");
    assert!(
        is_here || std::env::var_os("CI").is_none(),
        "prometheus is missing in CI: scripts/setup.sh installs it"
    );
    if !is_here {
        println!("skipped: no prometheus here");
    }
    is_here
}

#[test]
fn a_real_prometheus_scrapes_a_run_and_the_dashboard_has_data() {
    if !can_run_labs() || !can_run_prometheus() {
        return;
    }
    let lab = TestLab::up("racks: 2\nhosts-per-rack: 2\nnic: 100M\noversubscription: 1\n");
    let mut command = lab.run_command("mesh");
    command.args(["--set", "duration=500ms", "--set", "samples=100"]);
    let run = ServedRun::start(command);
    let prometheus = Prometheus::scraping(run.address);

    wait_for("up == 1", PATIENCE, || {
        prometheus.query("up == 1").len() == 1
    });
    run.wait_for_a_round();
    check_with_promtool(&run.page());
    let exposed: BTreeSet<String> = names(&run.page());
    for expression in dashboard(".*") {
        let asked = names(&expression);
        let untold: Vec<&String> = asked.difference(&exposed).collect();
        if untold.is_empty() {
            wait_for(&expression, PATIENCE, || {
                assert!(prometheus.query("up == 0").is_empty(), "the run has ended");
                !prometheus.panel(&expression).is_empty()
            });
        } else {
            println!("not exported here: {expression}");
            let may_be_absent = |name: &&String| ABSENT_ON_SOME.iter().any(|p| name.starts_with(p));
            assert!(untold.iter().all(may_be_absent), "{untold:?}");
            prometheus.panel(&expression);
        }
    }
    // Two hosts chosen, as Grafana puts them into an expression.
    let chosen = dashboard("(r1h1|r2h2)").into_iter();
    let panels = chosen.filter(|expression| !expression.starts_with("label_values"));
    let series = panels.flat_map(|expression| prometheus.panel(&expression));
    let shown: BTreeSet<String> = series
        .map(|series| crate::common::word(&series["metric"]["host"]))
        .collect();
    // Series of the run as a whole have no host.
    assert_eq!(shown, ["", "r1h1", "r2h2"].map(String::from).into());
    let received = "eastwest_host_network_receive_bytes_total{rack=~\"r[12]\"}";
    let hosts: BTreeSet<String> = prometheus
        .query(received)
        .iter()
        .map(|sample| crate::common::word(&sample["metric"]["host"]))
        .collect();
    assert_eq!(Vec::from_iter(hosts), ["r1h1", "r1h2", "r2h1", "r2h2"]);
    run.interrupt();
}

#[test]
fn a_real_prometheus_scrapes_a_storage_run() {
    if !can_run_prometheus() {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let targets = ["a", "b"].map(|name| {
        let path = work.path().join(name);
        std::fs::create_dir(&path).unwrap();
        format!("file://{}", path.display())
    });
    let mut command = eastwest();
    command
        .args(["run", "dfsio", "--via", "local", "--hosts", "n[1-2]"])
        .args(["--target", &targets.join(","), "--file-size", "1MiB"])
        .args(["--operations", &["write,read"; 300].join(",")])
        .arg("--runs-dir")
        .arg(work.path().join("runs"));
    let run = ServedRun::start(command);
    let prometheus = Prometheus::scraping(run.address);
    let read = "eastwest_storage_bytes_total{operation=\"read\"} > 0";
    wait_for(read, PATIENCE, || prometheus.query(read).len() == 1);
    check_with_promtool(&run.page());
    let all = dashboard(".*").into_iter();
    let storage: Vec<String> = all.filter(|e| e.contains("eastwest_storage_")).collect();
    assert!(storage.len() >= 8, "{storage:?}");
    for expression in storage {
        // Of HDFS only.
        let has_data = !expression.contains("eastwest_storage_hdfs_");
        wait_for(&expression, PATIENCE, || {
            assert!(prometheus.query("up == 0").is_empty(), "the run has ended");
            prometheus.panel(&expression).is_empty() != has_data
        });
    }
    run.interrupt();
}

#[test]
fn only_two_pages_are_served_and_only_while_the_run_lasts() {
    let runs = tempfile::tempdir().unwrap();
    let run = ServedRun::on_loopback(&runs);
    run.wait_for_a_round();
    let page = run.page();
    assert!(page.contains("eastwest_run_info{run=\"20"), "{page}");
    assert!(page.contains("eastwest_host_up{host=\"n3\"} 1"), "{page}");

    let (status, front) = get(run.address, "/");
    assert!(status == 200 && front.contains("/metrics"), "{front}");
    assert_eq!(get(run.address, "/metrics/../../etc/passwd").0, 404);
    assert_eq!(get(run.address, "/debug").0, 404);
    let (status, head) = ask(run.address, "HEAD /metrics HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((status, head.as_str()), (200, ""));
    let post = "POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(ask(run.address, post).unwrap().0, 405);

    let address = run.interrupt();
    assert!(try_get(address, "/metrics").is_none(), "still served");
}

#[test]
fn idle_and_hostile_clients_hold_up_nobody() {
    let runs = tempfile::tempdir().unwrap();
    let run = ServedRun::on_loopback(&runs);
    // More than are served at once, and none of them ever asks for anything.
    let idle: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(run.address).unwrap())
        .collect();
    let long = format!(
        "GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    if let Some((status, _)) = ask(run.address, &long) {
        assert!((400..500).contains(&status), "{status}");
    }
    if let Some((status, _)) = ask(run.address, "\0\x16\x03\x01 nonsense\r\n\r\n") {
        assert_eq!(status, 400);
    }
    run.wait_for_a_round();
    drop(idle);
    run.interrupt();
}

#[test]
fn an_address_that_cannot_be_had_is_code_2_before_anything_starts() {
    let runs = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let cases = [
        (taken.as_str(), "in use"),
        ("192.0.2.1:9464", "192.0.2.1:9464"),
        ("localhost:9464", "127.0.0.1:9464"),
        ("9464", "127.0.0.1:9464"),
    ];
    for (address, expected) in cases {
        let out = eastwest()
            .args(["run", "pair", "--fleet", "local", "--hosts", "n[1-2]"])
            .args(["--metrics", address, "--runs-dir"])
            .arg(runs.path())
            .output()
            .unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{address}: {stderr}");
        assert!(stderr.contains(expected), "{address}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(runs.path()).unwrap().count(), 0);
}

/// Every expression of the dashboard, filled in as Grafana does: all runs, and the rate's interval
/// of a data source whose scrape interval nobody set (four times 15 s).
fn dashboard(hosts: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/eastwest.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
        found.extend(annotation["expr"].as_str().map(str::to_owned));
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        found.extend(variable["definition"].as_str().map(str::to_owned));
    }
    assert!(found.len() > 30, "{}", found.len());
    let filled = found.iter().map(|expression| {
        let expression = expression.replace("$__rate_interval", "1m0s");
        expression.replace("$host", hosts).replace("$run", ".*")
    });
    let filled: Vec<String> = filled.collect();
    assert!(!filled.iter().any(|one| one.contains('$')), "{filled:#?}");
    filled
}

fn names(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word(c));
    let names = words.filter(|word| word.starts_with("eastwest_"));
    names.map(str::to_owned).collect()
}

fn check_with_promtool(page: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = promtool.stdin.take().unwrap();
    stdin.write_all(page.as_bytes()).unwrap();
    drop(stdin);
    let out = promtool.wait_with_output().unwrap();
    let said = text(&out.stdout) + &text(&out.stderr);
    assert!(out.status.success() && said.is_empty(), "{said}\n{page}");
}

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    try_get(address, path).unwrap_or_else(|| panic!("no answer from {address}{path}"))
}

fn try_get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    ask(address, &format!("GET {path} HTTP/1.0\r\n\r\n"))
}

/// Status and body. `None` when nobody answers.
fn ask(address: SocketAddr, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Who refuses a request may close before it has come whole.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = text(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

fn url_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
