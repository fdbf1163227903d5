//! What clients, network, storage nodes' NICs and disks do alone, and which of them binds a step.

use super::fit::{self, Fit, Observation};
use super::step::StepAnalysis;
use ew_model::Run;
use ew_model::analysis::Estimate;
use ew_model::plan::StageIndex;
use ew_model::record::{FlowRecord, Interval};
use ew_model::storage::StorageOperation;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Stages of the network alone, data to the servers.
pub const NETWORK_STAGES: [&str; 4] = ["all", "one-server", "one-client", FEWER_SERVERS];
/// All clients to fewer and fewer servers.
pub const FEWER_SERVERS: &str = "fewer-servers";
/// Suffix of the stages' names where data goes to the clients.
pub const READ_SUFFIX: &str = "-read";
/// All clients and servers together bind only where they carry less than this share of what the
/// ends allow.
pub const NETWORK_BINDS_BELOW: f64 = 0.9;
/// A step that reaches this share of its lowest limit is bound by it.
const BINDS_FROM: f64 = 0.85;
/// A round is divided into so many equal parts, for the intervals.
const ROUND_PARTS: u64 = 5;

/// One part of the way between a client's memory and a storage node's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayPart {
    /// NICs of the clients.
    Clients,
    /// Between both sets.
    Network,
    /// NICs of the storage nodes.
    StorageNodeNic,
    /// Their disks.
    Disk,
}

/// Rates measured without the rest, bytes per second, with intervals from equal parts of each
/// measurement. What was not measured is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// One client with all servers.
    pub client: Option<Estimate>,
    /// One storage node with all clients.
    pub node: Option<Estimate>,
    /// All clients with all servers.
    pub network: Option<Estimate>,
    /// One storage node's disk.
    pub disk: Option<Estimate>,
    /// All clients with so many servers, memory to memory; most servers first.
    #[serde(default)]
    pub by_servers: Vec<ByServers>,
    /// Those against the number of servers.
    #[serde(default)]
    pub network_fit: Option<Fit>,
}

/// The network alone with a number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByServers {
    /// How many.
    pub servers: u32,
    /// All flows together.
    pub bytes_per_sec: Estimate,
}

/// What a step cannot exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLimit {
    /// Of what.
    pub side: WayPart,
    /// Of the whole step.
    pub bytes_per_sec: f64,
}

/// The lowest limit of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The lowest one.
    pub lowest: StepLimit,
    /// The step's rate over it.
    pub reached: f64,
    /// Whether the step is bound by it, or stays below for another reason: CPU, NameNode.
    pub binds: bool,
    /// Where only the busiest storage node reaches the limit, and the others have less to do: its
    /// share of the mean of them all. The limit is then what all do while that node is full.
    #[serde(default)]
    pub busiest_share: Option<f64>,
}

/// The rates measured alone for an operation.
#[must_use]
pub fn alone(run: &Run, steps: &[StepAnalysis], operation: StorageOperation) -> Alone {
    let reads = operation.reads();
    let rounds = |name: &str| rounds(run, name, reads);
    let fewer = observations(&rounds(FEWER_SERVERS));
    Alone {
        client: together(&rounds("one-client")),
        node: together(&rounds("one-server")),
        network: together(&rounds("all")),
        disk: disk(steps, reads),
        by_servers: fewer.iter().rev().map(ByServers::of).collect(),
        network_fit: fit::fit(&fewer),
    }
}

/// One round of the network alone.
struct Round {
    servers: u32,
    bytes_per_sec: f64,
    /// The same of its equal parts.
    parts: Vec<f64>,
}

/// Rounds of a stage all of whose flows were measured, in order.
fn rounds(run: &Run, name: &str, reads: bool) -> Vec<Round> {
    let name = match reads {
        true => format!("{name}{READ_SUFFIX}"),
        false => name.to_owned(),
    };
    let mut stages = run.plan.stages.iter();
    let Some(stage) = stages.position(|stage| stage.name == name) else {
        return Vec::new();
    };
    let mut by_round: BTreeMap<_, Vec<&FlowRecord>> = BTreeMap::new();
    let of_stage = run.flows.iter();
    for flow in of_stage.filter(|flow| flow.stage == StageIndex(stage as u32)) {
        by_round.entry(flow.round).or_default().push(flow);
    }
    let whole = by_round.values();
    whole.filter_map(|flows| Round::of(flows, reads)).collect()
}

impl Round {
    fn of(flows: &[&FlowRecord], reads: bool) -> Option<Self> {
        let server = |flow: &&FlowRecord| if reads { flow.src } else { flow.dst };
        let servers: BTreeSet<_> = flows.iter().map(server).collect();
        let rates: Option<Vec<f64>> = flows.iter().map(|flow| flow.bits_per_sec()).collect();
        let parts: Option<Vec<f64>> = (0..ROUND_PARTS).map(|at| part(flows, at)).collect();
        Some(Self {
            servers: servers.len() as u32,
            bytes_per_sec: rates?.iter().sum::<f64>() / 8.0,
            parts: parts.unwrap_or_default(),
        })
    }
}

/// Bytes per second that the receivers of all flows counted in an equal part of the window. `None`
/// where one of them counted no intervals.
fn part(flows: &[&FlowRecord], at: u64) -> Option<f64> {
    let mut sum = 0.0;
    for flow in flows {
        let end = flow.receiver.as_ref().filter(|e| !e.intervals.is_empty())?;
        let length_ns = end.window_ns / ROUND_PARTS;
        let from_ns = at * length_ns;
        let inside = end.intervals.iter();
        let bytes: f64 = inside.map(|i| inside_of(i, from_ns, length_ns)).sum();
        sum += bytes * 1e9 / length_ns.max(1) as f64;
    }
    Some(sum)
}

/// Bytes of an interval that lie in a span, as if it moved them evenly.
fn inside_of(interval: &Interval, from_ns: u64, length_ns: u64) -> f64 {
    let end_ns = interval.offset_ns.saturating_add(interval.length_ns);
    let until_ns = end_ns.min(from_ns.saturating_add(length_ns));
    let shared_ns = until_ns.saturating_sub(interval.offset_ns.max(from_ns));
    interval.bytes as f64 * shared_ns as f64 / interval.length_ns.max(1) as f64
}

/// Mean over the rounds.
fn together(rounds: &[Round]) -> Option<Estimate> {
    let mean = mean(rounds.iter().map(|round| round.bytes_per_sec))?;
    let parts: Vec<f64> = rounds.iter().flat_map(|r| r.parts.clone()).collect();
    Some(fit::estimate(mean, &parts))
}

/// By number of servers, fewest first.
fn observations(rounds: &[Round]) -> Vec<Observation> {
    let mut by_servers: BTreeMap<u32, Vec<&Round>> = BTreeMap::new();
    for round in rounds {
        by_servers.entry(round.servers).or_default().push(round);
    }
    let seen = by_servers.into_iter().filter_map(|(nodes, rounds)| {
        Some(Observation {
            nodes,
            rate: mean(rounds.iter().map(|round| round.bytes_per_sec))?,
            parts: rounds.iter().flat_map(|r| r.parts.clone()).collect(),
        })
    });
    seen.collect()
}

impl ByServers {
    fn of(seen: &Observation) -> Self {
        Self {
            servers: seen.nodes,
            bytes_per_sec: fit::estimate(seen.rate, &seen.parts),
        }
    }
}

/// One node's, with the scatter of all together.
fn disk(steps: &[StepAnalysis], reads: bool) -> Option<Estimate> {
    let is_this = |step: &&StepAnalysis| step.is_disk_alone && step.operation.reads() == reads;
    let alone = || steps.iter().filter(is_this);
    let rates = alone().flat_map(|step| &step.clients);
    let mean = mean(rates.filter_map(|node| node.bytes_per_sec))?;
    let parts = alone().filter_map(|step| {
        let nodes = step.clients.len().max(1) as f64;
        let parts = &step.common.as_ref()?.parts_bytes_per_sec;
        Some(parts.iter().map(move |rate| rate / nodes))
    });
    Some(fit::estimate(mean, &parts.flatten().collect::<Vec<_>>()))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

impl Alone {
    /// What a step with so many clients and storage nodes cannot exceed; each byte is written to
    /// `copies` nodes.
    #[must_use]
    pub fn limits(&self, clients: u32, nodes: u32, copies: u32) -> Vec<StepLimit> {
        let shared = f64::from(nodes) / f64::from(copies.clamp(1, nodes.max(1)));
        let limit = |side, rate: Option<Estimate>, times: f64| {
            let bytes_per_sec = rate?.value * times;
            Some(StepLimit {
                side,
                bytes_per_sec,
            })
        };
        let clients = limit(WayPart::Clients, self.client, f64::from(clients));
        let nic = limit(WayPart::StorageNodeNic, self.node, shared);
        let disk = limit(WayPart::Disk, self.disk, shared);
        let ends = [&clients, &nic].into_iter().flatten();
        let ends = ends.map(|end| end.bytes_per_sec).reduce(f64::min);
        let network = limit(WayPart::Network, self.network_of(nodes), 1.0).filter(|network| {
            ends.is_none_or(|ends| network.bytes_per_sec < NETWORK_BINDS_BELOW * ends)
        });
        [clients, nic, disk, network]
            .into_iter()
            .flatten()
            .collect()
    }

    /// All clients with so many servers, or else with all of them.
    fn network_of(&self, servers: u32) -> Option<Estimate> {
        let mut known = self.by_servers.iter();
        let known = known.find(|by| by.servers == servers);
        known.map(|by| by.bytes_per_sec).or(self.network)
    }
}

/// The lowest limit against what was reached; where that does not bind, the limit of the busiest of
/// the storage nodes, which has `busiest_share` of the mean of them all. `None` without limits.
#[must_use]
pub fn binding(limits: &[StepLimit], rate: f64, busiest_share: Option<f64>) -> Option<Binding> {
    let by_rate = |a: &&StepLimit, b: &&StepLimit| a.bytes_per_sec.total_cmp(&b.bytes_per_sec);
    let against = |lowest: StepLimit, busiest_share| {
        let reached = rate / lowest.bytes_per_sec;
        Binding {
            lowest,
            reached,
            binds: reached >= BINDS_FROM,
            busiest_share,
        }
    };
    let even = against(*limits.iter().min_by(by_rate)?, None);
    let of_nodes = limits
        .iter()
        .filter(|limit| matches!(limit.side, WayPart::StorageNodeNic | WayPart::Disk))
        .min_by(by_rate);
    let uneven = of_nodes.zip(busiest_share).map(|(limit, share)| {
        let bytes_per_sec = limit.bytes_per_sec / share.max(1.0);
        let side = limit.side;
        against(
            StepLimit {
                side,
                bytes_per_sec,
            },
            Some(share),
        )
    });
    Some(uneven.filter(|u| !even.binds && u.binds).unwrap_or(even))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: f64) -> Option<Estimate> {
        Some(fit::estimate(value, &[]))
    }

    fn alone() -> Alone {
        Alone {
            client: rate(119.6),
            node: rate(191.3),
            network: rate(478.0),
            disk: rate(1000.0),
            ..Alone::default()
        }
    }

    fn bound(alone: &Alone, nodes: u32, copies: u32, rate: f64) -> Binding {
        binding(&alone.limits(4, nodes, copies), rate, None).unwrap()
    }

    #[test]
    fn the_lowest_limit_binds() {
        let side = |nodes, copies, rate| bound(&alone(), nodes, copies, rate).lowest.side;
        assert_eq!(side(4, 1, 470.0), WayPart::Clients);
        assert_eq!(side(2, 1, 380.0), WayPart::StorageNodeNic);
        assert_eq!(side(4, 3, 250.0), WayPart::StorageNodeNic, "three copies");
        let slow = Alone {
            disk: rate(50.0),
            ..alone()
        };
        assert_eq!(bound(&slow, 3, 1, 148.0).lowest.side, WayPart::Disk);
        let narrow = Alone {
            network: rate(300.0),
            ..alone()
        };
        assert_eq!(bound(&narrow, 4, 1, 290.0).lowest.side, WayPart::Network);
        // Three servers are behind a narrower link than four.
        let uneven = Alone {
            by_servers: vec![ByServers {
                servers: 3,
                bytes_per_sec: fit::estimate(200.0, &[]),
            }],
            ..alone()
        };
        assert_eq!(bound(&uneven, 3, 1, 190.0).lowest.side, WayPart::Network);
        assert_eq!(bound(&uneven, 4, 1, 470.0).lowest.side, WayPart::Clients);
    }

    #[test]
    fn intervals_are_shared_out_over_parts() {
        let interval = Interval {
            offset_ns: 100,
            length_ns: 200,
            bytes: 1000,
        };
        assert!((inside_of(&interval, 0, 150) - 250.0).abs() < 1e-9);
        assert!((inside_of(&interval, 150, 1000) - 750.0).abs() < 1e-9);
        assert!(inside_of(&interval, 300, 100).abs() < 1e-9);
    }

    #[test]
    fn far_below_every_limit_nothing_binds() {
        assert!(!bound(&alone(), 2, 1, 200.0).binds);
        assert!(bound(&alone(), 2, 1, 380.0).binds);
        assert!(binding(&[], 1.0, None).is_none());
    }

    #[test]
    fn one_full_node_binds_where_the_others_have_less_to_do() {
        let limits = alone().limits(4, 2, 1);
        let found = |rate, share| binding(&limits, rate, Some(share)).unwrap();
        // Of 191.3 a node: 185 and 65.
        let uneven = found(250.0, 1.48);
        assert_eq!((uneven.busiest_share, uneven.binds), (Some(1.48), true));
        assert_eq!(uneven.lowest.side, WayPart::StorageNodeNic);
        assert!((uneven.lowest.bytes_per_sec - 258.5).abs() < 0.1);
        assert_eq!(found(370.0, 1.02).busiest_share, None);
        let idle = found(100.0, 1.48);
        assert_eq!(
            (idle.lowest.side, idle.binds),
            (WayPart::StorageNodeNic, false)
        );
    }
}
