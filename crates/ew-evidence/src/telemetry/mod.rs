//! The hosts' counters laid against the rounds: which readings cover which windows, and their
//! figures.

mod cover;
mod figures;
mod quota;

pub use cover::Cover;
pub use figures::{busy_share, fill, interface_of, receive_drop_counts};
pub use quota::Quota;

use crate::observations::Observations;
use ew_model::HostId;
use ew_model::facts::HostSample;
use ew_model::record::{EndRecord, FlowRecord};
use ew_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// A host's part in one round, on its agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Index of the stage.
    pub stage: usize,
    /// When traffic began: the warm-up is load too.
    pub loaded_ns: u64,
    /// When counting began.
    pub start_ns: u64,
    /// When both ended.
    pub end_ns: u64,
}

/// All hosts' readings and windows.
#[derive(Debug)]
pub struct Telemetry<'a> {
    hosts: BTreeMap<HostId, (&'a [HostSample], Vec<Window>)>,
    /// Per stage, on the axis of reports.
    spans_ns: Vec<Option<(u64, u64)>>,
    /// Controller's clock at the axis' zero: the first reading of any host.
    zero_ns: i64,
    offsets_ns: &'a BTreeMap<HostId, i64>,
}

impl<'a> Telemetry<'a> {
    /// Samples and windows of a run.
    pub fn new(observations: &Observations<'a>) -> Self {
        let run = observations.run;
        let mut telemetry = Self {
            hosts: BTreeMap::new(),
            spans_ns: vec![None; observations.stages.len()],
            zero_ns: 0,
            offsets_ns: &run.clock_offset_ns,
        };
        for host in observations.inventory().host_ids() {
            let samples = run.samples.get(&host).map_or(&[][..], Vec::as_slice);
            telemetry.hosts.insert(host, (samples, Vec::new()));
        }
        let first = |(host, (samples, _)): (&HostId, &(&[HostSample], Vec<Window>))| {
            Some(telemetry.controller_ns(*host, samples.first()?.agent_ns))
        };
        telemetry.zero_ns = telemetry.hosts.iter().filter_map(first).min().unwrap_or(0);
        for (index, view) in observations.stages.iter().enumerate() {
            for round in &view.rounds {
                let window = Window {
                    stage: index,
                    loaded_ns: view.stage.warm_up_ns,
                    start_ns: 0,
                    end_ns: view.stage.duration_ns,
                };
                telemetry.add_round(&round.records, window);
            }
        }
        for (_, windows) in telemetry.hosts.values_mut() {
            windows.sort_by_key(|window| window.loaded_ns);
        }
        telemetry
    }

    /// The readings that cover a host's windows in the given stages. `None` without a reading
    /// next to them.
    pub fn cover(&self, host: HostId, is_asked: impl Fn(usize) -> bool) -> Option<Cover<'a>> {
        let (samples, windows) = self.hosts.get(&host)?;
        let windows: Vec<&Window> = windows.iter().filter(|w| is_asked(w.stage)).collect();
        Cover::new(samples, &windows)
    }

    /// Share of the time of the capacity tests that a CPU quota throttled the agents, median over
    /// hosts. `None` without a quota.
    pub fn throttled_share(&self, observations: &Observations<'_>) -> Option<f64> {
        let is_judged = |stage: usize| observations.stages[stage].judged;
        let hosts = observations.inventory().host_ids();
        let shares = hosts.filter_map(|host| self.cover(host, is_judged)?.throttled_share());
        median(&shares.collect::<Vec<_>>())
    }

    /// The readings of `host` that cover another's windows: of an agent that took no part, on the
    /// same machine.
    pub fn cover_beside(
        &self,
        host: HostId,
        other: HostId,
        is_asked: impl Fn(usize) -> bool,
    ) -> Option<Cover<'a>> {
        let (samples, _) = self.hosts.get(&host)?;
        let (_, windows) = self.hosts.get(&other)?;
        let shift_ns = self.offset_ns(host) - self.offset_ns(other);
        let shifted = |window: &Window| Window {
            loaded_ns: window.loaded_ns.saturating_add_signed(shift_ns),
            start_ns: window.start_ns.saturating_add_signed(shift_ns),
            end_ns: window.end_ns.saturating_add_signed(shift_ns),
            ..*window
        };
        let asked = windows.iter().filter(|w| is_asked(w.stage));
        let windows: Vec<Window> = asked.map(shifted).collect();
        Cover::new(samples, &windows.iter().collect::<Vec<_>>())
    }

    /// Every reading of a host.
    pub fn samples(&self, host: HostId) -> &'a [HostSample] {
        self.hosts.get(&host).map_or(&[], |(samples, _)| samples)
    }

    /// First window's start and last one's end, on the axis of reports.
    pub fn span_ns(&self, stage: usize) -> Option<(u64, u64)> {
        *self.spans_ns.get(stage)?
    }

    /// An agent's time on the axis of reports.
    pub fn axis_ns(&self, host: HostId, agent_ns: u64) -> u64 {
        let since_zero = self.controller_ns(host, agent_ns) - self.zero_ns;
        since_zero.max(0) as u64
    }

    /// When a row's window began, on the axis of reports. `None` where neither end reported it.
    pub fn window_start_ns(&self, row: &FlowRecord) -> Option<u64> {
        let starts = told_starts(&[row]);
        let (host, start_ns) = starts.iter().next()?;
        Some(self.axis_ns(*host, *start_ns))
    }

    /// Every host of a round has the same window on the controller's clock; one that did not report
    /// when (a tool's server) gets it from those that did. `window` has durations where times will
    /// be.
    fn add_round(&mut self, rows: &[&FlowRecord], window: Window) {
        let reported = told_starts(rows);
        let on_controller: Vec<f64> = reported
            .iter()
            .map(|(host, start_ns)| self.controller_ns(*host, *start_ns) as f64)
            .collect();
        let Some(common_ns) = median(&on_controller).map(|ns| ns as i64) else {
            return;
        };
        let hosts: BTreeSet<HostId> = rows.iter().flat_map(|row| [row.src, row.dst]).collect();
        for host in hosts {
            let from_common = (common_ns + self.offset_ns(host)).max(0) as u64;
            let start_ns = reported.get(&host).copied().unwrap_or(from_common);
            let known = self.hosts.entry(host).or_default();
            known.1.push(Window {
                loaded_ns: start_ns.saturating_sub(window.loaded_ns),
                start_ns,
                end_ns: start_ns.saturating_add(window.end_ns),
                ..window
            });
        }
        let start_ns = (common_ns - self.zero_ns).max(0) as u64;
        let end_ns = start_ns.saturating_add(window.end_ns);
        let span = self.spans_ns[window.stage].get_or_insert((start_ns, end_ns));
        *span = (span.0.min(start_ns), span.1.max(end_ns));
    }

    fn controller_ns(&self, host: HostId, agent_ns: u64) -> i64 {
        (agent_ns as i64).saturating_sub(self.offset_ns(host))
    }

    fn offset_ns(&self, host: HostId) -> i64 {
        self.offsets_ns.get(&host).copied().unwrap_or(0)
    }
}

/// When the hosts of a round report that their windows began.
fn told_starts(rows: &[&FlowRecord]) -> BTreeMap<HostId, u64> {
    let said = |host: HostId, end: &Option<EndRecord>| Some((host, end.as_ref()?.window_start_ns?));
    rows.iter()
        .flat_map(|row| [said(row.src, &row.sender), said(row.dst, &row.receiver)])
        .flatten()
        .collect()
}
