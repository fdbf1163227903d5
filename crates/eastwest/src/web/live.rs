//! `run --web`: a run as it goes, and its report so far.

use super::{Token, without_token};
use crate::exit::Failure;
use crate::http::{Answer, Endpoint, HTML, JSON, Serving, Site};
use crate::output;
use crate::signals;
use ew_model::RunEvent;
use ew_report::live::LiveState;
use ew_report::{Format, TextStyle};
use hyper::StatusCode;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A report so far is made anew at most this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// And takes at most this share of the time of one core: a run measures on this machine, too.
const REPORT_SHARE: u32 = 10;

/// The page of one run. It is served until it is dropped.
pub(crate) struct LivePage {
    run: Arc<LiveRun>,
    _server: Serving,
}

struct LiveRun {
    token: Token,
    runs_dir: PathBuf,
    state: Mutex<LiveState>,
    /// Grows with every event that the page shows.
    news: watch::Sender<u64>,
    report: Mutex<Report>,
}

/// The newest report so far.
#[derive(Default)]
struct Report {
    /// Of which news it is, when it was made, and how long that took.
    made: Option<(u64, Instant, Duration)>,
    page: String,
}

impl LivePage {
    /// Serves at the endpoint, and prints where.
    pub(crate) fn serve(endpoint: Endpoint, runs_dir: &Path) -> Result<Self, Failure> {
        let token = Token::random()?;
        let url = token.url(&endpoint);
        let run = Arc::new(LiveRun {
            token,
            runs_dir: runs_dir.to_owned(),
            state: Mutex::new(LiveState::default()),
            news: watch::Sender::new(0),
            report: Mutex::default(),
        });
        let site: Arc<dyn Site> = Arc::<LiveRun>::clone(&run);
        let server = endpoint.serve(site)?;
        output::say(&format!("live page: {url}"));
        Ok(Self {
            run,
            _server: server,
        })
    }

    /// Takes one event; `at_ns` is the time since the run began.
    pub(crate) fn take(&self, at_ns: u64, event: &RunEvent) {
        if locked(&self.run.state).take(at_ns, event) {
            self.run.news.send_modify(|number| *number += 1);
        }
    }

    /// Stays until Ctrl-C, SIGTERM or SIGHUP, with the finished report.
    pub(crate) async fn stay(&self, is_quiet: bool) -> Result<(), Failure> {
        locked(&self.run.state).close();
        self.run.news.send_modify(|number| *number += 1);
        if !is_quiet {
            output::say("live page: the run is over; Ctrl-C ends the page");
        }
        signals::ending().await
    }
}

impl Site for LiveRun {
    fn answer(&self, path: &str, query: &str) -> Answer {
        let Some(page) = self.token.opens(path) else {
            return without_token();
        };
        match page {
            "" => Answer::html(ew_report::live_page()),
            "state" => {
                let with_hosts = query == "hosts";
                let state = locked(&self.state).json(*self.news.borrow(), with_hosts);
                Answer::Page(StatusCode::OK, JSON, state)
            }
            "news" => Answer::News(self.news.subscribe()),
            "report" => self.report(),
            _ => Answer::not_found("only /, state, news and report"),
        }
    }
}

impl LiveRun {
    /// Of the run directory's content so far; a finished run's is as it was written.
    fn report(&self) -> Answer {
        let id = locked(&self.state).run_id().to_owned();
        if id.is_empty() {
            return Answer::not_found("the run has not begun");
        }
        let dir = self.runs_dir.join(id);
        if let Ok(page) = std::fs::read_to_string(dir.join("report.html")) {
            return Answer::html(page);
        }
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *self.news.borrow();
        let is_fresh = report.made.is_some_and(|(of, at, took)| {
            of == news || at.elapsed() < REPORT_INTERVAL.max(took * REPORT_SHARE)
        });
        if is_fresh {
            return Answer::html(report.page.clone());
        }
        let began = Instant::now();
        match render(&dir) {
            Ok(page) => {
                report.page.clone_from(&page);
                report.made = Some((news, Instant::now(), began.elapsed()));
                Answer::html(page)
            }
            Err(error) => Answer::Page(
                StatusCode::SERVICE_UNAVAILABLE,
                HTML,
                ew_report::notice_page(&format!("There is no report yet: {error:#}")),
            ),
        }
    }
}

fn render(dir: &Path) -> anyhow::Result<String> {
    let analysis = ew_analyze::analyze(&ew_store::load(dir)?);
    Ok(ew_report::render(
        &analysis,
        Format::Html,
        &TextStyle::default(),
    )?)
}

/// What was taken stays readable, whatever happened to a reader.
fn locked(state: &Mutex<LiveState>) -> MutexGuard<'_, LiveState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
