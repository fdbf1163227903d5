//! `--metrics`: a run's Prometheus metrics over HTTP, while the run lasts.
//!
//! Read-only: two pages, made from the run's events.

use crate::exit::Failure;
use crate::http::{self, Answer, Endpoint, HTML, Site};
use ew_model::RunEvent;
use ew_report::prometheus::{CONTENT_TYPE, Exposition};
use hyper::StatusCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Metrics are made anew at most this often.
const RENDER_INTERVAL: Duration = Duration::from_millis(500);

const FRONT_PAGE: &str = "<!doctype html><title>eastwest</title><p>A run of eastwest. \
<a href=\"/metrics\">Metrics</a> for Prometheus.</p>\n";

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    metrics: Arc<Metrics>,
    _server: http::Serving,
}

/// What is served.
#[derive(Debug)]
struct Metrics(Mutex<Page>);

#[derive(Debug)]
struct Page {
    exposition: Exposition,
    /// As of when, and the text: scrapers must not make the run's machine render again and again.
    rendered: Option<(Instant, String)>,
}

/// Serves a run's metrics from now on.
pub(crate) fn serve(endpoint: Endpoint, version: &str) -> Result<Serving, Failure> {
    let began_unix_ns = ew_sys::clock::realtime_ns();
    let metrics = Arc::new(Metrics(Mutex::new(Page {
        exposition: Exposition::new(version, began_unix_ns),
        rendered: None,
    })));
    let site: Arc<dyn Site> = Arc::<Metrics>::clone(&metrics);
    Ok(Serving {
        _server: endpoint.serve(site)?,
        metrics,
    })
}

impl Serving {
    /// Takes one event; `at_ns` is the time since the run began.
    pub(crate) fn take(&self, at_ns: u64, event: &RunEvent) {
        self.metrics.page().exposition.take(at_ns, event);
    }
}

impl Metrics {
    /// What was counted stays readable, whatever happened to another reader.
    fn page(&self) -> MutexGuard<'_, Page> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site for Metrics {
    fn answer(&self, path: &str, _query: &str) -> Answer {
        match path {
            "/metrics" => Answer::Page(StatusCode::OK, CONTENT_TYPE, self.page().text()),
            "/" => Answer::Page(StatusCode::OK, HTML, FRONT_PAGE.to_owned()),
            _ => Answer::not_found("only / and /metrics"),
        }
    }
}

impl Page {
    fn text(&mut self) -> String {
        match &self.rendered {
            Some((at, text)) if at.elapsed() < RENDER_INTERVAL => text.clone(),
            _ => {
                let text = self.exposition.render();
                self.rendered = Some((Instant::now(), text.clone()));
                text
            }
        }
    }
}
