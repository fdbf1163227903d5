//! The live page and the pages of stored runs, against a server that plays a run.

use super::chromium::{DESK, PHONE, Tab, View, browser};
use ew_model::RunEvent;
use ew_model::comparison::{Change, Metric};
use ew_model::event::RecordedEvent;
use ew_model::run::Outcome;
use ew_model::topology::Topology;
use ew_model::trend::{ChangePoint, Trend, TrendPoint};
use ew_report::live::LiveState;
use ew_report::{RunLine, RunsPage, live_page, runs_page, trends_page};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Names that are markup must be shown as text.
const HOSTILE: &str = "<b>mesh</b>";
const SCENARIO: &str = "
name: live
defaults: {workload: tcp-stream, streams: 1, duration: 1s, warm-up: 200ms, gap: 100ms, samples: 4}
tests:
  - {name: permutation, pattern: permutation}
";

/// What `eastwest run --web` serves, of a run that goes on when the test allows it.
struct Played {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    state: LiveState,
    news: u64,
    reports: u64,
}

impl Played {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let served = Arc::clone(&served);
                std::thread::spawn(move || answer(stream, &served));
            }
        });
        Self { address, shared }
    }

    fn take(&self, events: &[RecordedEvent]) {
        let mut shared = self.shared.lock().unwrap();
        for event in events {
            shared.state.take(event.at_ns, &event.event);
        }
        shared.news += 1;
    }

    fn goodput(&self, at_s: u64, bits_per_sec: f64) {
        let event = RunEvent::Progress {
            bits_per_sec: Some(bits_per_sec),
            hosts_alive: 4,
            left_ns: 5_000_000_000,
        };
        let at_ns = at_s * 1_000_000_000;
        self.take(&[RecordedEvent { at_ns, event }]);
    }

    fn close(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.state.close();
        shared.news += 1;
    }

    fn reports(&self) -> u64 {
        self.shared.lock().unwrap().reports
    }
}

/// One request. A reader that has gone away ends its thread.
fn answer(mut stream: TcpStream, shared: &Mutex<Shared>) {
    let mut line = String::new();
    if BufReader::new(&stream).read_line(&mut line).is_err() {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default();
    let (kind, body) = match path {
        "/t/" => ("text/html", live_page()),
        "/t/state" | "/t/state?hosts" => {
            let shared = shared.lock().unwrap();
            let state = shared.state.json(shared.news, path.ends_with("hosts"));
            ("application/json", state)
        }
        "/t/news" => return news(stream, shared),
        "/t/report" => {
            shared.lock().unwrap().reports += 1;
            let body = "<!doctype html><title>r</title><p id=findings>none".to_owned();
            ("text/html", body)
        }
        _ => ("text/plain", String::new()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all((head + &body).as_bytes());
}

fn news(mut stream: TcpStream, shared: &Mutex<Shared>) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let mut written = stream.write_all(head.as_bytes());
    let mut last = u64::MAX;
    while written.is_ok() {
        let news = shared.lock().unwrap().news;
        if news != last {
            written = stream.write_all(format!("data: {news}\n\n").as_bytes());
            last = news;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run's events up to each round's end.
fn rounds() -> Vec<Vec<RecordedEvent>> {
    let topology: Topology = super::pages::fabric(2, 3);
    let scenario = ew_plan::scenario::parse(SCENARIO, "live.yaml", &[]).unwrap();
    let inventory = ew_sim::inventory(&topology);
    let mut plan = ew_plan::plan(&scenario, &inventory, 1).unwrap();
    plan.stages[0].name = HOSTILE.to_owned();
    let started = RunEvent::RunStarted {
        id: "20261122-live".into(),
        inventory,
        plan: plan.clone(),
    };
    let first = RecordedEvent {
        at_ns: 0,
        event: started,
    };
    let events = ew_sim::record(&topology, &plan, 1, &ew_sim::Noise::default());
    let mut parts = vec![vec![first]];
    for event in events {
        let ends = matches!(event.event, RunEvent::RoundFinished { .. });
        parts.last_mut().unwrap().push(event);
        if ends {
            parts.push(Vec::new());
        }
    }
    parts
}

#[test]
fn rounds_appear_and_charts_move() {
    let Some(browser) = browser() else { return };
    let played = Played::start();
    let tab = Tab::open_url(&browser, &format!("http://{}/t/", played.address), DESK);
    tab.until("document.querySelector('#status').textContent === 'starting'");
    let parts = rounds();
    let mut shown = Vec::new();
    for (index, part) in parts[..4].iter().enumerate() {
        let since = Instant::now();
        played.take(part);
        let done = index + 1;
        tab.until(&format!(
            "document.querySelector('#rounds-done').textContent === '{done}'"
        ));
        shown.push(since.elapsed());
        assert_eq!(
            tab.number("document.querySelectorAll('#rounds-chart circle').length"),
            done as f64
        );
    }
    println!("rounds shown after {shown:?}");
    // A machine with other work may be slow once; a page that looks too seldom always is.
    assert!(
        shown.iter().min().unwrap() < &Duration::from_secs(2),
        "{shown:?}"
    );
    assert!(tab.is("document.querySelector('#stages b') === null"));
    assert!(tab.text("#stages").contains(HOSTILE));

    let line = || tab.eval("document.querySelector('#goodput path').getAttribute('d')");
    for at_s in 1..4 {
        played.goodput(at_s, 1e9 * at_s as f64);
    }
    tab.until("document.querySelector('#goodput-now').textContent === '3.00 Gb/s'");
    let before = line();
    played.goodput(5, 6e9);
    tab.until("document.querySelector('#goodput-now').textContent === '6.00 Gb/s'");
    assert_ne!(line(), before);
    played.goodput(6, 999.7e6);
    tab.until("document.querySelector('#goodput-now').textContent === '1.00 Gb/s'");

    // Who comes later sees all of it.
    tab.eval("location.reload()");
    tab.until("document.querySelector('#rounds-done')?.textContent === '4'");
    tab.until("document.querySelectorAll('#rounds-chart circle').length === 4");
}

#[test]
fn hosts_and_rounds_are_one_click_or_key_away() {
    let Some(browser) = browser() else { return };
    let played = Played::start();
    let parts = rounds();
    parts[..3].iter().for_each(|part| played.take(part));
    let tab = Tab::open_url(&browser, &format!("http://{}/t/", played.address), DESK);
    tab.until("document.querySelector('#rounds-done').textContent === '3'");
    assert!(tab.is("document.querySelector('#host-rows').children.length === 0"));
    tab.click("#hosts summary");
    tab.until("document.querySelectorAll('#host-rows tr').length === 6");
    tab.eval("document.querySelector('#round-list summary').focus()");
    tab.key("Enter");
    tab.until("document.querySelector('#round-list').open");
    assert_eq!(
        tab.number("document.querySelectorAll('#rounds tr').length"),
        3.0
    );
    tab.until("document.querySelector('#report').contentDocument?.querySelector('#findings')");
    let reports = played.reports();
    played.take(&parts[3..].concat());
    let outcome = Outcome::Complete;
    let event = RunEvent::RunFinished {
        outcome,
        unclean: Vec::new(),
    };
    played.take(&[RecordedEvent {
        at_ns: 1 << 40,
        event,
    }]);
    played.close();
    tab.until("document.querySelector('#status').textContent.startsWith('over')");
    // The final report is loaded however little time has passed.
    let until = Instant::now() + Duration::from_secs(60);
    while played.reports() == reports {
        assert!(Instant::now() < until, "the final report was not loaded");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn live_and_stored_pages_fit_a_telephone_in_light_and_dark() {
    let Some(browser) = browser() else { return };
    let played = Played::start();
    rounds()[..3].iter().for_each(|part| played.take(part));
    let dark = View {
        dark: true,
        ..PHONE
    };
    let tab = Tab::open_url(&browser, &format!("http://{}/t/", played.address), PHONE);
    tab.until("document.querySelector('#rounds-done').textContent === '3'");
    let ground = |tab: &Tab| tab.eval("getComputedStyle(document.body).backgroundColor");
    let fits = |tab: &Tab| tab.is("document.documentElement.scrollWidth <= innerWidth");
    let light = ground(&tab);
    assert!(fits(&tab));
    tab.resize(dark);
    assert_ne!(ground(&tab), light);

    let tab = Tab::open(
        &browser,
        &written("trends", &trends_page("mesh", &[trend()]).unwrap()),
        PHONE,
    );
    assert!(fits(&tab));
    assert!(tab.area(".change.worse").height > 20.0);
    tab.eval("document.querySelector('main p a').focus()");
    tab.key("Tab");
    assert!(tab.is("document.activeElement.closest('svg.trend') !== null"));
    tab.resize(DESK);
    let change = tab.area(".change.worse").x;
    let dots = tab
        .eval("[...document.querySelectorAll('circle')].map((c) => c.getBoundingClientRect().x)");
    let dots: Vec<f64> = dots
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect();
    assert!(
        dots[18] < change && change < dots[20],
        "the stroke is at the run"
    );

    let tab = Tab::open(
        &browser,
        &written("runs", &runs_page(&list()).unwrap()),
        PHONE,
    );
    assert!(fits(&tab));
    assert_eq!(
        tab.number("document.querySelectorAll('tbody tr').length"),
        3.0
    );
}

fn trend() -> Trend {
    let point = |index: u32| TrendPoint {
        run_id: format!("run{index}"),
        started_unix_ns: u64::from(index),
        value: Some(if index < 19 { 1e9 } else { 9e8 }),
    };
    Trend {
        stage: "mesh".into(),
        metric: Metric::Throughput,
        points: (0..30).map(point).collect(),
        changes: vec![ChangePoint {
            at: 19,
            run_id: "run19".into(),
            before: 1e9,
            after: 9e8,
            p_value: 0.001,
            change: Change::Worse,
        }],
    }
}

fn list() -> RunsPage {
    let line = |number: u32| RunLine {
        id: format!("20261122T120000Z-qualify-{number:04x}"),
        started_unix_ns: 1_795_348_800_000_000_000,
        scenario: "qualify".into(),
        fleet: "ssh".into(),
        hosts: 40,
        outcome: "complete".into(),
        status: None,
    };
    RunsPage {
        runs: (0..3).map(line).collect(),
        ..RunsPage::default()
    }
}

fn written(name: &str, page: &str) -> PathBuf {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join(format!("{name}.html"));
    std::fs::write(&file, page).unwrap();
    file
}
