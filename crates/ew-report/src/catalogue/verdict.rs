//! The one sentence on top.

use super::basis::nic_source;
use super::phrases::host_list;
use super::{congestion, flow_completion, headline, pods};
use crate::sweep;
use crate::words::plural;
use ew_model::analysis::{Basis, Label, StageAnalysis};
use ew_model::completion::FlowCompletion;
use ew_model::congestion::CongestionImpact;
use ew_model::finding::{Cause, Finding, Severity, Subject, UplinkTest, VerdictStatus};
use ew_model::pods::{PodComparison, PodPath};
use ew_model::record::FigureNote;
use ew_model::units::{format_bits_per_sec, format_duration_ns};
use ew_model::{Analysis, HostId, Inventory, WorkloadKind};
use std::collections::BTreeSet;

/// Findings that the sentence on top reports in full.
const MAX_IN_SENTENCE: usize = 3;
/// This many hosts with the same cause are reported in one clause.
const FOLD_FROM: usize = 3;

/// The answer: what the run was about, then the worst that was found.
pub(crate) fn sentence(analysis: &Analysis) -> String {
    if analysis.verdict.status == VerdictStatus::NotDetermined {
        return not_determined(analysis);
    }
    let is_asked = |finding: &&Finding| finding.cause != Cause::PodNetwork;
    let findings: Vec<&Finding> = analysis.verdict.findings.iter().filter(is_asked).collect();
    let has_more = analysis.verdict.status == VerdictStatus::Partial
        || findings.iter().any(|f| f.severity > Severity::Info);
    let rest = has_more.then(|| worst(analysis, &findings));
    let asked = of_pods(analysis)
        .or_else(|| of_congestion(analysis))
        .or_else(|| of_completion(analysis));
    match (asked, rest) {
        (Some(asked), Some(rest)) => format!("{asked}; {rest}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => nothing_wrong(analysis),
    }
}

/// What pods pay on the most important path: the largest loss of bulk traffic between nodes, else
/// what pods on different nodes do. `None` but in runs with pods.
fn of_pods(analysis: &Analysis) -> Option<String> {
    let is_lower = |c: &&PodComparison| c.significant && c.ratio.value < 1.0;
    let mut lower: Vec<&PodComparison> = analysis.pods.iter().filter(is_lower).collect();
    lower.sort_by(|a, b| {
        rank(a)
            .cmp(&rank(b))
            .then(a.ratio.value.total_cmp(&b.ratio.value))
    });
    let shown = lower.first().copied().or_else(|| {
        let direct = |c: &&PodComparison| c.path == PodPath::OtherNode;
        analysis.pods.iter().find(direct).or(analysis.pods.first())
    })?;
    let more = match lower.len() {
        0 | 1 => String::new(),
        2 => "; 1 more path below".to_owned(),
        n => format!("; {} more paths below", n - 1),
    };
    let shown = pods::headline(shown, analysis.inventory()).sentence();
    Some(format!("{shown}{more}"))
}

/// What people ask first: bulk traffic between pods of different nodes.
fn rank(comparison: &PodComparison) -> (bool, bool) {
    (
        !comparison.kind.is_bulk(),
        comparison.path != PodPath::OtherNode,
    )
}

/// What the worst aggressor costs. `None` but in runs that ask for nothing else.
fn of_congestion(analysis: &Analysis) -> Option<String> {
    let factor = |impact: &CongestionImpact| impact.mean.factor.value;
    let worst = analysis
        .congestion
        .iter()
        .max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
    let is_all = analysis
        .stages
        .iter()
        .all(|stage| stage.pattern == "congestion");
    is_all.then(|| congestion::sentence(worst))
}

/// What the highest load costs. `None` but in runs that ask for nothing else.
fn of_completion(analysis: &Analysis) -> Option<String> {
    let loads = analysis.flow_completion.iter();
    let highest = loads.max_by(|a, b| {
        let load = |of: &FlowCompletion| of.load.unwrap_or(0.0);
        load(a).total_cmp(&load(b))
    })?;
    let is_all = analysis
        .stages
        .iter()
        .all(|stage| stage.kind == WorkloadKind::FlowSizes);
    is_all.then(|| flow_completion::sentence(highest))
}

fn not_determined(analysis: &Analysis) -> String {
    let failure = analysis.verdict.grounds.failure.as_ref();
    let reason = failure.map_or(String::new(), |reason| format!(": {reason}"));
    format!("not determined: nothing was measured{reason}")
}

/// The worst findings in their own words. The missing flows' own sentence is skipped where a
/// missing host says it, and what was not determined where something was.
fn worst(analysis: &Analysis, findings: &[&Finding]) -> String {
    let status = analysis.verdict.status;
    let host_missing = findings
        .iter()
        .any(|finding| finding.cause == Cause::HostMissing);
    let mut reported: Vec<&Finding> = findings
        .iter()
        .copied()
        .filter(|finding| finding.severity > Severity::Info)
        .filter(|finding| !(host_missing && finding.cause == Cause::PairsMissing))
        .collect();
    let is_determined =
        |finding: &Finding| finding.cause != Cause::NotDetermined || finding.leaves_the_run_open();
    if reported.iter().any(|finding| is_determined(finding)) {
        reported.retain(|finding| is_determined(finding));
    }
    let all = clauses(analysis.inventory(), &reported);
    let shown = all.len().min(MAX_IN_SENTENCE);
    let is_open = status == VerdictStatus::Partial
        && findings.iter().any(|finding| finding.leaves_the_run_open());
    let mut parts: Vec<String> = all[..shown]
        .iter()
        .map(|clause| clause.text.clone())
        .collect();
    if is_open && let Some(first) = parts.first_mut() {
        first.insert_str(0, "not determined: ");
    }
    let left: usize = all[shown..].iter().map(|clause| clause.findings).sum();
    if left > 0 {
        parts.push(plural(left, "more finding"));
    }
    let only_gaps = reported
        .iter()
        .all(|finding| matches!(finding.cause, Cause::HostMissing | Cause::PairsMissing));
    if status == VerdictStatus::Partial && only_gaps {
        parts.push("nothing wrong found in the rest".into());
    }
    parts.join("; ")
}

/// A part of the sentence and how many findings it reports.
struct Clause {
    text: String,
    findings: usize,
}

/// One clause per finding; hosts that share a cause are reported together when they are many, so
/// that they do not displace the rest.
fn clauses(names: &Inventory, reported: &[&Finding]) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut folded: Vec<Cause> = Vec::new();
    for finding in reported {
        let is_host = matches!(finding.subject, Subject::Host { .. });
        if is_host && folded.contains(&finding.cause) {
            continue;
        }
        let hosts: Vec<HostId> = reported
            .iter()
            .filter(|other| other.cause == finding.cause)
            .filter_map(|other| match other.subject {
                Subject::Host { host } => Some(host),
                _ => None,
            })
            .collect();
        let do_what = match finding.cause {
            Cause::SlowHost => "are slow in both directions",
            Cause::SlowSender => "send slowly",
            Cause::SlowReceiver => "receive slowly",
            Cause::LinkSpeed => "have links that came up slow",
            Cause::CpuQuota => "are throttled by a CPU quota",
            Cause::CoreSaturated => "have a CPU without time left",
            Cause::BackgroundTraffic => "share their NIC with traffic that is not the run's",
            Cause::ReceiveWindow => "hold senders back with small receive windows",
            Cause::SendBuffer => "have small send buffers",
            Cause::Loss => "lose packets on their links",
            Cause::ReceiveDrops => "drop what they receive",
            Cause::Disk => "have a saturated disk",
            _ => "",
        };
        if !is_host || hosts.len() < FOLD_FROM || do_what.is_empty() {
            clauses.push(Clause {
                text: headline(finding, names).sentence(),
                findings: 1,
            });
            continue;
        }
        folded.push(finding.cause);
        let hosts_named = host_list(names, hosts.iter().copied());
        clauses.push(Clause {
            text: format!("{} {do_what}: {hosts_named}", plural(hosts.len(), "host")),
            findings: hosts.len(),
        });
    }
    clauses
}

fn nothing_wrong(analysis: &Analysis) -> String {
    let grounds = &analysis.verdict.grounds;
    if !grounds.is_judged {
        return figures(analysis);
    }
    let hosts = analysis.hosts.len();
    let of_classes = nic_classes(analysis).map(|classes| format!("{hosts} hosts in {classes}"));
    let of_all = grounds.typical_bits_per_sec.map(|typical| {
        let basis = basis(&analysis.basis).map_or(String::new(), |basis| format!(" of {basis}"));
        format!(
            "{hosts} hosts do {} of goodput{basis}",
            format_bits_per_sec(typical.value)
        )
    });
    let judged = analysis.stages.iter().filter(|stage| stage.judged);
    let unseen = unseen(judged.flat_map(|stage| &stage.labels));
    // Nothing is concluded from these, which is less than to have found them in order.
    let set_aside = match grounds.excluded_rounds {
        0 => String::new(),
        rounds => format!("; {} excluded", plural(rounds, "round")),
    };
    let untested = grounds.starved_path_flows.map_or(String::new(), |share| {
        let percent = 100.0 * share;
        format!("; single paths not tested: hosts CPU-starved in {percent:.0}% of their flows")
    });
    let rate = of_classes.or(of_all);
    let rate = rate.unwrap_or_else(|| "nothing wrong found".into());
    let uplinks = uplinks(grounds.uplinks);
    format!("{rate}{unseen}{uplinks}{untested}{set_aside}")
}

/// "2 NIC classes: 6 hosts at 9.48 Mb/s, 6 hosts at 38.1 Mb/s": no rate is all hosts' there.
fn nic_classes(analysis: &Analysis) -> Option<String> {
    let mut findings = analysis.verdict.findings.iter();
    let classes = findings.find(|finding| finding.cause == Cause::NicClasses)?;
    Some(headline(classes, analysis.inventory()).sentence())
}

/// "200 Mb/s (discovered: median of hosts)".
fn basis(basis: &Basis) -> Option<String> {
    let nic = basis.nic_bits_per_sec?;
    Some(format!(
        "{} ({})",
        format_bits_per_sec(nic),
        nic_source(basis.nic_rate_source)
    ))
}

/// What is known of the racks' uplinks where none limits: how far they were tested.
fn uplinks(test: UplinkTest) -> String {
    match test {
        UplinkTest::None => String::new(),
        UplinkTest::NoneLimits => ", and no rack is oversubscribed".into(),
        UplinkTest::UpTo(share) if share > 0.0 => format!(
            "; oversubscription not tested above {:.0}% of the hosts' rate",
            100.0 * share
        ),
        UplinkTest::UpTo(_) => "; oversubscription not tested".into(),
    }
}

/// What the first stages did, where there is nothing to compare it with.
fn figures(analysis: &Analysis) -> String {
    let alone = analysis.stages.iter().filter(|stage| stage.sweep.is_none());
    let reported: Vec<String> = alone
        .filter_map(|stage| Some(format!("`{}` {}", stage.name, did(stage)?)))
        .chain(analysis.sweeps.iter().map(sweep::in_words))
        .take(MAX_IN_SENTENCE)
        .collect();
    reported.join("; ")
}

/// "did 24310 transactions a second, median 41.2 µs", "carried 950 Mb/s, 0.10% of datagrams lost".
fn did(stage: &StageAnalysis) -> Option<String> {
    if let Some(latency) = &stage.latency {
        let rate = latency.transactions_per_sec?.value;
        let median = format_duration_ns(latency.times.p50_ns);
        return Some(format!(
            "did {rate:.0} transactions a second, median {median}"
        ));
    }
    let rate = format_bits_per_sec(stage.aggregate_bits_per_sec?.value);
    let loss = stage
        .datagrams
        .and_then(|datagrams| datagrams.loss)
        .map_or(String::new(), |loss| {
            format!(", {:.2}% of datagrams lost", 100.0 * loss)
        });
    Some(format!("carried {rate}{loss}{}", unseen(&stage.labels)))
}

/// A rate of bytes that no application saw is never reported without saying so.
fn unseen<'a>(labels: impl IntoIterator<Item = &'a Label>) -> &'static str {
    let notes: BTreeSet<FigureNote> = labels.into_iter().map(|label| label.note).collect();
    let untouched = notes.contains(&FigureNote::SenderDidNotTouchBytes);
    let discarded = notes.contains(&FigureNote::ReceiverDidNotSeeBytes);
    match (untouched, discarded) {
        (false, false) => "",
        (true, false) => " (the sending applications did not touch the bytes)",
        (false, true) => " (the receiving applications did not see the bytes)",
        (true, true) => " (the applications did not see the bytes at either end)",
    }
}
