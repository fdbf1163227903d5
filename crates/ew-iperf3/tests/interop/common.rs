//! Our ends and theirs, started and ended by guards.

use ew_iperf3::report::{Event, Observer, Report};
use ew_iperf3::server::{ServerOptions, Watcher};
use ew_iperf3::wire::params::Params;
use ew_iperf3::{ClientOptions, EndOptions, Error, Route, Server, run_client};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing here takes as long as this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether to go on; prints why not.
pub(crate) fn iperf3_is_there() -> bool {
    let found = Command::new("iperf3").arg("--version").output().is_ok();
    assert!(
        found || std::env::var_os("CI").is_none(),
        "iperf3 must be installed in CI"
    );
    if !found {
        println!("skipped: iperf3 is not installed (scripts/setup.sh installs it)");
    }
    found
}

/// Our server on a port of its own.
pub(crate) struct OurServer {
    pub(crate) address: SocketAddr,
    pub(crate) reports: Arc<Mutex<Vec<Report>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

#[derive(Clone)]
struct Collect {
    reports: Arc<Mutex<Vec<Report>>>,
}

struct CollectOne {
    index: usize,
    reports: Arc<Mutex<Vec<Report>>>,
}

impl Watcher for Collect {
    fn session(&self, _number: u64) -> Box<dyn Observer> {
        let mut reports = self.reports.lock().unwrap();
        reports.push(Report::default());
        Box::new(CollectOne {
            index: reports.len() - 1,
            reports: Arc::clone(&self.reports),
        })
    }
}

impl Observer for CollectOne {
    fn observe(&mut self, event: &Event) {
        self.reports.lock().unwrap()[self.index].observe(event);
    }
}

impl OurServer {
    pub(crate) fn start() -> Self {
        Self::start_with((Ipv4Addr::LOCALHOST, 0).into(), ServerOptions::default())
    }

    pub(crate) fn start_with(address: SocketAddr, options: ServerOptions) -> Self {
        let reports = Arc::default();
        let watcher = Collect {
            reports: Arc::clone(&reports),
        };
        let options = ServerOptions {
            interval_ms: 1000,
            watcher: Some(Box::new(watcher)),
            ..options
        };
        let server = Server::bind(address, options).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        Self {
            address: server.local_addr(),
            reports,
            stop,
            thread: Some(std::thread::spawn(move || server.run(&flag))),
        }
    }

    /// The only client's report, once it is over.
    pub(crate) fn report(&self) -> Report {
        let is_over = |report: &Report| report.ended.is_some() || report.error.is_some();
        wait_for("the server's report", || {
            let reports = self.reports.lock().unwrap();
            reports.first().filter(|report| is_over(report)).cloned()
        })
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// A control or data connection of a client that speaks for itself.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Drop for OurServer {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

/// iperf3 as a server.
pub(crate) struct TheirServer {
    port: u16,
    child: Child,
}

impl TheirServer {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let port = free_port();
        let child = Command::new("iperf3")
            .args(["-s", "-p", &port.to_string()])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { port, child }
    }
}

impl TheirServer {
    /// Where it listens, once it does.
    pub(crate) fn address(&self) -> SocketAddr {
        self.wait_until_it_listens();
        localhost(self.port)
    }

    /// Between two clients it does not.
    fn wait_until_it_listens(&self) {
        wait_for("iperf3 to listen", || is_listening(self.port).then_some(()));
    }

    /// What our client reports about a test with this server.
    pub(crate) fn ask(&self, params: &Params) -> Report {
        self.ask_with(&options(self.address(), params.clone()))
    }

    /// Who comes while their server closes its listener between two clients is refused or reset, or
    /// let in and sent away again, so a test that did not begin is asked for anew. The options name
    /// the server's address or another of this host.
    pub(crate) fn ask_with(&self, options: &ClientOptions) -> Report {
        for _ in 0..5 {
            let report = our_client_with(options);
            let error = report.error.as_deref();
            let sent_away = error == Some("control socket has closed unexpectedly");
            let refused = error.is_some_and(|error| error.starts_with("unable to connect"));
            if !(sent_away || refused) || report.head.is_some() {
                return report;
            }
            self.wait_until_it_listens();
        }
        our_client_with(options)
    }
}

impl Drop for TheirServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What iperf3 as a client has printed.
pub(crate) struct Reported {
    pub(crate) json: Value,
    pub(crate) text: String,
    pub(crate) success: bool,
}

/// Runs iperf3 as a client with `-J`.
pub(crate) fn their_client(server: SocketAddr, arguments: &str) -> Reported {
    their_client_with(server, arguments, &[])
}

/// The same with environment variables.
pub(crate) fn their_client_with(
    server: SocketAddr,
    arguments: &str,
    environment: &[(&str, &str)],
) -> Reported {
    let child = Command::new("iperf3")
        .args(["-c", &server.ip().to_string(), "-J"])
        .args(["-p", &server.port().to_string()])
        .args(arguments.split_whitespace())
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = output_in_time(child, arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    Reported {
        json: serde_json::from_str(&text).unwrap_or(Value::Null),
        success: output.status.success(),
        text,
    }
}

/// Our client's report.
pub(crate) fn our_client(server: SocketAddr, params: Params) -> Report {
    our_client_with(&options(server, params))
}

pub(crate) fn options(server: SocketAddr, params: Params) -> ClientOptions {
    ClientOptions {
        host: server.ip().to_string(),
        route: Route {
            server,
            bind: None,
            device: None,
            stream_port: 0,
            connect_timeout: PATIENCE,
            multipath: false,
        },
        params,
        interval_ms: 1000,
        end: EndOptions::default(),
        idle_timeout_ms: 10_000,
        auth: None,
    }
}

pub(crate) fn our_client_with(options: &ClientOptions) -> Report {
    let mut report = Report::default();
    let result = run_client(options, &AtomicBool::new(false), &mut report);
    assert_eq!(result.is_err(), report.error.is_some());
    report
}

fn localhost(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Asks again until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn output_in_time(mut child: Child, what: &str) -> std::process::Output {
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(stdout).unwrap_or_default());
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!(
                "iperf3 {what} did not end; it printed {}",
                reader.join().unwrap()
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    std::process::Output {
        status,
        stdout: reader.join().unwrap().into_bytes(),
        stderr: Vec::new(),
    }
}

/// A port nobody listens on, outside the range from which the kernel hands out ports.
fn free_port() -> u16 {
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 100) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Without connecting, which the server would take for a client.
fn is_listening(port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    let listens = |path: &str| {
        let table = std::fs::read_to_string(path).unwrap_or_default();
        table.lines().any(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let local = columns.next().unwrap_or_default();
            let state = columns.nth(1).unwrap_or_default();
            format!("{local} ").ends_with(&wanted) && state == "0A"
        })
    };
    listens("/proc/net/tcp") || listens("/proc/net/tcp6")
}
