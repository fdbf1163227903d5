//! How well each round was measured, judged before anything is concluded from its rates.
//!
//! A round is *void* when its flows did not run together: too many of them are missing or started
//! late. A round that ran on time on hosts short of CPU is not void: its low rates show little, its
//! high rates still prove capacity. So each flow has a degree of starvation, and the fit weighs it.

use crate::criteria::{FULL, HELD_BACK, MANY, MORE_LEFT, NEGLIGIBLE, THROTTLED};
use crate::observations::{Observations, RoundView, StageView};
use crate::telemetry::Telemetry;
use ew_model::HostId;
use ew_model::plan::FlowId;
use ew_model::quality::{VOID_SHARE, but_for, late_share, straggler};
use ew_model::record::EndRecord;
use ew_model::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Below this a flow's ends had the CPU they needed, as far as values go.
pub const LITTLE_STARVATION: f64 = starvation_of(HELD_BACK);
/// The ends had CPU for half of the time.
pub const HALF_STARVED: f64 = starvation_of(0.5);

/// Starvation of ends that lack CPU for a share of the window: from 0, where that is what hosts
/// differ by when idle, to 1, where nothing can be expected of the little CPU that is left.
const fn starvation_of(share: f64) -> f64 {
    ((share - MORE_LEFT) / (1.0 - MANY - MORE_LEFT)).clamp(0.0, 1.0)
}

/// The quality of every round of the capacity tests.
#[derive(Debug, Default)]
pub struct Quality {
    rounds: BTreeMap<(usize, usize), RoundQuality>,
    /// Rounds that use at least half of the hosts; all rounds where none does.
    pub full_rounds: usize,
    /// Those of them that are void, but for flows that are missing although hosts had CPU.
    pub void_rounds: usize,
    /// Mean share of late flows over the full rounds.
    pub late_share: f64,
    /// Mean share of missing flows over the full rounds.
    pub missing_share: f64,
    /// Share of the full rounds whose median flow was starved.
    pub starved_share: f64,
    /// Whether CPU quotas throttled most hosts: what a host carries then depends on what else it
    /// does, and a low rate shows nothing about the network.
    pub is_throttled: bool,
}

/// One round.
#[derive(Debug)]
struct RoundQuality {
    missing_share: f64,
    late_share: f64,
    median_starvation: f64,
    hosts: usize,
}

impl RoundQuality {
    fn is_void(&self) -> bool {
        self.missing_share > VOID_SHARE || self.is_late()
    }

    fn is_late(&self) -> bool {
        self.late_share > VOID_SHARE
    }
}

impl Quality {
    /// Of every round, and of the run.
    pub fn new(observations: &Observations<'_>, telemetry: &Telemetry<'_>) -> Self {
        let throttled = telemetry.throttled_share(observations);
        let mut quality = Self {
            is_throttled: throttled.is_some_and(|share| share >= THROTTLED),
            ..Self::default()
        };
        let rounds = observations.judged().flat_map(|stage| &stage.rounds);
        let records = rounds.flat_map(|round| round.records.iter().copied());
        let missing = observations.judged().flat_map(|stage| &stage.missing);
        let straggler = straggler(records, missing.map(|flow| [flow.src, flow.dst]));
        for (index, stage) in observations.stages.iter().enumerate() {
            for (at, round) in stage.rounds.iter().enumerate().filter(|_| stage.judged) {
                let of_round = round_quality(observations.run, stage, round, straggler);
                quality.rounds.insert((index, at), of_round);
            }
        }
        quality.summarise(observations.inventory().hosts.len());
        quality
    }

    fn summarise(&mut self, hosts: usize) {
        let is_full = |round: &&RoundQuality| 2 * round.hosts >= hosts;
        let mut full: Vec<&RoundQuality> = self.rounds.values().filter(is_full).collect();
        if full.is_empty() {
            full = self.rounds.values().collect();
        }
        let rounds = full.len().max(1) as f64;
        let mean =
            |share: fn(&RoundQuality) -> f64| full.iter().map(|r| share(r)).sum::<f64>() / rounds;
        let starved = |round: &&&RoundQuality| round.median_starvation > FULL;
        self.late_share = mean(|round| round.late_share);
        self.missing_share = mean(|round| round.missing_share);
        self.starved_share = full.iter().filter(starved).count() as f64 / rounds;
        self.full_rounds = full.len();
        // Flows that are missing although hosts had CPU are a fault of the network, and what such
        // rounds do not show others may.
        let invalidates = |round: &&&RoundQuality| match self.had_cpu() {
            true => round.is_late(),
            false => round.is_void(),
        };
        self.void_rounds = full.iter().filter(invalidates).count();
    }

    /// Whether nothing may be concluded of the network: most full rounds did not run as planned.
    pub fn is_invalid(&self) -> bool {
        2 * self.void_rounds > self.full_rounds
    }

    /// Whether hosts had the CPU they needed all along.
    fn had_cpu(&self) -> bool {
        self.held_back_share() == 0.0
    }

    /// Whether hosts lacked so much CPU that a connection that never opens does not accuse the
    /// network: its end came too late.
    pub fn lacked_cpu(&self) -> bool {
        self.held_back_share() > VOID_SHARE
    }

    /// Share of connections that hosts short of CPU may keep from opening: as many as flows start
    /// late, or rounds are starved. 0 where that is next to none.
    pub fn held_back_share(&self) -> f64 {
        let share = self.late_share.max(self.starved_share);
        if share < NEGLIGIBLE { 0.0 } else { share }
    }

    /// Whether a round, by its stage and its index among the stage's rounds with rows, counts for
    /// nothing.
    pub fn is_void(&self, stage: usize, round: usize) -> bool {
        let known = self.rounds.get(&(stage, round));
        known.is_some_and(RoundQuality::is_void)
    }

    /// Void rounds of all, full or not.
    pub fn void_total(&self) -> usize {
        self.rounds.values().filter(|round| round.is_void()).count()
    }
}

/// What the run's straggler lacks does not count, and neither does what a lost host leaves behind:
/// both are reported for the host, and the others ran together all the same.
fn round_quality(
    run: &Run,
    stage: &StageView<'_>,
    round: &RoundView<'_>,
    straggler: Option<HostId>,
) -> RoundQuality {
    let is_up = |host: HostId| !run.lost.contains_key(&host) && !run.failed.contains_key(&host);
    let planned = stage.stage.rounds.get(round.index.0 as usize);
    let flows = planned.map_or(&round.flows, |planned| &planned.flows);
    let due = flows
        .iter()
        .filter(|flow| is_up(flow.src) && is_up(flow.dst));
    let due = but_for(due, straggler, |flow| [flow.src, flow.dst]);
    let measured: BTreeSet<FlowId> = round.records.iter().map(|row| row.flow).collect();
    let missing = due.iter().filter(|flow| !measured.contains(&flow.id));
    let of_flows = starvation(round);
    let mut hosts: Vec<HostId> = round
        .flows
        .iter()
        .flat_map(|flow| [flow.src, flow.dst])
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    RoundQuality {
        missing_share: missing.count() as f64 / due.len().max(1) as f64,
        late_share: late_share(round.records.iter().copied(), straggler),
        median_starvation: ew_stats::median(&of_flows).unwrap_or(0.0),
        hosts: hosts.len(),
    }
}

/// How much each flow of a round lacked CPU time at its ends, 0 to 1, in the order of the records:
/// at 1 a low rate is what one expects whatever the network does. Waiting on the run queue and
/// stolen time count; being busy does not, since a busy host may still have done all that was asked
/// of it.
pub fn starvation(round: &RoundView<'_>) -> Vec<f64> {
    let streams = round.streams_by_host();
    let of_end = |host: HostId, end: &Option<EndRecord>| {
        let threads = streams.get(&host).copied().unwrap_or(1);
        end.as_ref().map_or(0.0, |end| end_starvation(end, threads))
    };
    let rows = round.records.iter();
    rows.map(|row| of_end(row.src, &row.sender).max(of_end(row.dst, &row.receiver)))
        .collect()
}

/// How much each host of a round lacked CPU time at its own ends, 0 to 1.
fn starvation_of_hosts(round: &RoundView<'_>) -> BTreeMap<HostId, f64> {
    let streams = round.streams_by_host();
    let mut hosts: BTreeMap<HostId, f64> = BTreeMap::new();
    for row in &round.records {
        for (host, end) in [(row.src, &row.sender), (row.dst, &row.receiver)] {
            let threads = streams.get(&host).copied().unwrap_or(1);
            if let Some(end) = end {
                let worst = hosts.entry(host).or_default();
                *worst = worst.max(end_starvation(end, threads));
            }
        }
    }
    hosts
}

/// The same over the rounds of the capacity tests.
pub fn starvation_by_host(observations: &Observations<'_>) -> BTreeMap<HostId, Vec<f64>> {
    let mut hosts: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        for (host, starvation) in starvation_of_hosts(round) {
            hosts.entry(host).or_default().push(starvation);
        }
    }
    hosts
}

fn end_starvation(end: &EndRecord, streams: u32) -> f64 {
    let waited = end.waited_share(streams).map_or(0.0, starvation_of);
    let stolen = stolen_share(end).map_or(0.0, starvation_of);
    waited.max(stolen)
}

/// Share of the time of the host's CPUs that a hypervisor gave to others.
fn stolen_share(end: &EndRecord) -> Option<f64> {
    let cpu = end.cpu.as_ref()?;
    let all_ns = f64::from(cpu.cpus) * end.window_ns as f64;
    (all_ns > 0.0).then(|| cpu.steal_ns as f64 / all_ns)
}
