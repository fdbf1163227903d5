//! Why a path is lower than its baseline: one function per cause, each with the counters that show
//! it.

mod case;
mod cpu_limit;
mod nic;
mod packets;

use super::difference::{MIN_DIFFERENCE, is_significant};
use super::matched::Match;
use case::{Case, of_unknown_share};
use ew_evidence::observations::{Observations, StageView};
use ew_evidence::telemetry::Telemetry;
use ew_model::HostId;
use ew_model::analysis::ConntrackRefusals;
use ew_model::facts::{CpuCounters, HostSample};
use ew_model::pods::{
    DearerPath, PodCause, PodCauseFacts, PodComparison, PodConntrack, PodPath, RefusingNode,
    RestOfDifference, SaturatedSoftirq, ServicePath, SlowerPath,
};
use ew_model::record::{EndRecord, FlowRecord};
use ew_stats::{median, median_estimate};
use std::collections::BTreeMap;

/// A CPU with no time left.
const SATURATED: f64 = 0.9;
/// Of which packet handling takes at least this part.
const BY_SOFTIRQ: f64 = 0.5;
/// CPU time per byte or transaction, over the baseline's, from which on the path costs more.
const DEARER: f64 = 1.15;
/// Fewer happen now and then on a busy node, and cost nothing that is seen.
const MIN_REFUSALS_PER_SEC: f64 = 1.0;

/// All causes that counters show; "not determined" when they show none, or leave most of the
/// difference.
pub(super) fn find(
    observations: &Observations<'_>,
    telemetry: &Telemetry<'_>,
    found: &Match<'_, '_>,
    comparison: &PodComparison,
    all: &[PodComparison],
) -> Vec<PodCause> {
    let case = &Case {
        observations,
        telemetry,
        found,
        comparison,
    };
    let mut causes: Vec<PodCause> = cpu_limit::find(case).into_iter().collect();
    causes.extend(packets::smaller(case));
    let explained = causes
        .iter()
        .any(|cause| cause.share.is_none_or(|share| share >= 0.5));
    if !explained {
        let refusals = conntrack(case);
        if refusals.is_none() {
            causes.extend(service_path(case, all));
        }
        causes.extend(refusals);
        causes.extend(softirq(case));
        causes.extend(nic::node_nic(case));
        if causes.is_empty() {
            causes.extend(dearer_path(case));
        }
    }
    let determined = causes
        .iter()
        .any(|cause| cause.share.is_none_or(|share| share >= 0.3));
    if !determined {
        let rest = RestOfDifference {
            is_partly_explained: !causes.is_empty(),
        };
        causes.push(of_unknown_share(PodCauseFacts::NotDetermined(rest)));
    }
    causes
}

/// Connections that a node's connection tracking refuses with pods, and not without.
fn conntrack(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let agents = Case::agents(case.found.stage).into_iter();
    let mut nodes: Vec<RefusingNode> = agents.filter_map(|host| refusals(case, host)).collect();
    nodes.sort_by(|a, b| b.packets_per_sec.total_cmp(&a.packets_per_sec));
    nodes.dedup_by_key(|found| found.host);
    if nodes.is_empty() {
        return None;
    }
    let found = PodCauseFacts::Conntrack(PodConntrack { nodes });
    Some(of_unknown_share(found))
}

/// What a node's connection tracking refused.
fn refusals(case: &Case<'_, '_, '_>, host: HostId) -> Option<RefusingNode> {
    let node = case.node_of(host)?;
    let counters = |sample: &HostSample| sample.causes.as_ref()?.conntrack;
    // A failed insertion counts as a dropped packet, too, on most kernels.
    let refused = |sample: &HostSample| counters(sample).map(|c| c.insert_failed.max(c.dropped));
    let of_stage = |index| move |stage| stage == index;
    let telemetry = case.telemetry;
    let with_pods = telemetry.cover_beside(node, host, of_stage(case.found.index))?;
    let packets_per_sec = with_pods.per_second(refused)?;
    let without = telemetry.cover(node, of_stage(case.found.baseline_index));
    let baseline_packets_per_sec = without.and_then(|c| c.per_second(refused)).unwrap_or(0.0);
    if packets_per_sec < MIN_REFUSALS_PER_SEC || packets_per_sec < 2.0 * baseline_packets_per_sec {
        return None;
    }
    let fullest = with_pods.readings().filter_map(counters);
    let fullest = fullest.max_by_key(|counters| counters.entries);
    Some(RefusingNode {
        host: node,
        packets_per_sec,
        baseline_packets_per_sec,
        refused: ConntrackRefusals {
            packets: with_pods.grown(refused).unwrap_or(0.0) as u64,
            entries: fullest.map_or(0, |counters| counters.entries),
            max_entries: fullest.and_then(|counters| counters.max_entries),
        },
    })
}

/// Through a Service against the same pods without it.
fn service_path(case: &Case<'_, '_, '_>, all: &[PodComparison]) -> Option<PodCause> {
    if !case.found.path.translates() {
        return None;
    }
    let direct = all.iter().find(|other| {
        other.path == PodPath::OtherNode
            && other.kind == case.comparison.kind
            && other.streams == case.comparison.streams
    })?;
    let through = case.comparison.ratio.value / direct.ratio.value;
    let lost = 1.0 - through;
    let apart = case.comparison.ratio.high < direct.ratio.low;
    if lost < MIN_DIFFERENCE || !apart {
        return None;
    }
    Some(PodCause {
        facts: PodCauseFacts::ServicePath(ServicePath {
            direct_stage: direct.stage.clone(),
            ratio: through,
        }),
        share: Some((lost / case.drop()).min(1.0)),
    })
}

/// One CPU of a node that packet handling fills with pods and not without.
fn softirq(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let with_pods = busiest(case, case.found.stage, case.found.index)?;
    let without = busiest(case, case.found.baseline, case.found.baseline_index);
    let is_full = |cpu: &BusyCpu| cpu.busy >= SATURATED && cpu.softirq >= BY_SOFTIRQ * cpu.busy;
    if !is_full(&with_pods) || without.as_ref().is_some_and(is_full) {
        return None;
    }
    let found = PodCauseFacts::Softirq(SaturatedSoftirq {
        host: with_pods.host,
        cpu: with_pods.cpu,
        busy_share: with_pods.busy,
        softirq_share: with_pods.softirq,
        baseline_busy_share: without.map(|cpu| cpu.busy),
    });
    Some(of_unknown_share(found))
}

struct BusyCpu {
    host: HostId,
    cpu: u32,
    busy: f64,
    softirq: f64,
}

fn busiest(case: &Case<'_, '_, '_>, view: &StageView<'_>, stage: usize) -> Option<BusyCpu> {
    let of = |host| -> Vec<BusyCpu> {
        let Some(cover) = case.telemetry.cover(host, |index| index == stage) else {
            return Vec::new();
        };
        let grown = |ticks: fn(&CpuCounters) -> u64| {
            let keyed =
                move |sample: &HostSample| sample.cpus.iter().map(|c| (c.cpu, ticks(c))).collect();
            cover.grown_by_key(None, keyed)
        };
        let idle: BTreeMap<u32, f64> = grown(|c| c.idle_ticks + c.iowait_ticks.unwrap_or(0));
        let softirq = grown(|c| c.softirq_ticks.unwrap_or(0) + c.irq_ticks.unwrap_or(0));
        let all = grown(all_ticks);
        let shares = all
            .iter()
            .filter(|(_, all)| **all > 0.0)
            .map(|(cpu, all)| BusyCpu {
                host,
                cpu: *cpu,
                busy: (all - idle.get(cpu).copied().unwrap_or(0.0)) / cover.cpu_ticks(*all),
                softirq: softirq.get(cpu).copied().unwrap_or(0.0) / cover.cpu_ticks(*all),
            });
        shares.collect()
    };
    let all = Case::agents(view).into_iter().flat_map(of);
    all.max_by(|a, b| (a.busy * a.softirq).total_cmp(&(b.busy * b.softirq)))
}

fn all_ticks(cpu: &CpuCounters) -> u64 {
    let more = [
        cpu.iowait_ticks,
        cpu.irq_ticks,
        cpu.softirq_ticks,
        cpu.steal_ticks,
    ];
    let more: u64 = more.iter().flatten().sum();
    cpu.user_ticks + cpu.nice_ticks + cpu.system_ticks + cpu.idle_ticks + more
}

/// More CPU time per byte or transaction than the node's own network takes, where CPUs are short or
/// every transaction waits for them.
fn dearer_path(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let is_bulk = case.comparison.kind.is_bulk();
    let busy = case
        .comparison
        .node_cpu
        .iter()
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    if is_bulk && busy < SATURATED {
        return None;
    }
    let demand = |view: &StageView<'_>| {
        let rows = view.measured();
        let values: Vec<f64> = rows.filter_map(|row| demand_ns(row, is_bulk)).collect();
        median(&values)
    };
    let (with_pods, without) = (demand(case.found.stage)?, demand(case.found.baseline)?);
    if with_pods / without < DEARER {
        return latency_alone(case);
    }
    let found = PodCauseFacts::DearerPath(DearerPath {
        cpu_ns: with_pods,
        baseline_cpu_ns: without,
    });
    Some(of_unknown_share(found))
}

/// One request at a time: the whole difference is time on the way.
fn latency_alone(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let times = |view: &StageView<'_>| {
        let rows = view.measured();
        let times = rows
            .filter_map(ew_evidence::observations::typical_ns)
            .map(|ns| ns as f64);
        median_estimate(&times.collect::<Vec<_>>())
    };
    let (with_pods, without) = (times(case.found.stage)?, times(case.found.baseline)?);
    let more_ns = with_pods.value - without.value;
    let pairs = is_significant(&case.comparison.ratio, case.comparison.p_value);
    if case.comparison.kind.is_bulk() || more_ns <= 0.0 || !pairs {
        return None;
    }
    let found = PodCauseFacts::SlowerPath(SlowerPath {
        transaction_ns: with_pods.value,
        baseline_transaction_ns: without.value,
    });
    Some(of_unknown_share(found))
}

/// CPU time of both nodes over what they moved.
fn demand_ns(row: &FlowRecord, per_byte: bool) -> Option<f64> {
    let of = |end: &Option<EndRecord>| {
        let cpu = end.as_ref()?.cpu.as_ref()?;
        let moved = if per_byte {
            cpu.moved_bytes / 1024
        } else {
            cpu.transactions
        };
        (moved > 0).then(|| cpu.busy_ns as f64 / moved as f64)
    };
    Some(of(&row.sender)? + of(&row.receiver)?)
}
