//! A run as Prometheus metrics: the events so far, in the text exposition format, version
//! 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! The number of series grows with the hosts and with nothing else: no series per pair, flow,
//! interface, disk or core. Names and units follow <https://prometheus.io/docs/practices/naming/>:
//! base units, counters end in `_total`. What was not read has no series; it is never 0. Agents
//! delay their samples while bytes are counted, so figures of hosts move when a round ends.

mod busiest;
mod families;
mod host;
mod page;
mod results;
mod run;
mod storage;

use ew_model::{Analysis, HostId, RunEvent};
use host::HostSeries;
use page::Page;
pub use page::Series;
use run::RunSeries;
use std::collections::BTreeMap;
use storage::StorageSeries;

/// The `Content-Type` of [`Exposition::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a run's events so far amount to, ready to be scraped.
#[derive(Debug)]
pub struct Exposition {
    run: RunSeries,
    storage: StorageSeries,
    hosts: BTreeMap<HostId, HostSeries>,
}

impl Exposition {
    /// Before the first event. `version` is eastwest's own, `began_unix_ns` the wall clock at the
    /// run's start.
    #[must_use]
    pub fn new(version: &str, began_unix_ns: u64) -> Self {
        Self {
            run: RunSeries::new(version, began_unix_ns),
            storage: StorageSeries::default(),
            hosts: BTreeMap::new(),
        }
    }

    /// Takes one event; `at_ns` is the time since the run began.
    pub fn take(&mut self, at_ns: u64, event: &RunEvent) {
        self.run.take(event);
        self.storage.take(event);
        match event {
            RunEvent::RunStarted { inventory, .. } => {
                let series = |host| (host, HostSeries::new(inventory, host));
                self.hosts = inventory.host_ids().map(series).collect();
            }
            RunEvent::RoundFinished { records, .. } => self.take_round(records),
            _ => {
                let subject = host::subject(event).and_then(|host| self.hosts.get_mut(&host));
                if let Some(series) = subject {
                    series.take(self.run.began_unix_ns + at_ns, event);
                }
            }
        }
    }

    /// The whole page. Empty before the run's first event.
    #[must_use]
    pub fn render(&self) -> String {
        self.filled(Page::default(), None).into_text()
    }

    /// The same as series, for what takes no text.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        self.filled(Page::of_series(), None).into_series()
    }

    /// The page of a run that is over: without what was true of a moment, with what the run amounts
    /// to. Series per stage are added.
    #[must_use]
    pub fn render_final(&mut self, analysis: &Analysis) -> String {
        self.run.end();
        self.storage.end();
        self.filled(Page::default(), Some(analysis)).into_text()
    }

    /// The same as series.
    #[must_use]
    pub fn series_final(&mut self, analysis: &Analysis) -> Vec<Series> {
        self.run.end();
        self.storage.end();
        self.filled(Page::of_series(), Some(analysis)).into_series()
    }

    fn filled(&self, mut page: Page, analysis: Option<&Analysis>) -> Page {
        run::render(&self.run, self.hosts.values(), &mut page);
        storage::render(&self.storage, &mut page);
        families::render(&self.hosts, &mut page);
        if let Some(analysis) = analysis {
            results::render(analysis, &mut page);
        }
        page
    }

    fn take_round(&mut self, records: &[ew_model::FlowRecord]) {
        for (id, series) in &mut self.hosts {
            series.take_round(*id, records);
        }
    }
}
