//! Scenario x inventory x seed, fully spelled out: stages of rounds of flows. Data, no behaviour.

pub use crate::place::{FlowId, RoundIndex, StageIndex};

use crate::inventory::HostId;
use crate::ports;
use crate::scenario::{AutoSamples, Expect, Pattern};
use crate::workload::{SourcePorts, StreamCount, Tool, Workload, WorkloadKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Everything a run will do. Same scenario, inventory and seed: same plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// What the user configured.
    pub expect: Expect,
    /// In order of execution, unless that is random.
    pub stages: Vec<Stage>,
    /// The stages are interleaved, one repetition each, in a new random order for every pass.
    #[serde(default)]
    pub random_order: bool,
    /// Tests skipped, each as `NAME: reason`.
    pub dropped_tests: Vec<String>,
    /// First and last stage of each run of neighbours that are interleaved, one repetition each, in
    /// the order written.
    #[serde(default)]
    pub interleaved: Vec<(StageIndex, StageIndex)>,
    /// What each host was measured to carry before the stages that go at a share of it; empty until
    /// then. By host id.
    #[serde(default)]
    pub host_rates: Vec<HostRate>,
    /// What the run may load of its hosts' links. `None`: all of it.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
    /// Line rates that loads are a share of ([`crate::workload::Pace::line_share`]), bits per
    /// second, by host id; empty where there is no such load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line_rates: Vec<f64>,
}

/// The max that a run loads each host's link with, in each direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    /// On the wire, bits per second; by host id.
    pub hosts_bits_per_sec: Vec<f64>,
    /// The same over the hosts' line rate, median over hosts. `None` where that is unknown.
    pub of_line_rate: Option<f64>,
}

/// Payload of full segments over their bits on the wire at an MTU of 1500, which has the largest
/// headers in use: 1448 of 1538 bytes (IEEE 802.3 with preamble and gap; TCP with timestamps).
pub const GOODPUT_SHARE: f64 = 1448.0 / 1538.0;

/// Messages that go one at a time rest between them so that they have this much of the line rate on
/// average: then token buckets on the way, of shapers and of clouds, are full again before each.
const ALONE_SHARE: f64 = 0.5;

/// A round's flows under a rate of each host, such as a [`RateLimit`]: a host's flows share it
/// evenly.
#[derive(Clone, Debug)]
pub struct LimitedRound<'a> {
    hosts_bits_per_sec: &'a [f64],
    /// Flows that each host sends and receives.
    flows: BTreeMap<HostId, [u32; 2]>,
}

impl<'a> LimitedRound<'a> {
    /// Under the run's limit. `None` without one.
    #[must_use]
    pub fn new(plan: &'a Plan, round: &Round) -> Option<Self> {
        let limit = plan.rate_limit.as_ref()?;
        Some(Self::of(&limit.hosts_bits_per_sec, round))
    }

    /// At line rate. `None` where no load is a share of it.
    #[must_use]
    pub fn at_line_rate(plan: &'a Plan, round: &Round) -> Option<Self> {
        let rates = Some(plan.line_rates.as_slice()).filter(|rates| !rates.is_empty())?;
        Some(Self::of(rates, round))
    }

    fn of(hosts_bits_per_sec: &'a [f64], round: &Round) -> Self {
        let mut flows: BTreeMap<HostId, [u32; 2]> = BTreeMap::new();
        for flow in &round.flows {
            flows.entry(flow.src).or_default()[0] += 1;
            flows.entry(flow.dst).or_default()[1] += 1;
        }
        Self {
            hosts_bits_per_sec,
            flows,
        }
    }

    /// What a flow of the round may carry of payload, bits per second.
    #[must_use]
    pub fn goodput_of(&self, flow: &Flow) -> f64 {
        let share = |host: HostId, direction: usize| {
            let flows = self.flows.get(&host).map_or(1, |flows| flows[direction]);
            let limit = self.hosts_bits_per_sec.get(host.index());
            limit.map_or(f64::INFINITY, |limit| limit / f64::from(flows.max(1)))
        };
        GOODPUT_SHARE * share(flow.src, 0).min(share(flow.dst, 1))
    }
}

/// What a host carried when nothing but its NIC and its uplink kept it back: medians over rounds,
/// `None` when it took no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRate {
    /// Payload sent.
    pub tx_bits_per_sec: Option<f64>,
    /// Payload received.
    pub rx_bits_per_sec: Option<f64>,
}

/// One test's rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The test's name.
    pub name: String,
    /// The test's pattern.
    pub pattern: Pattern,
    /// What the flows carry.
    pub workload: Workload,
    /// Window length D.
    pub duration_ns: u64,
    /// Time between the common start and the window.
    pub warm_up_ns: u64,
    /// Pause between rounds.
    pub gap_ns: u64,
    /// In order of execution.
    pub rounds: Vec<Round>,
    /// Rounds run only until their figures have converged. `rounds` then has the max that may run;
    /// all repetitions of a round have the same flows.
    #[serde(default)]
    pub auto: Option<AutoSamples>,
    /// The test that this stage is one message size of. `None`: the stage is a test by itself.
    #[serde(default)]
    pub sweep: Option<String>,
}

/// Flows that run at the same time, inside one common window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Which repetition this is, from 0.
    pub sample: u32,
    /// Senders per rack in a ramp; `None` elsewhere.
    pub senders_per_rack: Option<u32>,
    /// All flows of the round.
    pub flows: Vec<Flow>,
}

/// One directed relation: data goes from `src` to `dst`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Unique in the plan.
    pub id: FlowId,
    /// The sender of the data (tcp-rr: the requester).
    pub src: HostId,
    /// The receiver of the data.
    pub dst: HostId,
    /// Who opens the connections.
    pub opened_by: End,
    /// The server port slot that the client drew (`pick: random` only).
    pub lane: Option<u16>,
    /// It is there to be in the way of the stage's other flows ([`Stage::workload_of`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aggressor: bool,
    /// The flow of another stage whose path is traced. `None` for all flows but traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<TracedStream>,
}

/// One stream of a flow, by where its source port comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedStream {
    /// Of the flow's ports ([`crate::ports::source_port`]).
    pub port_seed: u64,
    /// The stream's number in its flow.
    pub stream: u16,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The sender of the data.
    Src,
    /// The receiver of the data.
    Dst,
}

impl Plan {
    /// The external tools that its stages use, each once.
    #[must_use]
    pub fn external_tools(&self) -> Vec<Tool> {
        let is_used = |tool: &Tool| self.stages.iter().any(|stage| stage.workload.tool == *tool);
        Tool::external().filter(is_used).collect()
    }

    /// The skipped tests, those with the same reason in one line: `NAME, NAME: reason`.
    #[must_use]
    pub fn skipped_tests(&self) -> Vec<String> {
        let mut lines: Vec<(String, &str)> = Vec::new();
        for test in &self.dropped_tests {
            let (name, reason) = test.split_once(": ").unwrap_or((test, ""));
            // A reason names its test again.
            let own = format!("test `{name}`: ");
            let reason = reason.strip_prefix(&own).unwrap_or(reason);
            match lines.iter_mut().find(|(_, known)| *known == reason) {
                Some((names, _)) => {
                    names.push_str(", ");
                    names.push_str(name);
                }
                None => lines.push((name.to_owned(), reason)),
            }
        }
        let line = |(names, reason): (String, &str)| match reason.is_empty() {
            true => names,
            false => format!("{names}: {reason}"),
        };
        lines.into_iter().map(line).collect()
    }

    /// The stages in groups, one after the other: those that are interleaved with each other, or
    /// one alone.
    #[must_use]
    pub fn groups(&self) -> Vec<Range<usize>> {
        let count = self.stages.len();
        if self.random_order {
            return std::iter::once(0..count).collect();
        }
        let mut groups = Vec::new();
        let mut next = 0;
        while next < count {
            let run = self
                .interleaved
                .iter()
                .find(|(first, _)| first.0 as usize == next);
            let end = run.map_or(next + 1, |(_, last)| last.0 as usize + 1);
            groups.push(next..end.min(count));
            next = end;
        }
        groups
    }

    /// What a flow's payload is limited to by its stage and its hosts' measured rates. `None`:
    /// nothing, or its hosts were not measured.
    #[must_use]
    pub fn pace_of(&self, stage: &Stage, flow: &Flow) -> Option<f64> {
        self.pace_between(&stage.workload_of(flow), flow.src, flow.dst)
    }

    /// The same of any flow that carries this between two hosts.
    #[must_use]
    pub fn pace_between(&self, workload: &Workload, src: HostId, dst: HostId) -> Option<f64> {
        let share = workload.pace.measured_share?;
        let sends = self.host_rates.get(src.index())?.tx_bits_per_sec?;
        let receives = self.host_rates.get(dst.index())?.rx_bits_per_sec?;
        Some(share * sends.min(receives))
    }

    /// What the source ports of a flow's streams are chosen from. `None`: the kernel chooses.
    #[must_use]
    pub fn port_seed(&self, stage: &Stage, flow: &Flow) -> Option<u64> {
        if let Some(traced) = flow.traces {
            return Some(traced.port_seed);
        }
        let (client, server) = (flow.client(), flow.server());
        match stage.workload.source_ports {
            SourcePorts::Kernel => None,
            SourcePorts::Fresh => Some(ports::fresh_seed(self.seed, flow.id)),
            SourcePorts::Pinned => Some(ports::pinned_seed(self.seed, client, server)),
        }
    }
}

impl Stage {
    /// What a flow of the stage carries: what the test specifies, unless it is an aggressor.
    #[must_use]
    pub fn workload_of(&self, flow: &Flow) -> Cow<'_, Workload> {
        match flow.is_aggressor {
            true => self.workload_of_aggressors(),
            false => Cow::Borrowed(&self.workload),
        }
    }

    /// As many bytes as TCP lets them; at a load that of the test.
    #[must_use]
    pub fn workload_of_aggressors(&self) -> Cow<'_, Workload> {
        match self.workload.pace.line_share {
            None => Cow::Owned(Workload::default()),
            Some(_) => Cow::Borrowed(&self.workload),
        }
    }

    /// The payload that a flow of messages offers at a load, bits per second; one at a time, what
    /// it is not to exceed on average.
    #[must_use]
    pub fn load(&self, flow: &Flow, round: &LimitedRound<'_>) -> Option<f64> {
        let workload = self.workload_of(flow);
        let is_of_messages = workload.kind == WorkloadKind::FlowSizes;
        let share = workload.pace.line_share.unwrap_or(ALONE_SHARE);
        is_of_messages.then(|| share * round.goodput_of(flow))
    }

    /// Parallel connections per flow in a round.
    #[must_use]
    pub fn streams_in(&self, round: &Round) -> u32 {
        match self.workload.stream_count {
            StreamCount::Doubling => 1 << round.sample.min(15),
            StreamCount::Fixed | StreamCount::Auto => self.workload.streams,
        }
    }

    /// Time from one round's start to the next one's.
    #[must_use]
    pub fn round_period_ns(&self) -> u64 {
        self.warm_up_ns + self.duration_ns + self.gap_ns
    }

    /// Planned time of all rounds; the most it may take where rounds run until they converge.
    #[must_use]
    pub fn planned_ns(&self) -> u64 {
        let all_ns = self
            .round_period_ns()
            .saturating_mul(self.rounds.len() as u64);
        match self.auto.and_then(|auto| auto.budget_ns) {
            // No repetition is ordered that would end after the budget.
            Some(budget_ns) => all_ns.min(budget_ns.max(self.min_planned_ns())),
            None => all_ns,
        }
    }

    /// Planned time of the rounds that run in any case.
    #[must_use]
    pub fn min_planned_ns(&self) -> u64 {
        self.round_period_ns()
            .saturating_mul(self.min_rounds() as u64)
    }

    /// How many of the first rounds run in any case.
    #[must_use]
    pub fn min_rounds(&self) -> usize {
        match (self.auto, self.workload.stream_count) {
            (Some(auto), _) => self.rounds_per_sample() * auto.at_least.min(auto.at_most) as usize,
            // One stream, and two.
            (None, StreamCount::Doubling) => self.rounds.len().min(2 * self.rounds_per_sample()),
            (None, _) => self.rounds.len(),
        }
    }

    /// Rounds of one repetition.
    #[must_use]
    pub fn rounds_per_sample(&self) -> usize {
        self.rounds.iter().filter(|r| r.sample == 0).count()
    }
}

impl Round {
    /// The flows that the stage is about: all but aggressors.
    pub fn measured_flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(|flow| !flow.is_aggressor)
    }
}

impl Flow {
    /// The number of its first stream where source ports are chosen: a trace takes those of the
    /// stream it is about.
    #[must_use]
    pub fn first_stream(&self) -> u16 {
        self.traces.map_or(0, |traced| traced.stream)
    }

    /// The host that opens the connections.
    #[must_use]
    pub fn client(&self) -> HostId {
        match self.opened_by {
            End::Src => self.src,
            End::Dst => self.dst,
        }
    }

    /// The host that accepts them.
    #[must_use]
    pub fn server(&self) -> HostId {
        match self.opened_by {
            End::Src => self.dst,
            End::Dst => self.src,
        }
    }
}
