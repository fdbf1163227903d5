//! A whole run in virtual time: every stage of a plan, in its order.

use crate::dice::Dice;
use crate::hosts::{self, Clocks, Counters, ORIGIN_NS, Span, Waits};
use crate::network::Network;
use crate::noise::Noise;
use crate::round::RoundResult;
use crate::round_run::RoundRun;
use ew_model::facts::HostFacts;
use ew_model::plan::LimitedRound;
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_model::run::{Outcome, Run, RunManifest};
use ew_model::workload::StreamCount;
use ew_model::{
    HostId, Inventory, Plan, RecordedEvent, RoundIndex, RunEvent, Scenario, Stage, StageIndex,
    Topology,
};
use ew_plan::adapt::{Shown, adapted, is_worth_doubling};
use ew_plan::estimate::STAGE_OVERHEAD_NS;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Layout of run directories that the records fit.
const FORMAT_VERSION: u32 = 3;
/// Bound of a clock estimate.
const CLOCK_ERROR_NS: u64 = 20_000;

/// What a plan would measure on a network: the run as it would be read back. The plan is one over
/// [`Topology::inventory`]. All repetitions of the plan run; nothing is measured again.
///
/// Time: streams x log(streams) a round.
#[must_use]
pub fn simulate(topology: &Topology, plan: &Plan, seed: u64, noise: &Noise) -> Run {
    let network = Network::new(topology, noise.cpu_ns_per_byte);
    Simulation::whole(&network, plan, seed, noise).into_run()
}

/// The hosts of a topology with the addresses that a simulated run has.
#[must_use]
pub fn inventory(topology: &Topology) -> Inventory {
    Network::new(topology, 1.0).inventory()
}

/// What the hosts of a topology report of themselves.
#[must_use]
pub fn facts(topology: &Topology) -> BTreeMap<HostId, HostFacts> {
    hosts::facts(&Network::new(topology, 1.0))
}

/// What the flows of one round would measure: those of the only round of the plan's only stage.
/// Nothing of another round is known, so that token buckets are not modelled, and all clocks are
/// the controller's, on which the window begins at `window_start_ns`.
#[must_use]
pub fn simulate_round(
    topology: &Topology,
    plan: &Plan,
    window_start_ns: u64,
    seed: u64,
    noise: &Noise,
) -> Vec<FlowRecord> {
    let Some(stage) = plan.stages.first() else {
        return Vec::new();
    };
    let network = Network::new(topology, noise.cpu_ns_per_byte);
    let mut dice = Dice::new(seed, [2, window_start_ns, 0]);
    let waits = Waits::draw(network.hosts.len(), noise, &mut dice);
    let run = RoundRun {
        network: &network,
        noise,
        plan,
        stage,
        at: (StageIndex(0), RoundIndex(0)),
        window_start_ns,
        level: 1.0,
        capacities: &network.capacities,
        waits: &waits,
        clocks: &Clocks::alike(network.hosts.len()),
        limited: None,
    };
    run.run(&mut dice).records
}

/// The same as the events of a run, in order of virtual time, for a run directory: all but the
/// first, `run-started`, which names the directory.
#[must_use]
pub fn record(topology: &Topology, plan: &Plan, seed: u64, noise: &Noise) -> Vec<RecordedEvent> {
    let network = Network::new(topology, noise.cpu_ns_per_byte);
    Simulation::whole(&network, plan, seed, noise).into_events()
}

/// Rounds of one stage that follow each other.
struct Turn {
    stage: StageIndex,
    rounds: Vec<RoundIndex>,
}

/// The controller's order in a group of stages: the only one with all its rounds, or one repetition
/// of each, interleaved.
fn turns(plan: &Plan, group: &Range<usize>) -> Vec<Turn> {
    let rounds = |stage: StageIndex, is_due: &dyn Fn(u32) -> bool| -> Vec<RoundIndex> {
        let all = (0..)
            .map(RoundIndex)
            .zip(&plan.stages[stage.0 as usize].rounds);
        all.filter(|(_, round)| is_due(round.sample))
            .map(|(index, _)| index)
            .collect()
    };
    if group.len() == 1 {
        let stage = StageIndex(group.start as u32);
        return vec![Turn {
            stage,
            rounds: rounds(stage, &|_| true),
        }];
    }
    let samples = plan.stages[group.clone()]
        .iter()
        .flat_map(|stage| &stage.rounds)
        .map(|round| round.sample);
    let passes = samples.max().map_or(0, |last| last + 1);
    let in_pass = |pass: u32| {
        let order = ew_plan::plan::turns(plan, group, pass).into_iter();
        order.map(move |stage| Turn {
            stage,
            rounds: rounds(stage, &|sample| sample == pass),
        })
    };
    let all = (0..passes).flat_map(in_pass);
    all.filter(|turn| !turn.rounds.is_empty()).collect()
}

/// A run in progress.
struct Simulation<'a> {
    network: &'a Network<'a>,
    /// With what its first stages have shown taken over.
    plan: Arc<Plan>,
    seed: u64,
    noise: &'a Noise,
    clocks: Clocks,
    counters: Counters,
    /// Credits of hosts with a token bucket, bits.
    credits: BTreeMap<HostId, f64>,
    now_ns: u64,
    end_ns: u64,
    turns: Vec<Ran>,
    /// What the plan became, by the number of turns before.
    replans: BTreeMap<usize, Arc<Plan>>,
}

/// A turn that is over.
struct Ran {
    stage: StageIndex,
    started_ns: u64,
    rounds: Vec<RanRound>,
}

/// A round that is over.
struct RanRound {
    round: RoundIndex,
    finished_ns: u64,
    records: Vec<FlowRecord>,
}

impl<'a> Simulation<'a> {
    fn whole(network: &'a Network<'a>, plan: &'a Plan, seed: u64, noise: &'a Noise) -> Self {
        let mut simulation = Self::new(network, plan, seed, noise);
        let mut shown = Shown::default();
        for group in plan.groups() {
            let first_turn = simulation.turns.len();
            for turn in turns(plan, &group) {
                simulation.run_turn(&turn);
            }
            simulation.adapt(&group, first_turn, &mut shown);
        }
        simulation
    }

    fn new(network: &'a Network<'a>, plan: &'a Plan, seed: u64, noise: &'a Noise) -> Self {
        let sites = (0..).map(HostId).zip(&network.hosts);
        let credits = sites.filter_map(|(host, site)| {
            let bucket = site.spec.shaper.bucket?;
            Some((host, bucket.capacity_bytes as f64 * 8.0))
        });
        let planned =
            |stage: &Stage| stage.round_period_ns() * stage.rounds.len() as u64 + STAGE_OVERHEAD_NS;
        Self {
            network,
            plan: Arc::new(plan.clone()),
            seed,
            noise,
            clocks: Clocks::new(network.hosts.len(), seed),
            counters: Counters::new(
                network,
                plan.stages.iter().map(|stage| stage.rounds.len()).sum(),
            ),
            credits: credits.collect(),
            now_ns: ORIGIN_NS,
            end_ns: ORIGIN_NS + plan.stages.iter().map(planned).sum::<u64>(),
            turns: Vec::new(),
            replans: BTreeMap::new(),
        }
    }

    fn run_turn(&mut self, turn: &Turn) {
        let started_ns = self.now_ns;
        let plan = Arc::clone(&self.plan);
        let stage = &plan.stages[turn.stage.0 as usize];
        self.pass(STAGE_OVERHEAD_NS);
        let mut rounds: Vec<RanRound> = Vec::new();
        for round in &turn.rounds {
            if is_enough(stage, *round, &rounds) {
                break;
            }
            rounds.push(self.run_round(turn.stage, *round));
        }
        self.turns.push(Ran {
            stage: turn.stage,
            started_ns,
            rounds,
        });
    }

    /// The stages after the group take over what it has shown, as the controller's do.
    fn adapt(&mut self, group: &Range<usize>, first_turn: usize, shown: &mut Shown) {
        for at in group.clone() {
            let own = self.turns[first_turn..].iter();
            let own = own.filter(|turn| turn.stage.0 as usize == at);
            let rounds = own.flat_map(|turn| &turn.rounds);
            let rows: Vec<FlowRecord> = rounds
                .flat_map(|round| round.records.iter().cloned())
                .collect();
            shown.note(&self.plan.stages[at], &rows);
        }
        let inventory = self.network.topology.inventory();
        if let Some(plan) = adapted(&self.plan, group.end, shown, &inventory) {
            self.plan = Arc::new(plan);
            self.replans
                .insert(self.turns.len(), Arc::clone(&self.plan));
        }
    }

    fn run_round(&mut self, index: StageIndex, round: RoundIndex) -> RanRound {
        let plan = Arc::clone(&self.plan);
        let stage = &plan.stages[index.0 as usize];
        let part = [1, u64::from(index.0), u64::from(round.0)];
        let mut dice = Dice::new(self.seed, part);
        let waits = Waits::draw(self.network.hosts.len(), self.noise, &mut dice);
        let load_ns = stage.warm_up_ns + stage.duration_ns;
        let capacities = self.capacities(load_ns);
        let flows = stage.rounds.get(round.0 as usize);
        let run = RoundRun {
            network: self.network,
            noise: self.noise,
            plan: &plan,
            stage,
            at: (index, round),
            window_start_ns: self.now_ns + stage.warm_up_ns,
            level: self.level(),
            capacities: &capacities,
            waits: &waits,
            clocks: &self.clocks,
            limited: flows.and_then(|flows| LimitedRound::new(&plan, flows)),
        };
        let RoundResult { records, carried } = run.run(&mut dice);
        let span = Span {
            start_ns: self.now_ns,
            end_ns: self.now_ns + load_ns,
        };
        self.counters
            .add_round(self.network, &self.clocks, span, &records);
        self.spend(&carried, load_ns);
        self.pass(stage.round_period_ns());
        RanRound {
            round,
            finished_ns: self.now_ns,
            records,
        }
    }

    /// Common level of this moment.
    fn level(&self) -> f64 {
        let all_ns = (self.end_ns - ORIGIN_NS).max(1);
        let part = (self.now_ns - ORIGIN_NS) as f64 / all_ns as f64;
        self.noise.drift.level(part.min(1.0)).clamp(0.0, 1.0)
    }

    /// With what the token buckets allow in the time ahead.
    fn capacities(&self, load_ns: u64) -> Vec<f64> {
        let mut capacities = self.network.capacities.clone();
        for (host, credits) in &self.credits {
            let site = self.network.host(*host);
            let Some(bucket) = site.spec.shaper.bucket else {
                continue;
            };
            let allowed =
                bucket.sustained_bits_per_sec as f64 + credits * 1e9 / load_ns.max(1) as f64;
            let members = site.spec.nic.lag_members.max(1);
            for member in site.tx..site.tx + members {
                let capacity = &mut capacities[member as usize];
                *capacity = capacity.min(allowed / f64::from(members));
            }
        }
        capacities
    }

    /// Takes what a round used out of the buckets; refilling is [`Self::pass`]'s.
    fn spend(&mut self, carried: &[f64], load_ns: u64) {
        for (host, credits) in &mut self.credits {
            let site = self.network.host(*host);
            let members = site.tx..site.tx + site.spec.nic.lag_members.max(1);
            let sent: f64 = members.map(|member| carried[member as usize]).sum();
            *credits -= sent * load_ns as f64 / 1e9;
        }
    }

    fn pass(&mut self, time_ns: u64) {
        self.now_ns += time_ns;
        for (host, credits) in &mut self.credits {
            if let Some(bucket) = self.network.host(*host).spec.shaper.bucket {
                let more = bucket.sustained_bits_per_sec as f64 * time_ns as f64 / 1e9;
                *credits = (*credits + more).clamp(0.0, bucket.capacity_bytes as f64 * 8.0);
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let rounds = self.turns.iter().flat_map(|turn| &turn.rounds);
        let mut rows = rounds.flat_map(|round| &round.records);
        match rows.all(|row| row.outcome == FlowOutcome::Measured) {
            true => Outcome::Complete,
            false => Outcome::Partial,
        }
    }

    fn into_run(self) -> Run {
        let hosts = (0..).map(HostId).zip(&self.clocks.offset_ns);
        let rounds = self.turns.iter().flat_map(|turn| &turn.rounds);
        Run {
            manifest: self.manifest(),
            plan: Plan::clone(&self.plan),
            facts: hosts::facts(self.network),
            failed: BTreeMap::new(),
            lost: BTreeMap::new(),
            returned: BTreeMap::new(),
            flows: rounds
                .flat_map(|round| round.records.iter().cloned())
                .collect(),
            clock_error_ns: hosts
                .clone()
                .map(|(host, _)| (host, CLOCK_ERROR_NS))
                .collect(),
            clock_offset_ns: hosts.map(|(host, offset)| (host, *offset)).collect(),
            samples: self.counters.into_samples(),
            rejected_connections: BTreeMap::new(),
            warnings: Vec::new(),
            unclean: Vec::new(),
            storage: Vec::new(),
            hdfs: None,
        }
    }

    /// The scenario has what the plan specifies about it.
    fn manifest(&self) -> RunManifest {
        RunManifest {
            format_version: FORMAT_VERSION,
            id: "simulated".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            started_unix_ns: 0,
            finished_unix_ns: Some(self.now_ns - ORIGIN_NS),
            fleet: "sim".into(),
            command: Vec::new(),
            scenario: Scenario {
                name: self.plan.scenario.clone(),
                description: String::new(),
                expect: self.plan.expect,
                tests: Vec::new(),
                time_budget_ns: None,
                random_order: self.plan.random_order,
                roles: None,
                thresholds: Vec::new(),
            },
            inventory: self.network.inventory(),
            seed: self.seed,
            node_labels: BTreeMap::new(),
            barriers: Vec::new(),
            plan_hash: String::new(),
            outcome: self.outcome(),
            controller_peak_bytes: None,
            controller_cpu_ns: None,
        }
    }

    fn into_events(self) -> Vec<RecordedEvent> {
        let outcome = self.outcome();
        let hosts = self.network.hosts.len() as u32;
        let at = |controller_ns: u64, event| RecordedEvent {
            at_ns: controller_ns - ORIGIN_NS,
            event,
        };
        let ups = hosts::facts(self.network)
            .into_iter()
            .map(|(host, facts)| RunEvent::HostUp {
                address: None,
                host,
                facts,
                launch_ns: 0,
            });
        let mut events: Vec<RecordedEvent> = ups.map(|up| at(ORIGIN_NS, up)).collect();
        for (host, offset_ns) in (0..).map(HostId).zip(&self.clocks.offset_ns) {
            let synced = RunEvent::ClockSynced {
                host,
                offset_ns: *offset_ns,
                error_ns: CLOCK_ERROR_NS,
                rate_ppb: None,
            };
            events.push(at(ORIGIN_NS, synced));
        }
        let last = last_turns(&self.turns);
        for (number, turn) in self.turns.into_iter().enumerate() {
            let stage = turn.stage;
            let started = RunEvent::StageStarted {
                stage,
                hosts_alive: hosts,
            };
            events.push(at(turn.started_ns, started));
            let mut ended_ns = turn.started_ns;
            for ran in turn.rounds {
                ended_ns = ran.finished_ns;
                let finished = RunEvent::RoundFinished {
                    stage,
                    round: ran.round,
                    records: ran.records,
                };
                events.push(at(ended_ns, finished));
            }
            if last.get(&stage) == Some(&number) {
                events.push(at(ended_ns, RunEvent::StageFinished { stage }));
            }
            if let Some(plan) = self.replans.get(&(number + 1)) {
                let plan = Plan::clone(plan);
                events.push(at(ended_ns, RunEvent::Replanned { plan }));
            }
        }
        for (host, samples) in self.counters.into_samples() {
            let offset_ns = self.clocks.offset_ns[host.index()];
            events.extend(samples.into_iter().map(|sample| {
                let controller_ns = sample.agent_ns.saturating_add_signed(-offset_ns);
                at(controller_ns, RunEvent::HostSampled { host, sample })
            }));
        }
        events.sort_by_key(|event| event.at_ns);
        let finished = RunEvent::RunFinished {
            outcome,
            unclean: Vec::new(),
        };
        events.push(at(self.now_ns, finished));
        events
    }
}

/// Whether a stage that doubles its streams has nothing to gain from the round.
fn is_enough(stage: &Stage, next: RoundIndex, ran: &[RanRound]) -> bool {
    const IN_ANY_CASE: u32 = 2;
    let sample = stage.rounds[next.0 as usize].sample;
    if stage.workload.stream_count != StreamCount::Doubling || sample < IN_ANY_CASE {
        return false;
    }
    let rows: Vec<FlowRecord> = ran
        .iter()
        .flat_map(|round| round.records.iter().cloned())
        .collect();
    !is_worth_doubling(stage, &rows)
}

/// Where each stage takes its last turn.
fn last_turns(turns: &[Ran]) -> BTreeMap<StageIndex, usize> {
    let numbered = turns.iter().enumerate();
    numbered
        .map(|(number, turn)| (turn.stage, number))
        .collect()
}
