//! Which streams of a run's tests are traced.
//!
//! Every test gives as many, so that each way of loading the network is seen; of a test with many
//! streams per flow the first ones of all flows come before the second ones. Only what the opening
//! end sends can be traced, from the port it sends from.

use ew_model::Inventory;
use ew_model::inventory::HostId;
use ew_model::plan::{End, Flow, FlowId, Round, Stage, TracedStream};
use ew_model::ports::{fresh_seed, pinned_seed};
use ew_model::scenario::Pattern;
use ew_model::workload::{SourcePorts, Tool, WorkloadKind};
use std::collections::{BTreeMap, BTreeSet};

/// Streams of one rack that are enough to see each of its paths: of 64 equal ones, the widest
/// groups that switches are set up with, each is met twelve times, and the chance to miss a certain
/// one is exp(-12).
const ENOUGH_PER_RACK: usize = 768;
/// Streams of a pair whose ports are pinned: more than carried data, to see more paths.
const MIN_PINNED: u32 = 32;
/// Streams of a host in any case.
const MIN_PER_HOST: usize = 12;

/// Gives the stages that trace other tests their flows. The other flows have their numbers already.
pub(crate) fn fill(stages: &mut [&mut Stage], inventory: &Inventory, seed: u64) {
    let mut patterns = stages.iter().map(|stage| &stage.pattern);
    if !patterns.any(|pattern| matches!(pattern, Pattern::OtherTests { .. })) {
        return;
    }
    // A pinned stream is the same in every round, and in every test of the same pairs.
    let mut seen = BTreeSet::new();
    let sources: Vec<Vec<Flow>> = stages
        .iter()
        .filter(|stage| is_traceable(stage))
        .map(|stage| streams_of(stage, inventory, seed, &mut seen))
        .collect();
    let mut next = stages
        .iter()
        .flat_map(|stage| &stage.rounds)
        .map(|round| round.flows.len() as u32)
        .sum();
    for stage in stages {
        let Pattern::OtherTests { per_host } = stage.pattern else {
            continue;
        };
        let mut flows = chosen(&sources, inventory, per_host as usize);
        for flow in &mut flows {
            flow.id = FlowId(next);
            next += 1;
        }
        stage.rounds = vec![Round {
            sample: 0,
            senders_per_rack: None,
            flows,
        }];
    }
}

/// Bulk TCP of our engine whose ports are known before, and whose rates show something about single
/// paths: one connection between two hosts, or the same ones in every round.
fn is_traceable(stage: &Stage) -> bool {
    let workload = &stage.workload;
    let is_many_to_one = matches!(
        stage.pattern,
        Pattern::Incast { .. } | Pattern::Outcast { .. } | Pattern::FanIn | Pattern::FanInFewer
    );
    workload.kind == WorkloadKind::TcpStream
        && workload.tool == Tool::Engine
        && (workload.streams == 1 || workload.source_ports == SourcePorts::Pinned)
        && workload.source_ports != SourcePorts::Kernel
        && !is_many_to_one
        && !matches!(stage.pattern, Pattern::Pods { .. })
}

/// Of flows between racks where there are racks, the first stream of each, then the second ones.
fn streams_of(
    stage: &Stage,
    inventory: &Inventory,
    seed: u64,
    seen: &mut BTreeSet<Seen>,
) -> Vec<Flow> {
    let crosses =
        |flow: &&Flow| inventory.racks.is_empty() || inventory.crosses_racks(flow.src, flow.dst);
    let of_opener = |flow: &&Flow| flow.opened_by == End::Src && !flow.is_aggressor;
    let flows: Vec<&Flow> = (stage.rounds.iter())
        .flat_map(|round| &round.flows)
        .filter(|flow| of_opener(flow) && crosses(flow))
        .collect();
    let streams = match stage.workload.source_ports {
        SourcePorts::Pinned => stage.workload.streams.max(MIN_PINNED),
        SourcePorts::Fresh | SourcePorts::Kernel => stage.workload.streams,
    };
    let streams = u16::try_from(streams).unwrap_or(u16::MAX);
    let port_seed = |flow: &Flow| match stage.workload.source_ports {
        SourcePorts::Pinned => pinned_seed(seed, flow.client(), flow.server()),
        SourcePorts::Fresh | SourcePorts::Kernel => fresh_seed(seed, flow.id),
    };
    let traced = |stream: u16, flow: &Flow| Flow {
        lane: None,
        traces: Some(TracedStream {
            port_seed: port_seed(flow),
            stream,
        }),
        ..flow.clone()
    };
    let all = (0..streams).flat_map(|stream| flows.iter().map(move |flow| traced(stream, flow)));
    all.filter(|flow| seen.insert((flow.src, flow.dst, flow.traces.map(key))))
        .collect()
}

/// A stream: its ends, and what its port comes from.
type Seen = (HostId, HostId, Option<(u64, u16)>);

fn key(traced: TracedStream) -> (u64, u16) {
    (traced.port_seed, traced.stream)
}

/// The tests interleaved, until every host has its share.
fn chosen(sources: &[Vec<Flow>], inventory: &Inventory, per_host: usize) -> Vec<Flow> {
    let mut sizes: BTreeMap<_, usize> = BTreeMap::new();
    for host in inventory.host_ids() {
        *sizes.entry(inventory.rack_of(host)).or_default() += 1;
    }
    let share = |host: HostId| {
        let enough = ENOUGH_PER_RACK / sizes[&inventory.rack_of(host)].max(1);
        enough.max(MIN_PER_HOST).min(per_host)
    };
    let mut queues: Vec<BTreeMap<HostId, std::vec::IntoIter<Flow>>> =
        sources.iter().map(|flows| by_host(flows)).collect();
    let mut chosen = Vec::new();
    for host in inventory.host_ids() {
        let mut own: Vec<_> = queues.iter_mut().filter_map(|q| q.remove(&host)).collect();
        let before = chosen.len();
        while chosen.len() - before < share(host) && own.iter().any(|flows| flows.len() > 0) {
            let left = share(host) - (chosen.len() - before);
            chosen.extend(own.iter_mut().filter_map(Iterator::next).take(left));
        }
    }
    chosen
}

fn by_host(flows: &[Flow]) -> BTreeMap<HostId, std::vec::IntoIter<Flow>> {
    let mut of_host: BTreeMap<HostId, Vec<Flow>> = BTreeMap::new();
    for flow in flows {
        of_host.entry(flow.src).or_default().push(flow.clone());
    }
    let queues = of_host.into_iter();
    queues
        .map(|(host, flows)| (host, flows.into_iter()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::MIN_PINNED;
    use crate::pattern::tests::{flat, inventory};
    use crate::{plan, scenario};
    use ew_model::inventory::HostId;
    use ew_model::plan::Plan;
    use ew_model::ports::source_port;
    use ew_model::workload::SourcePorts;
    use std::collections::{BTreeMap, BTreeSet};

    fn qualify(sizes: &[usize]) -> Plan {
        let text = scenario::builtin("qualify").unwrap();
        let scenario = scenario::parse(text, "qualify", &[]).unwrap();
        plan(&scenario, &inventory(sizes), 5).unwrap()
    }

    /// Client, server and source port.
    type Tuple = (HostId, HostId, u16);

    #[test]
    fn what_is_traced_was_measured_and_each_stream_once() {
        let plan = qualify(&[4, 4, 6]);
        let trace = plan.stages.iter().find(|s| s.name == "path trace").unwrap();
        let mut measured: BTreeMap<&str, BTreeSet<Tuple>> = BTreeMap::new();
        for stage in &plan.stages {
            for flow in stage.rounds.iter().flat_map(|round| &round.flows) {
                let Some(seed) = plan
                    .port_seed(stage, flow)
                    .filter(|_| flow.traces.is_none())
                else {
                    continue;
                };
                // Of pinned ports more are traced than carry data.
                let streams = match stage.workload.source_ports {
                    SourcePorts::Pinned => MIN_PINNED,
                    _ => stage.workload.streams,
                };
                let ports = (0..streams).map(|n| source_port(seed, n, 0));
                let tuples = ports.map(|port| (flow.client(), flow.server(), port));
                measured.entry(&stage.name).or_default().extend(tuples);
            }
        }
        let traced: Vec<Tuple> = (trace.rounds[0].flows.iter())
            .map(|flow| {
                let seed = plan.port_seed(trace, flow).unwrap();
                let port = source_port(seed, flow.first_stream().into(), 0);
                (flow.src, flow.dst, port)
            })
            .collect();
        let distinct: BTreeSet<_> = traced.iter().copied().collect();
        assert_eq!(distinct.len(), traced.len());
        let of = |name: &str| distinct.intersection(&measured[name]).count();
        assert_eq!(
            measured
                .values()
                .flatten()
                .filter(|t| distinct.contains(t))
                .collect::<BTreeSet<_>>()
                .len(),
            distinct.len()
        );
        assert!(
            ["single flow", "paths", "mesh"]
                .iter()
                .all(|name| of(name) >= 14 * 4),
            "{traced:?}"
        );
        let mut ids = plan
            .stages
            .iter()
            .flat_map(|s| &s.rounds)
            .flat_map(|r| &r.flows);
        assert!((0..).zip(&mut ids).all(|(n, flow)| flow.id.0 == n));
    }

    #[test]
    fn large_racks_trace_no_more_than_they_need() {
        let count = |sizes: &[usize]| {
            let plan = qualify(sizes);
            let stage = plan.stages.iter().find(|s| s.name == "path trace").unwrap();
            stage.rounds[0].flows.len()
        };
        assert_eq!(count(&[40, 40]), 80 * (768 / 40));
        assert!((96..=8 * 192).contains(&count(&[4, 4])));
    }

    #[test]
    fn nothing_to_trace_is_a_test_dropped() {
        let text = "name: t\ntests:\n  - {pattern: pair, workload: tcp-rr}\n  - {name: trace, pattern: other-tests, workload: trace}\n";
        let scenario = scenario::parse(text, "t", &[]).unwrap();
        let plan = plan(&scenario, &flat(4), 1).unwrap();
        assert_eq!(plan.stages.len(), 1);
        assert!(
            plan.dropped_tests[0].contains("nothing to trace"),
            "{:?}",
            plan.dropped_tests
        );
    }
}
