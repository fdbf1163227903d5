//! A stage stays below expectation, and nothing found explains it.

use super::case::Case;
use super::incast::is_incast;
use super::slow_at_times;
use crate::finding::{MAX_EVIDENCE, finding_of, plain};
use ew_evidence::criteria::{FULL, LEAST_FILL, SLOW};
use ew_evidence::observations::StageView;
use ew_evidence::quality::{HALF_STARVED, starvation};
use ew_fit::Unexplained;
use ew_model::HostId;
use ew_model::analysis::StageAnalysis;
use ew_model::finding::details::{
    FlowsUnexplained, NoCpuLeft, StageBelow, UnexplainedHost, UnexplainedPair,
};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Symptom};
use ew_model::scenario::{MeshMode, Pattern, Pick};
use std::collections::BTreeMap;

pub(super) fn find(case: &Case<'_>, found: &[Finding]) -> Vec<Finding> {
    let mut findings = stages(case, found);
    findings.extend(unexplained(case));
    findings
}

/// Who the unexplained flows have in common, the most frequent first.
fn by_host(pairs: &[&Unexplained]) -> Vec<UnexplainedHost> {
    let mut counts: BTreeMap<HostId, usize> = BTreeMap::new();
    for pair in pairs {
        *counts.entry(pair.src).or_default() += pair.flows;
        *counts.entry(pair.dst).or_default() += pair.flows;
    }
    let counts = counts.into_iter();
    let mut hosts: Vec<UnexplainedHost> = counts
        .map(|(host, flows)| UnexplainedHost { host, flows })
        .collect();
    hosts.sort_by_key(|host| (std::cmp::Reverse(host.flows), host.host));
    hosts.truncate(MAX_EVIDENCE);
    hosts
}

/// Pairs that nothing explains, measured too seldom to conclude more: shown, and a question only
/// where they are more than the noise leaves.
fn unexplained(case: &Case<'_>) -> Option<Finding> {
    let slow_at_times = slow_at_times::hosts(case);
    let is_open = |pair: &&Unexplained| {
        !slow_at_times.contains(&pair.src) && !slow_at_times.contains(&pair.dst)
    };
    let pairs: Vec<&Unexplained> = case
        .network
        .unexplained
        .pairs
        .iter()
        .filter(is_open)
        .collect();
    let flows: usize = pairs.iter().map(|pair| pair.flows).sum();
    let ratio = |pair: &&Unexplained| pair.bits_per_sec / pair.predicted_bits_per_sec;
    let worst = pairs.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let share = flows as f64 / case.network.flows.max(1) as f64;
    let is_question = pairs.len() > 1 && case.network.unexplained.is_beyond_noise(pairs.len());
    Some(Finding {
        measured: plain(share, "share"),
        expected: plain(0.0, "share"),
        ..finding_of(
            match is_question {
                true => Severity::Notice,
                false => Severity::Info,
            },
            match pairs.len() {
                1 => Subject::Pair {
                    src: worst.src,
                    dst: worst.dst,
                },
                _ => Subject::Run,
            },
            Cause::NotDetermined,
            Details::FlowsUnexplained(FlowsUnexplained {
                flows,
                pair_count: pairs.len(),
                pairs: pairs.iter().take(MAX_EVIDENCE).map(of_pair).collect(),
                worst_share: ratio(worst),
                hosts: by_host(&pairs),
            }),
        )
    })
}

fn of_pair(pair: &&Unexplained) -> UnexplainedPair {
    UnexplainedPair {
        src: pair.src,
        dst: pair.dst,
        flows: pair.flows,
        bits_per_sec: pair.bits_per_sec,
        expected_bits_per_sec: pair.predicted_bits_per_sec,
    }
}

fn stages(case: &Case<'_>, found: &[Finding]) -> Vec<Finding> {
    if found.iter().any(explains_stages) {
        return Vec::new();
    }
    let stages = case.observations.stages.iter().zip(case.stages);
    let stages = stages.enumerate().filter(|(_, (stage, _))| stage.judged);
    // Hosts that share CPUs share their want of them, too: reported for a host, it is not reported
    // for the run again.
    let is_cpu_told = found.iter().any(|f| f.cause == Cause::CoreSaturated);
    stages
        .filter(|(_, (stage, _))| !is_collapsed_incast(stage, found))
        .filter_map(|(at, (stage, analysis))| finding(stage, analysis, case.network.explained(at)?))
        .filter(|finding| finding.cause != Cause::CoreSaturated || !is_cpu_told)
        .collect()
}

/// Whether a finding reports of an incast already that its goodput collapses.
fn is_collapsed_incast(stage: &StageView<'_>, found: &[Finding]) -> bool {
    is_incast(stage)
        && found
            .iter()
            .any(|f| f.cause == Cause::Congestion && f.severity == Severity::Notice)
}

/// Slow pairs, hosts that are slow at times, and what random loss and bad paths take, which varies,
/// are in no expectation.
fn explains_stages(finding: &Finding) -> bool {
    let at_times = finding.symptom.is_none() && finding.severity == Severity::Fault;
    match finding.cause {
        Cause::SlowPair => true,
        Cause::Loss | Cause::BadPath => finding.severity == Severity::Fault,
        Cause::CpuQuota | Cause::CoreSaturated | Cause::ReceiveWindow | Cause::SendBuffer => {
            at_times
        }
        _ => false,
    }
}

fn finding(stage: &StageView<'_>, analysis: &StageAnalysis, share: f64) -> Option<Finding> {
    if share >= limit(&stage.stage.pattern) {
        return None;
    }
    let cpu = busy_hosts(analysis)
        .filter(|_| !had_cpu(stage))
        .or_else(|| starved_hosts(stage));
    let (cause, symptom) = match &cpu {
        Some(_) => (Cause::CoreSaturated, Some(Symptom::SlowStage)),
        None => (Cause::NotDetermined, None),
    };
    // As the table of stages has it.
    let reached = analysis.of_expected.map_or(share, |of| of.min(share));
    Some(Finding {
        symptom,
        measured: plain(reached, "ratio"),
        expected: plain(1.0, "ratio"),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            cause,
            Details::StageBelow(StageBelow {
                stage: stage.stage.name.clone(),
                reached_share: reached,
                explained_share: share,
                rounds: stage.rounds.len(),
                cpu,
            }),
        )
    })
}

/// Hosts without CPU to spare may be the limit themselves.
fn busy_hosts(analysis: &StageAnalysis) -> Option<NoCpuLeft> {
    let senders = analysis.sender_cpu.map(|cpu| cpu.busy_share);
    let receivers = analysis.receiver_cpu.map(|cpu| cpu.busy_share);
    let busiest = [
        senders.map(|busy_share| (busy_share, NoCpuLeft::BusySenders { busy_share })),
        receivers.map(|busy_share| (busy_share, NoCpuLeft::BusyReceivers { busy_share })),
    ]
    .into_iter()
    .flatten()
    .max_by(|a, b| a.0.total_cmp(&b.0));
    let (_, found) = busiest.filter(|(share, _)| *share >= FULL)?;
    Some(found)
}

/// Whether the ends of most flows are known to have had the CPU time that they asked for: what
/// keeps CPUs busy may have had the rest.
fn had_cpu(stage: &StageView<'_>) -> bool {
    let flows = stage.rounds.iter().flat_map(|round| &round.records);
    let (known, flows) = flows.fold((0, 0), |(known, flows), row| {
        let ends = [row.sender.as_ref(), row.receiver.as_ref()];
        let mut counts = ends
            .into_iter()
            .flatten()
            .filter_map(|end| end.cpu.as_ref());
        let is_known = counts.any(|cpu| cpu.engine_wait_ns.is_some());
        (known + usize::from(is_known), flows + 1)
    });
    let starvations = stage.rounds.iter().flat_map(starvation);
    let waited = starvations.filter(|starvation| *starvation > 0.0).count();
    2 * known > flows && 2 * waited <= flows
}

/// Hosts whose CPUs others have, such as a hypervisor's other guests, are not busy and have none to
/// spare either.
fn starved_hosts(stage: &StageView<'_>) -> Option<NoCpuLeft> {
    let starvations: Vec<f64> = stage.rounds.iter().flat_map(starvation).collect();
    let flows = starvations.len();
    let is_starved = |starvation: &&f64| **starvation > HALF_STARVED;
    let starved_flows = starvations.iter().filter(is_starved).count();
    (2 * starved_flows > flows).then_some(NoCpuLeft::Starvation {
        starved_flows,
        flows,
    })
}

fn limit(pattern: &Pattern) -> f64 {
    match pattern {
        Pattern::Pair
        | Pattern::Pods { .. }
        | Pattern::Congestion { .. }
        | Pattern::OtherTests { .. }
        | Pattern::Permutation
        | Pattern::Paths { .. }
        | Pattern::Bisection
        | Pattern::CrossRack {
            pick: Pick::Matching,
            ..
        }
        | Pattern::Mesh {
            mode: MeshMode::Isolated,
            ..
        } => SLOW,
        Pattern::CrossRack {
            pick: Pick::Random { .. },
            ..
        }
        | Pattern::Mesh {
            mode: MeshMode::Loaded { .. },
            ..
        }
        | Pattern::Incast { .. }
        | Pattern::Outcast { .. }
        | Pattern::FanIn
        | Pattern::FanInFewer => LEAST_FILL,
    }
}
