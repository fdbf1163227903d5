//! Series of the run as a whole.

use super::host::{HostSeries, State};
use super::page::{Family, Label, Page, Read};
use crate::words::one_line;
use ew_model::{FlowOutcome, FlowRecord, Plan, RunEvent, StageIndex};

/// What the events report about the run as a whole.
#[derive(Debug)]
pub(super) struct RunSeries {
    version: String,
    pub(super) began_unix_ns: u64,
    id: String,
    plan: Option<Plan>,
    stage: Option<StageIndex>,
    stages_finished: u64,
    rounds_finished: u64,
    flows_measured: u64,
    flows_missing: u64,
    /// Beyond the plan: repairs.
    rounds_added: u64,
    warnings: u64,
    goodput_bits_per_sec: Option<f64>,
    left_ns: Option<u64>,
}

impl RunSeries {
    pub(super) fn new(version: &str, began_unix_ns: u64) -> Self {
        Self {
            version: one_line(version),
            began_unix_ns,
            id: String::new(),
            plan: None,
            stage: None,
            stages_finished: 0,
            rounds_finished: 0,
            flows_measured: 0,
            flows_missing: 0,
            rounds_added: 0,
            warnings: 0,
            goodput_bits_per_sec: None,
            left_ns: None,
        }
    }

    pub(super) fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunStarted { id, plan, .. } => {
                self.id = one_line(id);
                self.plan = Some(plan.clone());
            }
            RunEvent::Replanned { plan } => self.plan = Some(plan.clone()),
            RunEvent::StageStarted { stage, .. } => self.stage = Some(*stage),
            RunEvent::StageFinished { .. } => {
                self.stage = None;
                self.stages_finished += 1;
            }
            RunEvent::RoundFinished {
                stage,
                round,
                records,
            } => {
                let planned = self.stage(*stage).map_or(0, |stage| stage.rounds.len());
                self.rounds_added += u64::from(round.0 as usize >= planned);
                self.take_round(records);
            }
            RunEvent::Progress {
                bits_per_sec,
                left_ns,
                ..
            } => {
                self.goodput_bits_per_sec = *bits_per_sec;
                self.left_ns = Some(*left_ns);
            }
            RunEvent::Warning { .. } => self.warnings += 1,
            _ => {}
        }
    }

    /// What was true of a moment is no longer.
    pub(super) fn end(&mut self) {
        self.stage = None;
        self.goodput_bits_per_sec = None;
        self.left_ns = None;
    }

    fn take_round(&mut self, records: &[FlowRecord]) {
        self.rounds_finished += 1;
        let measured = records
            .iter()
            .filter(|record| record.outcome == FlowOutcome::Measured)
            .count() as u64;
        self.flows_measured += measured;
        self.flows_missing += records.len() as u64 - measured;
    }

    fn stage(&self, index: StageIndex) -> Option<&ew_model::Stage> {
        self.plan.as_ref()?.stages.get(index.0 as usize)
    }
}

/// Families without labels.
const PLAIN: &[Read<RunSeries, Option<f64>>] = &[
    (
        Family::gauge(
            "eastwest_run_start_timestamp_seconds",
            "When the run began, since 1970.",
        ),
        |run| Some(run.began_unix_ns as f64 / 1e9),
    ),
    (
        Family::gauge("eastwest_run_stages", "Stages of the plan."),
        |run| Some(run.plan.as_ref()?.stages.len() as f64),
    ),
    (
        Family::counter(
            "eastwest_run_stages_finished_total",
            "Stages that are over.",
        ),
        |run| Some(run.stages_finished as f64),
    ),
    (
        Family::gauge(
            "eastwest_run_rounds",
            "Rounds of the plan, and those added to repair missing cells.",
        ),
        |run| {
            let stages = &run.plan.as_ref()?.stages;
            let planned: usize = stages.iter().map(|stage| stage.rounds.len()).sum();
            Some((planned as u64 + run.rounds_added) as f64)
        },
    ),
    (
        Family::counter(
            "eastwest_run_rounds_finished_total",
            "Rounds that are over.",
        ),
        |run| Some(run.rounds_finished as f64),
    ),
    (
        Family::gauge("eastwest_run_flows", "Flows of the plan."),
        |run| {
            let rounds = run.plan.as_ref()?.stages.iter().flat_map(|s| &s.rounds);
            Some(rounds.map(|round| round.flows.len()).sum::<usize>() as f64)
        },
    ),
    (
        Family::gauge(
            "eastwest_run_goodput_bytes_per_second",
            "Payload received by all hosts together, about a second ago.",
        ),
        |run| Some(run.goodput_bits_per_sec? / 8.0),
    ),
    (
        Family::gauge(
            "eastwest_run_time_left_seconds",
            "Estimated time to the run's end.",
        ),
        |run| Some(run.left_ns? as f64 / 1e9),
    ),
    (
        Family::counter("eastwest_run_warnings_total", "Warnings of the run."),
        |run| Some(run.warnings as f64),
    ),
];

const INFO: Family = Family::gauge(
    "eastwest_run_info",
    "Always 1: the run behind all series of this target.",
);
const STAGE_INFO: Family = Family::gauge(
    "eastwest_run_stage_info",
    "1 while a stage is under way: its number from 0, name and workload.",
);
const FLOWS_FINISHED: Family = Family::counter(
    "eastwest_run_flows_finished_total",
    "Flows of finished rounds, repairs included: with a figure (measured) or without (missing).",
);
const HOSTS: Family = Family::gauge(
    "eastwest_run_hosts",
    "Hosts by state: launching, up, failed (did not come up), lost.",
);

/// Nothing before the run's first event.
pub(super) fn render<'a>(
    run: &RunSeries,
    hosts: impl Iterator<Item = &'a HostSeries>,
    page: &mut Page,
) {
    let Some(plan) = &run.plan else { return };
    let (scenario, seed) = (one_line(&plan.scenario), plan.seed.to_string());
    let info = vec![
        ("run", run.id.as_str()),
        ("scenario", scenario.as_str()),
        ("seed", seed.as_str()),
        ("version", run.version.as_str()),
    ];
    page.family(&INFO, [(info, 1.0)]);
    for (family, value) in PLAIN {
        page.family(family, value(run).map(|value| (Vec::new(), value)));
    }
    render_stage(run, page);
    let outcomes = [
        ("measured", run.flows_measured),
        ("missing", run.flows_missing),
    ];
    page.family(&FLOWS_FINISHED, by("outcome", outcomes));
    page.family(&HOSTS, by("state", host_states(hosts)));
}

fn render_stage(run: &RunSeries, page: &mut Page) {
    let Some((index, stage)) = run.stage.and_then(|index| Some((index, run.stage(index)?))) else {
        return;
    };
    let (number, name) = (index.0.to_string(), one_line(&stage.name));
    let labels = vec![
        ("stage", number.as_str()),
        ("name", name.as_str()),
        ("workload", stage.workload.kind.name()),
    ];
    page.family(&STAGE_INFO, [(labels, 1.0)]);
}

fn host_states<'a>(hosts: impl Iterator<Item = &'a HostSeries>) -> [(&'static str, u64); 4] {
    let mut counts = State::ALL.map(|state| (state.word(), 0));
    for host in hosts {
        counts[host.state as usize].1 += 1;
    }
    counts
}

fn by<const N: usize>(
    label: &'static str,
    counts: [(&'static str, u64); N],
) -> [(Vec<Label<'static>>, f64); N] {
    counts.map(|(word, count)| (vec![(label, word)], count as f64))
}
