//! A run so far as one JSON document, for the live page.

use super::tally::{StageTally, Tally};
use crate::error::ReportError;
use crate::words::{one_line, outcome, rate};
use ew_model::facts::HostSample;
use ew_model::finding::WordedVerdict;
use ew_model::units::format_duration_ns;
use ew_model::{Analysis, FlowRecord, HostId, Outcome, RoundIndex, RunEvent, StageIndex};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Rounds that are listed, the newest; all are counted.
const MAX_ROUNDS: usize = 200;
/// Warnings that are listed, the newest.
const MAX_WARNINGS: usize = 50;
/// Points of a line. Above it neighbours are joined, and each further point covers twice the time.
const MAX_POINTS: usize = 600;
/// Clock ticks of `/proc/stat` per second: USER_HZ, a constant of the kernel's interface (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Names the documents that a webhook is sent.
const WEBHOOK_SCHEMA: &str = "eastwest-webhook";
/// Of their layout. It grows when a field changes its meaning or goes.
const WEBHOOK_VERSION: u32 = 1;

/// What a webhook gets of a run that is over: how it ended, its verdict with all findings, and
/// the exit code.
///
/// # Errors
/// [`ReportError::Json`], which is a defect.
pub fn finished_json(analysis: &Analysis) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Finished<'a> {
        schema: &'static str,
        schema_version: u32,
        kind: &'static str,
        run_id: &'a str,
        scenario: &'a str,
        outcome: Outcome,
        status: &'static str,
        exit_code: u8,
        verdict: WordedVerdict,
    }
    let finished = Finished {
        schema: WEBHOOK_SCHEMA,
        schema_version: WEBHOOK_VERSION,
        kind: "finished",
        run_id: &analysis.run.id,
        scenario: &analysis.run.scenario.name,
        outcome: analysis.run.outcome,
        status: crate::words::status(analysis),
        exit_code: analysis.verdict.status.exit_code(),
        verdict: crate::in_words(analysis),
    };
    Ok(serde_json::to_string(&finished)?)
}

/// What a run's events so far amount to, bounded whatever its length.
#[derive(Default)]
pub struct LiveState {
    tally: Tally,
    run_id: String,
    at_ns: u64,
    left_ns: Option<u64>,
    stage: Option<StageIndex>,
    goodput: Line,
    rounds: VecDeque<RoundRow>,
    rounds_done: u64,
    warnings: VecDeque<String>,
    hosts: BTreeMap<HostId, HostNow>,
    ended: Option<Outcome>,
    is_closed: bool,
}

/// A round that is over.
#[derive(Serialize)]
struct RoundRow {
    at_s: f64,
    stage: String,
    /// From 1.
    round: u32,
    flows: usize,
    /// In words: the median over its flows, and what is missing.
    result: String,
    /// Median rate of its flows; none of requests.
    bits_per_sec: Option<f64>,
    /// Median time of its flows' requests.
    ns: Option<f64>,
}

/// A figure over time: (ns since the run began, value), thinned as it grows.
#[derive(Default)]
struct Line {
    points: Vec<(u64, f64)>,
    /// So many values are one point; 0 is 1.
    joined: usize,
    /// The values of the next point.
    open: Vec<(u64, f64)>,
}

/// A host's counters between its last two samples.
#[derive(Default)]
struct HostNow {
    last: Option<HostSample>,
    at_ns: u64,
    tx_bits_per_sec: Option<f64>,
    rx_bits_per_sec: Option<f64>,
    busy: Option<f64>,
    softirq: Option<f64>,
    retransmits_per_sec: Option<f64>,
    drops: Option<u64>,
}

#[derive(Serialize)]
struct Document<'a> {
    news: u64,
    run_id: &'a str,
    scenario: String,
    status: String,
    over: bool,
    at_s: f64,
    left: Option<String>,
    hosts: String,
    stages: Vec<StageRow>,
    rounds_done: u64,
    rounds: &'a VecDeque<RoundRow>,
    goodput: Vec<(f64, f64)>,
    warnings: &'a VecDeque<String>,
    /// Only when they were asked for.
    host_rows: Option<Vec<HostRow>>,
}

#[derive(Serialize)]
struct StageRow {
    name: String,
    rounds: usize,
    done: u64,
    now: bool,
    result: String,
}

#[derive(Serialize)]
struct HostRow {
    name: String,
    state: &'static str,
    tx: String,
    rx: String,
    busy: String,
    softirq: String,
    retransmits: String,
    drops: String,
    age: String,
}

impl LiveState {
    /// Takes one event; `at_ns` is the time since the run began. Returns whether a page that shows
    /// the run should read again.
    pub fn take(&mut self, at_ns: u64, event: &RunEvent) -> bool {
        self.at_ns = self.at_ns.max(at_ns);
        self.tally.take(event);
        match event {
            RunEvent::RunStarted { id, .. } => self.run_id.clone_from(id),
            RunEvent::StageStarted { stage, .. } => self.stage = Some(*stage),
            RunEvent::StageFinished { .. } => self.stage = None,
            RunEvent::RoundFinished {
                stage,
                round,
                records,
            } => self.add_round(at_ns, *stage, *round, records),
            RunEvent::Progress {
                bits_per_sec,
                left_ns,
                ..
            } => {
                self.left_ns = Some(*left_ns);
                self.goodput.extend(at_ns, *bits_per_sec);
            }
            RunEvent::HostSampled { host, sample } => self.sampled(at_ns, *host, sample),
            RunEvent::Warning { message } => {
                bounded(&mut self.warnings, MAX_WARNINGS, one_line(message));
            }
            RunEvent::RunFinished { outcome, .. } => self.ended = Some(*outcome),
            RunEvent::HostRead { .. } | RunEvent::FlowProgress { .. } => return false,
            _ => {}
        }
        for failure in &self.tally.failures {
            bounded(&mut self.warnings, MAX_WARNINGS, failure.clone());
        }
        true
    }

    /// Empty before the run began.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The run's report is written: there will be no more.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// All of it; `news` is a number that grows with it, hosts come only `with_hosts`.
    #[must_use]
    pub fn json(&self, news: u64, with_hosts: bool) -> String {
        let scenario = self
            .tally
            .plan
            .as_ref()
            .map(|plan| one_line(&plan.scenario));
        let seconds = |(at_ns, value): &(u64, f64)| (*at_ns as f64 / 1e9, *value);
        let document = Document {
            news,
            run_id: &self.run_id,
            scenario: scenario.unwrap_or_default(),
            status: self.status(),
            over: self.is_closed,
            at_s: self.at_ns as f64 / 1e9,
            left: self
                .left_ns
                .filter(|_| self.ended.is_none())
                .map(format_duration_ns),
            hosts: self.tally.launch_result(),
            stages: self.stages(),
            rounds_done: self.rounds_done,
            rounds: &self.rounds,
            goodput: self.goodput.points.iter().map(seconds).collect(),
            warnings: &self.warnings,
            host_rows: with_hosts.then(|| self.host_rows()),
        };
        // Strings and numbers: there is nothing that could fail.
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// What a webhook gets while the run goes on.
    #[must_use]
    pub fn progress_json(&self) -> String {
        #[derive(Serialize)]
        struct Progress<'a> {
            schema: &'static str,
            schema_version: u32,
            kind: &'static str,
            run_id: &'a str,
            status: String,
            at_s: f64,
            left_s: Option<f64>,
            rounds_done: u64,
            newest_round: Option<&'a RoundRow>,
            goodput_bits_per_sec: Option<f64>,
            stages: Vec<StageRow>,
            warnings: &'a VecDeque<String>,
        }
        let progress = Progress {
            schema: WEBHOOK_SCHEMA,
            schema_version: WEBHOOK_VERSION,
            kind: "progress",
            run_id: &self.run_id,
            status: self.status(),
            at_s: self.at_ns as f64 / 1e9,
            left_s: self.left_ns.map(|ns| ns as f64 / 1e9),
            rounds_done: self.rounds_done,
            newest_round: self.rounds.back(),
            goodput_bits_per_sec: self.goodput.points.last().map(|(_, value)| *value),
            stages: self.stages(),
            warnings: &self.warnings,
        };
        // Strings and numbers: there is nothing that could fail.
        serde_json::to_string(&progress).unwrap_or_default()
    }

    fn status(&self) -> String {
        match (self.ended, self.stage) {
            (Some(how), _) => format!("over: {}", outcome(how)),
            (None, _) if self.run_id.is_empty() => "starting".into(),
            (None, Some(stage)) => format!("running {}", self.tally.stage_name(stage)),
            (None, None) if !self.tally.launch_is_over() => "launching agents".into(),
            (None, None) => "between stages".into(),
        }
    }

    fn stages(&self) -> Vec<StageRow> {
        let stages = self.tally.plan.iter().flat_map(|plan| &plan.stages);
        let row = |(index, stage): (u32, &ew_model::Stage)| {
            let index = StageIndex(index);
            StageRow {
                name: one_line(&stage.name),
                rounds: stage.rounds.len(),
                done: self.tally.rounds_done(index),
                now: self.stage == Some(index),
                result: match self.tally.rounds_done(index) {
                    0 => String::new(),
                    _ => self.tally.stage_result(index),
                },
            }
        };
        (0..).zip(stages).map(row).collect()
    }

    fn add_round(
        &mut self,
        at_ns: u64,
        stage: StageIndex,
        round: RoundIndex,
        records: &[FlowRecord],
    ) {
        let tally = StageTally::of_round(records);
        let row = RoundRow {
            at_s: at_ns as f64 / 1e9,
            stage: self.tally.stage_name(stage),
            round: round.0 + 1,
            flows: records.len(),
            result: tally.result(),
            bits_per_sec: tally.median_rate(),
            ns: tally.median_time_ns(),
        };
        self.rounds_done += 1;
        bounded(&mut self.rounds, MAX_ROUNDS, row);
    }

    fn sampled(&mut self, at_ns: u64, host: HostId, sample: &HostSample) {
        let device = self.tally.device(host);
        self.hosts
            .entry(host)
            .or_default()
            .take(at_ns, sample, device);
    }

    fn host_rows(&self) -> Vec<HostRow> {
        let hosts = self.tally.inventory.host_ids();
        hosts.map(|host| self.host_row(host)).collect()
    }

    fn host_row(&self, host: HostId) -> HostRow {
        let none = HostNow::default();
        let now = self.hosts.get(&host).unwrap_or(&none);
        let share = |share: Option<f64>| crate::words::percent(share);
        let age = now
            .last
            .as_ref()
            .map(|_| self.at_ns.saturating_sub(now.at_ns));
        HostRow {
            name: self.tally.host(host),
            state: self.tally.host_state(host),
            tx: rate(now.tx_bits_per_sec),
            rx: rate(now.rx_bits_per_sec),
            busy: share(now.busy),
            softirq: share(now.softirq),
            retransmits: crate::words::or_missing(now.retransmits_per_sec, |n| format!("{n:.1}/s")),
            drops: crate::words::count(now.drops),
            age: crate::words::duration(age),
        }
    }
}

impl std::fmt::Debug for LiveState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveState")
            .field("run_id", &self.run_id)
            .finish_non_exhaustive()
    }
}

impl Line {
    fn extend(&mut self, at_ns: u64, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        self.open.push((at_ns, value));
        if self.open.len() < self.joined.max(1) {
            return;
        }
        self.points.extend(joined(&self.open));
        self.open.clear();
        if self.points.len() >= MAX_POINTS {
            self.points = self.points.chunks(2).filter_map(joined).collect();
            self.joined = 2 * self.joined.max(1);
        }
    }
}

/// One point for several: their last time and mean value.
fn joined(points: &[(u64, f64)]) -> Option<(u64, f64)> {
    let sum: f64 = points.iter().map(|(_, value)| value).sum();
    Some((points.last()?.0, sum / points.len() as f64))
}

impl HostNow {
    fn take(&mut self, at_ns: u64, sample: &HostSample, device: Option<&str>) {
        if let Some(last) = &self.last {
            let seconds = sample.agent_ns.saturating_sub(last.agent_ns) as f64 / 1e9;
            let interface = |sample: &HostSample| {
                let mut all = sample.interfaces.iter();
                all.find(|one| Some(one.name.as_str()) == device).cloned()
            };
            let ends = interface(last).zip(interface(sample));
            let per_sec = |before: u64, after: u64| {
                (seconds > 0.0).then(|| after.saturating_sub(before) as f64 / seconds)
            };
            let ends = ends.as_ref();
            self.tx_bits_per_sec =
                ends.and_then(|(a, b)| Some(8.0 * per_sec(a.tx_bytes, b.tx_bytes)?));
            self.rx_bits_per_sec =
                ends.and_then(|(a, b)| Some(8.0 * per_sec(a.rx_bytes, b.rx_bytes)?));
            self.drops = ends.map(|(a, b)| {
                let all = |i: &ew_model::facts::InterfaceCounters| i.rx_drops + i.tx_drops;
                all(b).saturating_sub(all(a))
            });
            let retransmits =
                |sample: &HostSample| sample.causes.as_ref()?.protocols.tcp_retransmitted_segments;
            self.retransmits_per_sec = retransmits(last)
                .zip(retransmits(sample))
                .and_then(|(a, b)| per_sec(a, b));
            let all_ticks = seconds * TICKS_PER_SECOND * sample.cpu_count() as f64;
            let share = |before: u64, after: u64| {
                (all_ticks > 0.0)
                    .then(|| (after.saturating_sub(before) as f64 / all_ticks).min(1.0))
            };
            self.busy = share(busy_ticks(last), busy_ticks(sample));
            self.softirq = share(softirq_ticks(last), softirq_ticks(sample));
        }
        self.at_ns = at_ns;
        self.last = Some(sample.clone());
    }
}

fn busy_ticks(sample: &HostSample) -> u64 {
    let busy = |cpu: &ew_model::facts::CpuCounters| {
        let interrupts = cpu.irq_ticks.unwrap_or(0) + cpu.softirq_ticks.unwrap_or(0);
        Some(cpu.user_ticks + cpu.nice_ticks + cpu.system_ticks + interrupts)
    };
    sample.over_cpus(busy).unwrap_or(0)
}

fn softirq_ticks(sample: &HostSample) -> u64 {
    sample.over_cpus(|cpu| cpu.softirq_ticks).unwrap_or(0)
}

/// Adds at the end, and drops the oldest above `max`.
fn bounded<T>(list: &mut VecDeque<T>, max: usize, item: T) {
    list.push_back(item);
    if list.len() > max {
        list.pop_front();
    }
}
