//! A run's rows put in order: per stage and round, measured flows apart from missing ones, repairs
//! counted.

use ew_model::analysis::Estimate;
use ew_model::congestion::Aggressor;
use ew_model::latency::Histogram;
use ew_model::plan::{End, Flow, FlowId, Round, RoundIndex, Stage, StageIndex};
use ew_model::record::{EndRecord, FlowOutcome, FlowRecord};
use ew_model::run::Run;
use ew_model::scenario::Pattern;
use ew_model::workload::{Pace, ReceiveMode, SendMode, WorkloadKind};
use ew_model::{HostId, Inventory};
use ew_stats::median_estimate;
use std::collections::{BTreeMap, BTreeSet};

/// All stages of a run.
#[derive(Debug)]
pub struct Observations<'a> {
    /// The run they are of.
    pub run: &'a Run,
    /// In the order of the plan.
    pub stages: Vec<StageView<'a>>,
}

/// One stage: what ran, what was measured, what is missing.
#[derive(Debug)]
pub struct StageView<'a> {
    /// As planned.
    pub stage: &'a Stage,
    /// How far each host's clock may be off the controller's at the run's end, ns. Hosts whose
    /// clock was never compared are not in it.
    clock_error_ns: &'a BTreeMap<HostId, u64>,
    /// Rounds with at least one row, repair rounds included, in order.
    pub rounds: Vec<RoundView<'a>>,
    /// Planned rounds that were to run: all, but for those that `samples: auto` did not need.
    pub due: Vec<&'a Round>,
    /// Flows planned over the rounds that were due, without repairs.
    pub planned: u32,
    /// Planned flows without a figure, after repairs.
    pub missing: Vec<MissingFlow>,
    /// Whether its rates show what hosts and paths can do.
    pub judged: bool,
}

/// One round's measured flows; `flows`, `records` and `isolated` run in parallel.
#[derive(Debug)]
pub struct RoundView<'a> {
    /// Its place in the stage.
    pub index: RoundIndex,
    /// Of a capacity round: how many hosts of each rack send.
    pub senders_per_rack: Option<u32>,
    /// What was to be measured.
    pub flows: Vec<Flow>,
    /// What was.
    pub records: Vec<&'a FlowRecord>,
    /// Whether the flow shares neither its sender's nor its receiver's NIC direction with another
    /// one.
    pub isolated: Vec<bool>,
    /// All flows, measured or not.
    all: usize,
}

impl RoundView<'_> {
    /// Whether every flow was measured.
    fn is_whole(&self) -> bool {
        self.records.len() == self.all
    }

    /// Whether so many flows were not that nobody knows what the others met: connections that
    /// opened send, whether their flow has a figure or not.
    pub fn is_mostly_missing(&self) -> bool {
        2 * self.records.len() < self.all
    }

    /// Streams that each host sends and receives: the engine's threads there, unless one drives
    /// several.
    pub fn streams_by_host(&self) -> BTreeMap<HostId, u32> {
        let mut streams: BTreeMap<HostId, u32> = BTreeMap::new();
        for row in &self.records {
            *streams.entry(row.src).or_default() += streams_of_flow(row);
            *streams.entry(row.dst).or_default() += streams_of_flow(row);
        }
        streams
    }

    /// Those of one host.
    pub fn streams_of(&self, host: HostId) -> u32 {
        let ends = |row: &FlowRecord| u32::from(row.src == host) + u32::from(row.dst == host);
        let rows = self.records.iter();
        rows.map(|row| ends(row) * streams_of_flow(row)).sum()
    }
}

fn streams_of_flow(row: &FlowRecord) -> u32 {
    let streams = row.sender.as_ref().map(|end| end.streams.len());
    streams.unwrap_or(0).max(1) as u32
}

/// A planned flow without a figure.
#[derive(Clone, Debug)]
pub struct MissingFlow {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// As the agents report it.
    pub reason: String,
    /// Neither end counted anything: it was tried, and its connections did not all open.
    pub never_began: bool,
}

impl<'a> Observations<'a> {
    /// Sorts a run's rows. Rows that name hosts or stages outside the run are skipped: a damaged
    /// file must not stop the analysis of the rest.
    pub fn new(run: &'a Run) -> Self {
        let mut by_stage: BTreeMap<StageIndex, Vec<&FlowRecord>> = BTreeMap::new();
        for record in run
            .flows
            .iter()
            .filter(|r| !r.is_aggressor && is_known(r, &run.manifest.inventory))
        {
            by_stage.entry(record.stage).or_default().push(record);
        }
        let mode = judged_mode(&run.plan.stages);
        let stages = (0u32..)
            .zip(&run.plan.stages)
            .map(|(index, stage)| {
                let records = by_stage.remove(&StageIndex(index)).unwrap_or_default();
                let judged = is_network_limited(stage) && mode == Some(mode_of(stage));
                StageView::new(stage, &run.clock_error_ns, &records, judged)
            })
            .collect();
        Self { run, stages }
    }

    /// Hosts and racks.
    pub fn inventory(&self) -> &'a Inventory {
        &self.run.manifest.inventory
    }

    /// Stages whose rates show what hosts and paths can do.
    pub fn judged(&self) -> impl Iterator<Item = &StageView<'a>> {
        self.stages.iter().filter(|stage| stage.judged)
    }

    /// Stages that measure round trips while nothing else runs.
    pub fn idle_round_trips(&self) -> impl Iterator<Item = &StageView<'a>> {
        self.stages.iter().filter(|stage| stage.probes_idle())
    }

    /// Whether anything at all was measured.
    pub fn anything(&self) -> bool {
        self.stages
            .iter()
            .flat_map(|stage| &stage.rounds)
            .any(|round| !round.records.is_empty())
    }
}

impl<'a> StageView<'a> {
    fn new(
        stage: &'a Stage,
        clock_error_ns: &'a BTreeMap<HostId, u64>,
        records: &[&'a FlowRecord],
        judged: bool,
    ) -> Self {
        let mut by_round: BTreeMap<RoundIndex, Vec<&'a FlowRecord>> = BTreeMap::new();
        for record in records {
            by_round.entry(record.round).or_default().push(record);
        }
        let min = stage.min_rounds() as u32;
        let is_due = |index: u32| index < min || by_round.contains_key(&RoundIndex(index));
        let rounds = (0..).zip(&stage.rounds);
        let due: Vec<&Round> = rounds
            .filter(|(index, _)| is_due(*index))
            .map(|(_, round)| round)
            .collect();
        Self {
            clock_error_ns,
            stage,
            rounds: by_round
                .iter()
                .map(|(index, rows)| RoundView::new(stage, *index, rows))
                .collect(),
            planned: due.iter().map(|r| r.measured_flows().count() as u32).sum(),
            missing: missing_flows(stage, &due, records),
            due,
            judged,
        }
    }

    /// How far the clock of a flow's end may have been off the controller's. `None`: it was never
    /// compared.
    pub fn clock_error_ns(&self, host: HostId, end: Option<&EndRecord>) -> Option<u64> {
        end.and_then(|end| end.clock_error_ns)
            .or_else(|| self.clock_error_ns.get(&host).copied())
    }

    /// Whether others are in its flows' way by design.
    pub fn has_aggressors(&self) -> bool {
        let Pattern::Congestion { aggressor } = self.stage.pattern else {
            return false;
        };
        aggressor != Aggressor::None
    }

    /// Whether its flows have rates.
    pub fn is_bulk(&self) -> bool {
        self.stage.workload.kind.is_bulk()
    }

    /// Whether its times are round trips: a connection made for every transaction takes several,
    /// and a message of any size as long as it takes to send.
    pub fn has_round_trips(&self) -> bool {
        use WorkloadKind::{FlowSizes, TcpCrr, Trace};
        let kind = self.stage.workload.kind;
        !self.is_bulk() && !matches!(kind, TcpCrr | Trace | FlowSizes)
    }

    /// Whether it asks one question at a time, so that no answer waits behind another of the same
    /// flow.
    fn probes_idle(&self) -> bool {
        let workload = &self.stage.workload;
        let one_at_a_time = workload.streams == 1 && workload.outstanding == 1;
        // Great messages take longer to send than the network to answer.
        let is_probe = self.stage.sweep.is_none();
        !self.has_aggressors()
            && is_probe
            && self.has_round_trips()
            && one_at_a_time
            && workload.pace == Pace::default()
    }

    /// A figure of the flows summed per round, median over rounds. A ramp's rounds differ by
    /// design, so only its last step counts; a round with missing flows would look small, so it
    /// counts only when there is no whole one.
    pub fn sum_over_flows(&self, figure: impl Fn(&FlowRecord) -> Option<f64>) -> Option<Estimate> {
        let rounds = self.fullest_rounds().into_iter();
        let sums: Vec<f64> = rounds
            .map(|round| round.records.iter().filter_map(|row| figure(row)).sum())
            .collect();
        median_estimate(&sums)
    }

    /// The rounds that show what all flows do together: a ramp's last step, and whole rounds where
    /// there are any.
    pub fn fullest_rounds(&self) -> Vec<&RoundView<'a>> {
        let full = self.last_step();
        let whole: Vec<_> = full
            .iter()
            .copied()
            .filter(|round| round.is_whole())
            .collect();
        if whole.is_empty() { full } else { whole }
    }

    /// The rounds with figures: of a ramp those of its last step.
    pub fn last_step(&self) -> Vec<&RoundView<'a>> {
        let steps = self.rounds.iter().map(|round| round.senders_per_rack);
        let max = steps.max().flatten();
        let is_last =
            |round: &&RoundView<'a>| round.senders_per_rack == max && !round.records.is_empty();
        self.rounds.iter().filter(is_last).collect()
    }

    /// Every measured row.
    pub fn measured(&self) -> impl Iterator<Item = &'a FlowRecord> {
        self.rounds
            .iter()
            .flat_map(|round| round.records.iter().copied())
    }
}

impl<'a> RoundView<'a> {
    fn new(stage: &Stage, index: RoundIndex, rows: &[&'a FlowRecord]) -> Self {
        let planned = stage.rounds.get(index.0 as usize);
        let mut sending: BTreeMap<HostId, u32> = BTreeMap::new();
        let mut receiving: BTreeMap<HostId, u32> = BTreeMap::new();
        for row in rows {
            *sending.entry(row.src).or_default() += 1;
            *receiving.entry(row.dst).or_default() += 1;
        }
        let by_id: BTreeMap<FlowId, &Flow> = planned
            .map(|round| round.flows.iter().map(|flow| (flow.id, flow)).collect())
            .unwrap_or_default();
        let kind = stage.workload.kind;
        let records: Vec<_> = rows
            .iter()
            .copied()
            .filter(|r| is_measured(r, kind))
            .collect();
        Self {
            index,
            senders_per_rack: planned.and_then(|round| round.senders_per_rack),
            flows: records
                .iter()
                .map(|row| planned_flow(&by_id, row))
                .collect(),
            isolated: records
                .iter()
                .map(|row| sending.get(&row.src) == Some(&1) && receiving.get(&row.dst) == Some(&1))
                .collect(),
            all: rows.len(),
            records,
        }
    }

    /// Measured flows with their rates; bulk stages only.
    pub fn rates(&self) -> impl Iterator<Item = (&'a FlowRecord, f64)> + '_ {
        self.records
            .iter()
            .filter_map(|row| Some((*row, row.bits_per_sec()?)))
    }
}

/// Whether a row carries a figure of its stage's kind.
fn is_measured(record: &FlowRecord, kind: WorkloadKind) -> bool {
    if kind.is_bulk() {
        return record.bits_per_sec().is_some();
    }
    if record.outcome != FlowOutcome::Measured {
        return false;
    }
    match kind {
        WorkloadKind::Trace => record.sender.as_ref().is_some_and(has_path),
        _ => typical_ns(record).is_some(),
    }
}

fn has_path(end: &EndRecord) -> bool {
    end.streams.iter().any(|stream| stream.path.is_some())
}

/// A row's median time of a transaction; of a tool that keeps no distribution what it reports: its
/// median, else its mean, else its min. In the tool's own meaning, which may be half a round
/// trip.
pub fn typical_ns(record: &FlowRecord) -> Option<u64> {
    let reported = || {
        let reported = record.sender.as_ref()?.reported?;
        reported.p50_ns.or(reported.mean_ns).or(reported.min_ns)
    };
    let of_all = times(record).and_then(Histogram::summary);
    of_all.map(|summary| summary.p50_ns).or_else(reported)
}

/// The times of a row's transactions, where there were any.
pub fn times(record: &FlowRecord) -> Option<&Histogram> {
    let times = &record.sender.as_ref()?.latency.as_ref()?.times;
    (times.count() > 0).then_some(times)
}

/// The way to the bytes that the capacity tests of a run share, so that like is compared with like:
/// ordinary copying where a stage does that, else the first stage's.
fn judged_mode(stages: &[Stage]) -> Option<(SendMode, ReceiveMode)> {
    let mut modes = stages
        .iter()
        .filter(|stage| is_network_limited(stage))
        .map(mode_of);
    let first = modes.next()?;
    let copying = (SendMode::Copy, ReceiveMode::Copy);
    let is_there = first == copying || modes.any(|mode| mode == copying);
    Some(if is_there { copying } else { first })
}

fn mode_of(stage: &Stage) -> (SendMode, ReceiveMode) {
    (stage.workload.send_mode, stage.workload.receive_mode)
}

/// Whether nothing but hosts and network limits its flows: TCP that fills what it finds, to the end
/// of the window. A sweep's messages are small by design.
fn is_network_limited(stage: &Stage) -> bool {
    let workload = &stage.workload;
    // What pods and victims get shows something about the pod network and of the others, and is
    // compared by itself.
    let is_compared = matches!(
        stage.pattern,
        Pattern::Pods { .. } | Pattern::Congestion { .. }
    );
    !is_compared
        && stage.sweep.is_none()
        && workload.kind == WorkloadKind::TcpStream
        && workload.pace == Pace::default()
        && workload.limit.is_none()
}

fn is_known(record: &FlowRecord, inventory: &Inventory) -> bool {
    record.src.index() < inventory.hosts.len() && record.dst.index() < inventory.hosts.len()
}

/// The row's flow as planned; a repair round's flow is made up from the row.
fn planned_flow(by_id: &BTreeMap<FlowId, &Flow>, row: &FlowRecord) -> Flow {
    by_id.get(&row.flow).map_or(
        Flow {
            id: row.flow,
            src: row.src,
            dst: row.dst,
            opened_by: End::Src,
            lane: None,
            is_aggressor: false,
            traces: None,
        },
        |flow| (*flow).clone(),
    )
}

/// Planned flows that have no measured row, neither of their own nor from a repair round.
fn missing_flows(stage: &Stage, due: &[&Round], records: &[&FlowRecord]) -> Vec<MissingFlow> {
    let mut measured: BTreeSet<FlowId> = BTreeSet::new();
    let mut rows: BTreeMap<FlowId, &FlowRecord> = BTreeMap::new();
    for row in records {
        if is_measured(row, stage.workload.kind) {
            measured.insert(row.flow);
        } else {
            rows.insert(row.flow, row);
        }
    }
    let repaired = repaired(stage, records);
    let mut missing = Vec::new();
    for round in due {
        for flow in round.measured_flows() {
            let is_repaired = repaired.contains(&(flow.src, flow.dst, round.sample));
            if !measured.contains(&flow.id) && !is_repaired {
                let row = rows.get(&flow.id);
                missing.push(MissingFlow {
                    src: flow.src,
                    dst: flow.dst,
                    reason: row
                        .map_or("its round did not run", |row| reason_of(row))
                        .into(),
                    never_began: row
                        .is_some_and(|row| row.sender.is_none() && row.receiver.is_none()),
                });
            }
        }
    }
    missing
}

/// Source, destination and repetition of what a repair round has measured, of traces all that it
/// has of two hosts.
fn repaired(stage: &Stage, records: &[&FlowRecord]) -> BTreeSet<(HostId, HostId, u32)> {
    let repeats = records
        .iter()
        .filter(|row| row.round.0 as usize >= stage.rounds.len());
    let mut rounds: BTreeMap<_, bool> = BTreeMap::new();
    for row in repeats {
        let of_round = (row.round, (row.src, row.dst, row.sample));
        *rounds.entry(of_round).or_insert(true) &= is_measured(row, stage.workload.kind);
    }
    let whole = rounds.into_iter().filter(|(_, whole)| *whole);
    whole.map(|((_, of), _)| of).collect()
}

fn reason_of(row: &FlowRecord) -> &str {
    match &row.outcome {
        FlowOutcome::Missing { reason } => reason,
        FlowOutcome::Measured => "its figure is missing",
    }
}
