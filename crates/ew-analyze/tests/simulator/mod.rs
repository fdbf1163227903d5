//! A cluster that exists only as numbers: true capacities, a plan, weighted max-min sharing with
//! noise. It knows the truth, so the analysis can be compared with it. It shares no code with the
//! expectation under test.

use ew_model::facts::{HostFacts, InterfaceFacts};
use ew_model::latency::{Histogram, Latency};
use ew_model::plan::{Flow, RoundIndex, Stage, StageIndex};
use ew_model::record::{
    EndRecord, FlowOutcome, FlowRecord, Interval, StreamRecord, TcpInfo, TracedPath,
};
use ew_model::run::{Outcome, Run, RunManifest};
use ew_model::{Host, HostId, Inventory, Plan, Rack, RackId, WorkloadKind};
use ew_stats::splitmix;
use std::collections::BTreeMap;

/// Payload a 200 Mb/s lab link carries.
pub(crate) const GOODPUT: f64 = 200e6 * 1448.0 / 1514.0;

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = splitmix(self.0);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal, sigma 1.
    pub(crate) fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// The truth about a cluster.
#[derive(Clone)]
pub(crate) struct Truth {
    pub(crate) inventory: Inventory,
    pub(crate) tx: Vec<f64>,
    pub(crate) rx: Vec<f64>,
    pub(crate) up: Vec<f64>,
    pub(crate) down: Vec<f64>,
    /// Ordered pairs with a bad member link.
    pub(crate) pair: BTreeMap<(HostId, HostId), f64>,
    pub(crate) noise: f64,
    /// Probability of a flow that is off by up to 20% for no reason.
    pub(crate) hiccups: f64,
    /// Probability of a round in which every flow loses 10 to 50%, as on a machine that is short
    /// of CPU.
    pub(crate) disturbances: f64,
    /// How much less than its limit a flow with a slow end gets, one sigma: a shaper in the way of
    /// TCP is unsteady.
    pub(crate) unsteadiness: f64,
    /// From this moment on (stage, round) the host is dead.
    pub(crate) dies: Option<(HostId, usize, usize)>,
    pub(crate) link_speeds: BTreeMap<HostId, f64>,
}

impl Truth {
    /// Racks of the given sizes, uplinks so narrow that the rack is oversubscribed `ratio`:1.
    pub(crate) fn new(sizes: &[usize], ratio: f64) -> Self {
        let mut hosts = Vec::new();
        for (rack, size) in sizes.iter().enumerate() {
            for host in 0..*size {
                hosts.push(Host {
                    name: format!("r{}h{}", rack + 1, host + 1),
                    address: format!("198.18.{}.{}", rack + 1, host + 1).parse().ok(),
                    rack: Some(RackId(rack as u32)),
                });
            }
        }
        let racks = (1..=sizes.len())
            .map(|r| Rack {
                name: format!("rack{r}"),
            })
            .collect();
        let up: Vec<f64> = sizes.iter().map(|n| *n as f64 * GOODPUT / ratio).collect();
        Self {
            tx: vec![GOODPUT; hosts.len()],
            rx: vec![GOODPUT; hosts.len()],
            down: up.clone(),
            up,
            pair: BTreeMap::new(),
            noise: 0.02,
            hiccups: 0.01,
            disturbances: 0.0,
            unsteadiness: 0.0,
            dies: None,
            link_speeds: BTreeMap::new(),
            inventory: Inventory { hosts, racks },
        }
    }

    pub(crate) fn host(&self, name: &str) -> HostId {
        self.inventory.find(name).unwrap_or(HostId(u32::MAX))
    }

    /// Runs a plan over the cluster.
    pub(crate) fn run(&self, scenario: ew_model::Scenario, plan: Plan, seed: u64) -> Run {
        let mut dice = Dice(seed ^ 0xD1CE);
        let mut flows = Vec::new();
        for (s, stage) in plan.stages.iter().enumerate() {
            for r in 0..stage.rounds.len() {
                flows.extend(self.round(stage, s, r, &mut dice));
            }
        }
        let mut lost = BTreeMap::new();
        if let Some((host, _, _)) = self.dies {
            lost.insert(host, "control link closed".to_owned());
        }
        Run {
            manifest: RunManifest {
                format_version: 1,
                id: "simulated".into(),
                version: "0".into(),
                started_unix_ns: 0,
                finished_unix_ns: None,
                fleet: "simulated".into(),
                command: Vec::new(),
                scenario,
                inventory: self.inventory.clone(),
                seed,
                node_labels: BTreeMap::new(),
                barriers: Vec::new(),
                plan_hash: String::new(),
                outcome: Outcome::Complete,
                controller_peak_bytes: None,
                controller_cpu_ns: None,
            },
            plan,
            facts: self.facts(),
            failed: BTreeMap::new(),
            lost,
            returned: BTreeMap::new(),
            flows,
            clock_offset_ns: BTreeMap::new(),
            clock_error_ns: BTreeMap::new(),
            samples: BTreeMap::new(),
            rejected_connections: BTreeMap::new(),
            warnings: Vec::new(),
            unclean: Vec::new(),
            storage: Vec::new(),
            hdfs: None,
        }
    }

    fn facts(&self) -> BTreeMap<HostId, HostFacts> {
        let facts = |host: HostId| HostFacts {
            kernel: "6.12".into(),
            interfaces: vec![InterfaceFacts {
                name: "eth0".into(),
                mtu_bytes: Some(1500),
                driver: Some("veth".into()),
                speed_bits_per_sec: self.link_speeds.get(&host).copied(),
                addresses: self.inventory.host(host).address.into_iter().collect(),
                up: true,
                ..InterfaceFacts::default()
            }],
            ..HostFacts::default()
        };
        self.inventory
            .host_ids()
            .map(|host| (host, facts(host)))
            .collect()
    }

    fn is_dead(&self, host: HostId, stage: usize, round: usize) -> bool {
        self.dies
            .is_some_and(|(dead, s, r)| dead == host && (stage, round) >= (s, r))
    }

    fn round(&self, stage: &Stage, s: usize, r: usize, dice: &mut Dice) -> Vec<FlowRecord> {
        let round = &stage.rounds[r];
        let alive: Vec<&Flow> = round
            .flows
            .iter()
            .filter(|f| !self.is_dead(f.src, s, r) && !self.is_dead(f.dst, s, r))
            .collect();
        let mut rates = self.shares(&alive, dice).into_iter();
        let disturbance = self.disturbance(dice);
        let mut record = |flow: &Flow, dice: &mut Dice| {
            let dead = self.is_dead(flow.src, s, r) || self.is_dead(flow.dst, s, r);
            let rate = if dead { None } else { rates.next() };
            let mut noise = 1.0 + self.noise * dice.bell();
            if let Some(level) = disturbance {
                noise *= (level * (1.0 + 0.05 * dice.bell())).min(1.0);
            }
            if self.unsteadiness > 0.0 && self.has_slow_end(flow) {
                noise *= 1.0 - (self.unsteadiness * dice.bell().abs()).min(0.5);
            }
            if dice.unit() < self.hiccups {
                noise *= 0.8 + 0.4 * dice.unit();
            }
            let rate = rate.map(|rate| (rate * noise).min(1.002 * rate.max(GOODPUT)));
            let ends = rate.map(|rate| ends(stage, rate, dice));
            FlowRecord {
                is_aggressor: flow.is_aggressor,
                stage: StageIndex(s as u32),
                round: RoundIndex(r as u32),
                flow: flow.id,
                sample: round.sample,
                src: flow.src,
                dst: flow.dst,
                outcome: match ends {
                    Some(_) => FlowOutcome::Measured,
                    None => FlowOutcome::Missing {
                        reason: "host was lost".into(),
                    },
                },
                sender: ends.clone().map(|ends| ends.0),
                receiver: ends.map(|ends| ends.1),
            }
        };
        round.flows.iter().map(|flow| record(flow, dice)).collect()
    }

    /// What a disturbed round leaves of every flow. `None` for a steady round, without a throw of
    /// the dice when there are no disturbances, so that seeds keep their meaning.
    fn disturbance(&self, dice: &mut Dice) -> Option<f64> {
        let is_disturbed = self.disturbances > 0.0 && dice.unit() < self.disturbances;
        is_disturbed.then(|| 0.5 + 0.4 * dice.unit())
    }

    fn has_slow_end(&self, flow: &Flow) -> bool {
        self.tx[flow.src.index()].min(self.rx[flow.dst.index()]) < GOODPUT
    }

    /// The resources on a flow's way with their capacities.
    fn way(&self, flow: &Flow) -> Vec<((u8, u32, u32), f64)> {
        let (src, dst) = (flow.src, flow.dst);
        let mut way = vec![
            ((0, src.0, 0), self.tx[src.index()]),
            ((1, dst.0, 0), self.rx[dst.index()]),
        ];
        if let Some(limit) = self.pair.get(&(src, dst)) {
            way.push(((4, src.0, dst.0), *limit));
        }
        if let (Some(a), Some(b)) = (self.inventory.rack_of(src), self.inventory.rack_of(dst))
            && a != b
        {
            way.push(((2, a.0, 0), self.up[a.index()]));
            way.push(((3, b.0, 0), self.down[b.index()]));
        }
        way
    }

    /// Weighted max-min by water filling: TCP splits a bottleneck unevenly.
    fn shares(&self, flows: &[&Flow], dice: &mut Dice) -> Vec<f64> {
        let weights: Vec<f64> = flows.iter().map(|_| 0.5 + dice.unit()).collect();
        let mut number: BTreeMap<(u8, u32, u32), usize> = BTreeMap::new();
        let mut left: Vec<f64> = Vec::new();
        let mut open: Vec<f64> = Vec::new();
        let mut ways: Vec<Vec<usize>> = Vec::new();
        for (flow, weight) in flows.iter().zip(&weights) {
            let mut way = Vec::new();
            for (name, capacity) in self.way(flow) {
                let at = *number.entry(name).or_insert(left.len());
                if at == left.len() {
                    left.push(capacity);
                    open.push(0.0);
                }
                open[at] += weight;
                way.push(at);
            }
            ways.push(way);
        }
        let mut rates: Vec<Option<f64>> = vec![None; flows.len()];
        while rates.iter().any(Option::is_none) {
            let tightest = (0..left.len())
                .filter(|at| open[*at] > 1e-9)
                .min_by(|a, b| (left[*a] / open[*a]).total_cmp(&(left[*b] / open[*b])));
            let Some(full) = tightest else { break };
            let level = (left[full] / open[full]).max(0.0);
            for flow in 0..flows.len() {
                if rates[flow].is_none() && ways[flow].contains(&full) {
                    rates[flow] = Some(level * weights[flow]);
                    for at in &ways[flow] {
                        left[*at] -= level * weights[flow];
                        open[*at] -= weights[flow];
                    }
                }
            }
            open[full] = 0.0;
        }
        rates.into_iter().map(|rate| rate.unwrap_or(0.0)).collect()
    }
}

fn ends(stage: &Stage, rate: f64, dice: &mut Dice) -> (EndRecord, EndRecord) {
    let bytes = (rate * stage.duration_ns as f64 / 8e9) as u64;
    let rtt = 50_000 + (100_000.0 * dice.unit()) as u64;
    let answers = !stage.workload.kind.is_bulk();
    let parts = (stage.duration_ns / 100_000_000).max(1);
    let receiver = EndRecord {
        bytes,
        window_ns: stage.duration_ns,
        intervals: (0..parts)
            .map(|i| Interval {
                offset_ns: i * stage.duration_ns / parts,
                length_ns: stage.duration_ns / parts,
                bytes: bytes / parts,
            })
            .collect(),
        ..EndRecord::default()
    };
    let sender = EndRecord {
        start_skew_ns: (100_000.0 * (dice.unit() - 0.5)) as i64,
        intervals: Vec::new(),
        streams: vec![StreamRecord {
            bytes,
            tcp_info: Some(TcpInfo {
                timestamps: true,
                rtt_us: 900,
                ..TcpInfo::default()
            }),
            retransmits: Some(3),
            spurious_retransmits: None,
            // Switches that answer nothing.
            path: (stage.workload.kind == WorkloadKind::Trace).then(|| TracedPath {
                hops: Vec::new(),
                is_complete: true,
            }),
            ..StreamRecord::default()
        }],
        latency: answers.then(|| Latency {
            times: Histogram::of(rtt, 100),
            uncorrected: None,
        }),
        bytes,
        window_ns: stage.duration_ns,
        ..EndRecord::default()
    };
    (sender, receiver)
}
