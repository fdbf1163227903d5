//! What shows how near two hosts are: the routers between them, what others leave them of a shared
//! uplink, and their round trips. Each as a figure by pair of hosts, at most 0, and larger for
//! hosts that are nearer.

use ew_evidence::observations::typical_ns;
use ew_model::inventory::HostId;
use ew_model::plan::{RoundIndex, StageIndex};
use ew_model::record::FlowRecord;
use ew_model::run::Run;
use ew_model::workload::WorkloadKind;
use std::collections::BTreeMap;

/// A round that loads fewer hosts than this share of them shows no shared uplink.
const MIN_LOADED: f64 = 0.5;

/// Two hosts, the first one before the second.
pub(super) type Pair = (HostId, HostId);

/// Sender, receiver and rate.
type Directed = (HostId, HostId, f64);

/// What a guess is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackEvidence {
    /// Routers on traced paths (TTL): hosts of a rack have the fewest between them.
    Routers,
    /// Rates in rounds that load all hosts: flows inside a rack do not share its uplink.
    Rates,
    /// Round-trip times of small requests without other load.
    RoundTrips,
}

impl RackEvidence {
    /// From what is certain to what other causes may imitate.
    pub(super) const ALL: [Self; 3] = [Self::Routers, Self::Rates, Self::RoundTrips];

    /// By pair; empty where the run has nothing of it.
    pub(super) fn nearness(self, run: &Run) -> BTreeMap<Pair, f64> {
        match self {
            Self::Routers => by_routers(run),
            Self::Rates => by_rates(run),
            Self::RoundTrips => by_round_trips(run),
        }
    }
}

/// Minus the routers above the fewest of any pair: 0 inside a rack, where any pair of one is
/// traced.
fn by_routers(run: &Run) -> BTreeMap<Pair, f64> {
    let mut routers: BTreeMap<Pair, usize> = BTreeMap::new();
    for flow in &run.flows {
        let streams = flow.sender.iter().flat_map(|end| &end.streams);
        let paths = streams.filter_map(|stream| stream.path.as_ref());
        for path in paths.filter(|path| path.is_complete) {
            let fewest = routers.entry(pair(flow)).or_insert(usize::MAX);
            *fewest = path.hops.len().min(*fewest);
        }
    }
    let fewest = routers.values().min().copied().unwrap_or(0);
    let above = |count: usize| match count - fewest {
        0 => 0.0,
        // Two racks of a pod are as different as two of two pods.
        _ => -1.0,
    };
    routers
        .into_iter()
        .map(|(pair, count)| (pair, above(count)))
        .collect()
}

/// Against the max that both ends did: the mean logarithm over rounds.
fn by_rates(run: &Run) -> BTreeMap<Pair, f64> {
    let hosts = run.manifest.inventory.hosts.len() as f64;
    let mut rounds: BTreeMap<(StageIndex, RoundIndex), Vec<Directed>> = BTreeMap::new();
    for flow in run.flows.iter().filter(|flow| !flow.is_aggressor) {
        if let Some(rate) = flow.bits_per_sec().filter(|rate| *rate > 0.0) {
            let round = rounds.entry((flow.stage, flow.round)).or_default();
            round.push((flow.src, flow.dst, rate));
        }
    }
    rounds.retain(|_, flows| flows.len() as f64 >= MIN_LOADED * hosts);
    let mut sent: BTreeMap<HostId, f64> = BTreeMap::new();
    let mut received: BTreeMap<HostId, f64> = BTreeMap::new();
    for (src, dst, rate) in rounds.values().flatten() {
        let max = |max: &mut f64| *max = max.max(*rate);
        max(sent.entry(*src).or_default());
        max(received.entry(*dst).or_default());
    }
    let mut sums: BTreeMap<Pair, (f64, u32)> = BTreeMap::new();
    for (src, dst, rate) in rounds.values().flatten() {
        let reachable = sent[src].min(received[dst]);
        let sum = sums.entry((*src.min(dst), *src.max(dst))).or_default();
        *sum = (sum.0 + (rate / reachable).ln(), sum.1 + 1);
    }
    let mean = |(sum, count): (f64, u32)| sum / f64::from(count);
    sums.into_iter()
        .map(|(pair, sum)| (pair, mean(sum)))
        .collect()
}

/// Against the shortest that both ends have, so that a slow host is not far from everybody. Of a
/// pair's medians the shortest: whatever else is on the path only adds to it.
fn by_round_trips(run: &Run) -> BTreeMap<Pair, f64> {
    let mut trips: BTreeMap<Pair, f64> = BTreeMap::new();
    for flow in run.flows.iter().filter(|flow| is_unloaded_trip(run, flow)) {
        if let Some(time_ns) = typical_ns(flow).filter(|time_ns| *time_ns > 0) {
            let shortest = trips.entry(pair(flow)).or_insert(f64::INFINITY);
            *shortest = shortest.min(time_ns as f64);
        }
    }
    let mut of_hosts: BTreeMap<HostId, f64> = BTreeMap::new();
    for ((a, b), time_ns) in &trips {
        for host in [a, b] {
            let shortest = of_hosts.entry(*host).or_insert(f64::INFINITY);
            *shortest = shortest.min(*time_ns);
        }
    }
    let nearness = |((a, b), time_ns): (Pair, f64)| {
        let shortest_ns = of_hosts[&a].max(of_hosts[&b]);
        ((a, b), (shortest_ns / time_ns).ln())
    };
    trips.into_iter().map(nearness).collect()
}

/// Whether a flow of small requests ran with nothing in its way.
fn is_unloaded_trip(run: &Run, flow: &FlowRecord) -> bool {
    let stage = run.plan.stages.get(flow.stage.0 as usize);
    let is_trip = stage.is_some_and(|stage| {
        let kind = stage.workload.kind;
        let is_loaded = stage
            .rounds
            .iter()
            .any(|round| round.flows.iter().any(|other| other.is_aggressor));
        matches!(kind, WorkloadKind::TcpRr | WorkloadKind::UdpRr) && !is_loaded
    });
    is_trip && !flow.is_aggressor
}

fn pair(flow: &FlowRecord) -> Pair {
    (flow.src.min(flow.dst), flow.src.max(flow.dst))
}
