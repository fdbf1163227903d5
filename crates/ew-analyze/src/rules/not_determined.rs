//! A stage stays below expectation, and nothing found explains it.

use super::incast::is_incast;
use super::{Case, evidence, slow_at_times};
use crate::fit::Unexplained;
use crate::observations::StageView;
use crate::precision::confidence;
use crate::quality::starvation;
use crate::words::{count, list, plain};
use ew_model::HostId;
use ew_model::analysis::StageAnalysis;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Symptom, Worded};
use ew_model::scenario::{MeshMode, Pattern, Pick};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

/// Share of the explained expectation below which a stage of isolated flows asks for an answer.
const BELOW: f64 = 0.85;
/// The same where flows meet by design: TCP alone stays well below max-min there.
const BELOW_SHARED: f64 = 0.65;

const OPEN_HINT: &str = "give the racks if there are any (--racks), look at CPU use and retransmits of the hosts in the report, and repeat \
                         with more streams";
const BUSY_HINT: &str = "hosts that share CPUs (virtual machines, a lab) cannot all be measured at once: fewer hosts, fewer streams, or \
                         less other load on them";

/// More unexplained flows than this make the verdict a question.
const UNEXPLAINED_SHARE: f64 = 0.03;
/// Pairs whose evidence is shown.
const MOST_EVIDENCE: usize = 8;
/// Starvation above which a flow says little of the network.
const STARVED: f64 = 0.5;

/// Share of all CPUs' time above which hosts have none to spare.
const BUSY: f64 = 0.95;

pub(super) fn find(case: &Case<'_>, found: &[Finding]) -> Vec<Finding> {
    let mut findings = stages(case, found);
    findings.extend(unexplained(case));
    findings
}

/// "by host: r1h2 12, r2h1 4": who the unexplained flows have in common, most first.
fn by_host(case: &Case<'_>, pairs: &[&Unexplained]) -> Evidence {
    let mut counts: BTreeMap<HostId, usize> = BTreeMap::new();
    for pair in pairs {
        *counts.entry(pair.src).or_default() += pair.flows;
        *counts.entry(pair.dst).or_default() += pair.flows;
    }
    let mut counts: Vec<(HostId, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(host, flows)| (std::cmp::Reverse(*flows), *host));
    let inventory = case.observations.inventory();
    let words = counts
        .iter()
        .take(MOST_EVIDENCE)
        .map(|(host, flows)| format!("{} {flows}", inventory.name(*host)));
    evidence(
        format!("by host: {}", words.collect::<Vec<_>>().join(", ")),
        "flows.parquet: src or dst".into(),
    )
}

/// Pairs that nothing explains, measured too seldom to say more: shown, and a question only when
/// they are many.
fn unexplained(case: &Case<'_>) -> Option<Finding> {
    let slow_at_times = slow_at_times::hosts(case);
    let is_open = |pair: &&Unexplained| {
        !slow_at_times.contains(&pair.src) && !slow_at_times.contains(&pair.dst)
    };
    let pairs: Vec<&Unexplained> = case.network.unexplained.iter().filter(is_open).collect();
    let flows: usize = pairs.iter().map(|pair| pair.flows).sum();
    let ratio = |pair: &&Unexplained| pair.bits_per_sec / pair.predicted_bits_per_sec;
    let worst = pairs.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let share = flows as f64 / case.network.flows.max(1) as f64;
    let inventory = case.observations.inventory();
    let name = |pair: &&Unexplained| {
        format!(
            "{} to {}",
            inventory.name(pair.src),
            inventory.name(pair.dst)
        )
    };
    let names: Vec<String> = pairs.iter().map(name).collect();
    let (src, dst) = (worst.src, worst.dst);
    let is_question = share > UNEXPLAINED_SHARE && pairs.len() > 1;
    Some(Finding {
        severity: if is_question { Severity::Notice } else { Severity::Info },
        subject: if pairs.len() == 1 { Subject::Pair { src, dst } } else { Subject::Run },
        cause: Cause::NotDetermined,
        symptom: None,
        measured: Some(plain(share, "share")),
        expected: Some(plain(0.0, "share")),
        confidence: confidence(Cause::NotDetermined),
        details: Worded::details(format!(
            "{} unexplained: {}, min {:.0}% of expected; too few rounds to determine a cause",
            count(flows, "flow"),
            list(&names),
            100.0 * ratio(worst),
        ), std::iter::once(by_host(case, &pairs)).chain(pairs.iter().take(MOST_EVIDENCE).map(|pair| {
            let rates = (format_bits_per_sec(pair.bits_per_sec), format_bits_per_sec(pair.predicted_bits_per_sec));
            evidence(
                format!("{}: median {} of {} expected, {}", name(pair), rates.0, rates.1, count(pair.flows, "flow")),
                format!("flows.parquet: src = {}, dst = {}", inventory.name(pair.src), inventory.name(pair.dst)),
            )
        })).collect(), "measure each pair at least three times (`--set samples=3`): what stays is a path, what goes was a moment".into()),
        cables: Vec::new(),
    })
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

/// Whether a finding says of an incast already that its goodput collapses.
fn is_collapsed_incast(stage: &StageView<'_>, found: &[Finding]) -> bool {
    is_incast(stage)
        && found
            .iter()
            .any(|f| f.cause == Cause::Congestion && f.severity == Severity::Notice)
}

/// Slow pairs and hosts that are slow at times are in no expectation.
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
    let without_cpu = busy_hosts(analysis).or_else(|| starved_hosts(stage));
    let (cause, symptom, why, hint) = match &without_cpu {
        Some(_) => (
            Cause::CoreSaturated,
            Some(Symptom::SlowStage),
            ". Cause: hosts' CPUs saturated",
            BUSY_HINT,
        ),
        None => (
            Cause::NotDetermined,
            None,
            ", cause not determined",
            OPEN_HINT,
        ),
    };
    rests_on.extend(without_cpu);
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause,
        symptom,
        measured: Some(plain(share, "ratio")),
        expected: Some(plain(1.0, "ratio")),
        confidence: confidence(cause),
        details: Worded::details(
            format!("{name}: {percent:.0}% of expected throughput{why}"),
            rests_on,
            hint.into(),
        ),
        cables: Vec::new(),
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
            "the {end} hosts' CPUs were {:.0}% busy: they, and not the network, are the limit",
            100.0 * share
        ),
        format!("flows.parquet: stage `{name}`, tx_cpu_busy_ns and rx_cpu_busy_ns"),
    ))
}

/// Hosts whose CPUs others have, such as a hypervisor's other guests, are not busy and have none to
/// spare either.
fn starved_hosts(stage: &StageView<'_>) -> Option<Evidence> {
    let starved: Vec<f64> = stage.rounds.iter().flat_map(starvation).collect();
    let count_starved = starved
        .iter()
        .filter(|starvation| **starvation > STARVED)
        .count();
    let name = &stage.stage.name;
    (2 * count_starved > starved.len()).then(|| {
        evidence(
            format!(
                "{count_starved} of {} CPU-starved: the I/O threads waited for a CPU, or the hypervisor stole it",
                count(starved.len(), "flow")
            ),
            format!("flows.parquet: stage `{name}`, tx_cpu_engine_wait_ns and rx_cpu_engine_wait_ns"),
        )
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
        | Pattern::Outcast { .. }
        | Pattern::FanIn
        | Pattern::FanInFewer => BELOW_SHARED,
    }
}
