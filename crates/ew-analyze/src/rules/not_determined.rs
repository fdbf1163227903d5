//! A stage stays below expectation, and nothing found explains it.

use super::{Case, evidence};
use crate::observations::StageView;
use crate::solo::waited_for_cpu;
use crate::words::{count, plain};
use ew_model::analysis::StageAnalysis;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Symptom};
use ew_model::scenario::{MeshMode, Pattern, Pick};

/// Share of the explained expectation below which a stage of lone flows asks for an answer.
const BELOW: f64 = 0.85;
/// The same where flows meet by design: TCP alone stays well below max-min there.
const BELOW_SHARED: f64 = 0.65;

const OPEN_HINT: &str = "give the racks if there are any (--racks), look at CPU use and retransmits of the hosts in the report, and repeat \
                         with more streams";
const BUSY_HINT: &str = "hosts that share CPUs (virtual machines, a lab) cannot all be measured at once: fewer hosts, fewer streams, or \
                         less beside them";

/// Share of all CPUs' time above which hosts have none to spare.
const BUSY: f64 = 0.95;

pub(super) fn find(case: &Case<'_>, found: &[Finding]) -> Vec<Finding> {
    if found.iter().any(explains_stages) || !case.losses.racks.is_empty() {
        return Vec::new();
    }
    let stages = case
        .observations
        .stages
        .iter()
        .zip(case.stages)
        .zip(&case.expected.explained);
    // Hosts that share CPUs share their want of them, too: told of a host, it is not told of the run again.
    let is_cpu_told = found.iter().any(|f| f.cause == Cause::CoreSaturated);
    stages
        .filter_map(|((stage, analysis), share)| finding(stage, analysis, (*share)?))
        .filter(|finding| finding.cause != Cause::CoreSaturated || !is_cpu_told)
        .collect()
}

/// Slow pairs and hosts that are slow at times stand in no expectation.
fn explains_stages(finding: &Finding) -> bool {
    let at_times = finding.symptom.is_none() && finding.severity == Severity::Fault;
    match finding.cause {
        Cause::SlowPair => true,
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
    let name = &stage.stage.name;
    let percent = 100.0 * share;
    let mut rests_on = vec![evidence(
        format!(
            "median over {} of measured over max-min expectation",
            count(stage.rounds.len(), "round")
        ),
        format!("flows.parquet: stage `{name}`"),
    )];
    let without_cpu = busy_hosts(analysis).or_else(|| waiting_hosts(stage));
    let (cause, symptom, why, hint) = match &without_cpu {
        Some(_) => (
            Cause::CoreSaturated,
            Some(Symptom::SlowStage),
            "because the hosts' CPUs had no time left",
            BUSY_HINT,
        ),
        None => (
            Cause::NotDetermined,
            None,
            "why was not determined",
            OPEN_HINT,
        ),
    };
    rests_on.extend(without_cpu);
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause,
        symptom,
        sentence: format!(
            "`{name}` reached {percent:.0} % of what hosts and paths as measured allow; {why}"
        ),
        measured: Some(plain(share, "ratio")),
        expected: Some(plain(1.0, "ratio")),
        confidence: 0.5,
        evidence: rests_on,
        hint: hint.into(),
    })
}

/// Hosts without CPU to spare may be the limit themselves.
fn busy_hosts(analysis: &StageAnalysis) -> Option<Evidence> {
    let name = &analysis.name;
    let busiest = [
        ("sending", analysis.sender_cpu),
        ("receiving", analysis.receiver_cpu),
    ]
    .into_iter()
    .filter_map(|(end, cpu)| Some((end, cpu?.busy_share)))
    .max_by(|a, b| a.1.total_cmp(&b.1));
    let (end, share) = busiest.filter(|(_, share)| *share >= BUSY)?;
    Some(evidence(
        format!(
            "the {end} hosts' CPUs were {:.0} % busy: they, and not the network, are the limit",
            100.0 * share
        ),
        format!("flows.parquet: stage `{name}`, tx_cpu_busy_ns and rx_cpu_busy_ns"),
    ))
}

/// Hosts whose CPUs others have, such as a hypervisor's other guests, are not busy and have none to spare either.
fn waiting_hosts(stage: &StageView<'_>) -> Option<Evidence> {
    let waited = stage.measured().filter(|row| waited_for_cpu(row)).count();
    let measured = stage.measured().count();
    let name = &stage.stage.name;
    (2 * waited > measured).then(|| {
        evidence(
            format!(
                "in {waited} of {} the threads that move bytes were ready and waited for a CPU for more than half of the window: \
                 that, and not the network, is the limit",
                count(measured, "flow")
            ),
            format!("flows.parquet: stage `{name}`, tx_cpu_engine_wait_ns and rx_cpu_engine_wait_ns"),
        )
    })
}

fn limit(pattern: &Pattern) -> f64 {
    match pattern {
        Pattern::Pair
        | Pattern::Permutation
        | Pattern::Bisection
        | Pattern::CrossRack {
            pick: Pick::Matching,
            ..
        }
        | Pattern::Mesh {
            mode: MeshMode::Isolated,
            ..
        } => BELOW,
        Pattern::CrossRack {
            pick: Pick::Random { .. },
            ..
        }
        | Pattern::Mesh {
            mode: MeshMode::Loaded { .. },
            ..
        }
        | Pattern::Incast { .. }
        | Pattern::Outcast { .. } => BELOW_SHARED,
    }
}
