//! All findings, worst first, with one sentence on top.

use crate::basis::basis_words;
use crate::fit::{RackDirection, Reach};
use crate::rules::not_determined::makes_the_run_a_question;
use crate::rules::{Case, findings};
use crate::sweep;
use crate::words::{count, host_list};
use ew_model::HostId;
use ew_model::analysis::{Label, StageAnalysis};
use ew_model::finding::{Cause, Finding, Severity, Subject, Verdict, VerdictStatus};
use ew_model::record::Remark;
use ew_model::units::{format_bits_per_sec, format_duration_ns};
use std::collections::BTreeSet;

/// Findings that the sentence on top reports in full.
const MOST_IN_SENTENCE: usize = 3;
/// This many hosts with the same cause are reported in one clause.
const FOLD_FROM: usize = 3;

/// Draws the conclusion.
pub(crate) fn verdict(case: &Case<'_>) -> Verdict {
    let mut findings = findings(case);
    findings.sort_by(|a, b| {
        let by_rank = rank(b).cmp(&rank(a));
        by_rank
            .then(b.confidence.cmp(&a.confidence))
            .then(a.subject.cmp(&b.subject))
    });
    let status = status(case, &findings);
    Verdict {
        sentence: sentence(case, status, &findings),
        status,
        findings,
    }
}

/// Order of weight: whether anything may be concluded, severity, then how much of the cluster a
/// cause concerns.
fn rank(finding: &Finding) -> (bool, Severity, u8) {
    let weight = match finding.cause {
        Cause::HostMissing => 10,
        Cause::LinkSpeed
        | Cause::ToolLimit
        | Cause::CoreSaturated
        | Cause::CpuQuota
        | Cause::BackgroundTraffic
        | Cause::ReceiveWindow
        | Cause::SendBuffer
        | Cause::ReceiveDrops
        | Cause::Disk
        | Cause::LineRate => 9,
        Cause::SlowHost => 8,
        Cause::SlowReceiver | Cause::SlowSender => 7,
        Cause::Uplink => 6,
        Cause::SlowPair => 5,
        Cause::Loss => 4,
        Cause::Latency => 3,
        Cause::Mtu => 2,
        Cause::PodNetwork => 6,
        Cause::CellsMissing => 1,
        Cause::MeasurementQuality => 10,
        Cause::BadPath | Cause::LostPath => 6,
        Cause::BelowLinkSpeed | Cause::ConnectionLimit => 5,
        Cause::FasterNetwork => 1,
        Cause::BondMember => 3,
        Cause::Congestion | Cause::NicClasses | Cause::HashCollisions | Cause::NotDetermined => 0,
    };
    let is_quality = finding.cause == Cause::MeasurementQuality;
    (is_quality, finding.severity, weight)
}

/// Missing hosts or flows go before findings: the answer is not whole, whatever the rest says.
fn status(case: &Case<'_>, findings: &[Finding]) -> VerdictStatus {
    let has = |cause: Cause| findings.iter().any(|finding| finding.cause == cause);
    if !case.observations.anything() {
        VerdictStatus::NotDetermined
    } else if has(Cause::HostMissing) || has(Cause::CellsMissing) || has(Cause::MeasurementQuality)
    {
        VerdictStatus::Partial
    } else if findings
        .iter()
        .any(|finding| finding.severity == Severity::Fault)
    {
        VerdictStatus::Worse
    } else if findings.iter().any(makes_the_run_a_question) {
        VerdictStatus::Partial
    } else if findings
        .iter()
        .any(|finding| finding.severity == Severity::Notice)
    {
        VerdictStatus::AsExpected
    } else {
        VerdictStatus::NothingWrong
    }
}

fn sentence(case: &Case<'_>, status: VerdictStatus, findings: &[Finding]) -> String {
    match status {
        VerdictStatus::NotDetermined => not_determined(case),
        VerdictStatus::NothingWrong => nothing_wrong(case),
        VerdictStatus::AsExpected | VerdictStatus::Worse | VerdictStatus::Partial => {
            worst(case, status, findings)
        }
    }
}

/// The worst findings in their own words. The missing flows' own sentence is skipped where a
/// missing host says it, and what was not determined where something was.
fn worst(case: &Case<'_>, status: VerdictStatus, findings: &[Finding]) -> String {
    let host_missing = findings
        .iter()
        .any(|finding| finding.cause == Cause::HostMissing);
    let mut reported: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .filter(|finding| !(host_missing && finding.cause == Cause::CellsMissing))
        .collect();
    let is_determined = |finding: &Finding| {
        finding.cause != Cause::NotDetermined || makes_the_run_a_question(finding)
    };
    if reported.iter().any(|finding| is_determined(finding)) {
        reported.retain(|finding| is_determined(finding));
    }
    let all = clauses(case, &reported);
    let shown = all.len().min(MOST_IN_SENTENCE);
    let is_open = status == VerdictStatus::Partial && findings.iter().any(makes_the_run_a_question);
    let mut parts: Vec<String> = all[..shown]
        .iter()
        .map(|clause| clause.text.clone())
        .collect();
    if is_open && let Some(first) = parts.first_mut() {
        first.insert_str(0, "not determined: ");
    }
    let left: usize = all[shown..].iter().map(|clause| clause.findings).sum();
    if left > 0 {
        parts.push(count(left, "more finding"));
    }
    let only_gaps = reported
        .iter()
        .all(|finding| matches!(finding.cause, Cause::HostMissing | Cause::CellsMissing));
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
fn clauses(case: &Case<'_>, reported: &[&Finding]) -> Vec<Clause> {
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
                text: finding.sentence.clone(),
                findings: 1,
            });
            continue;
        }
        folded.push(finding.cause);
        let names = host_list(case.observations.inventory(), hosts.iter().copied());
        clauses.push(Clause {
            text: format!("{} {do_what}: {names}", count(hosts.len(), "host")),
            findings: hosts.len(),
        });
    }
    clauses
}

fn nothing_wrong(case: &Case<'_>) -> String {
    if case.observations.judged().next().is_none() {
        return figures(case);
    }
    let hosts = case.hosts.len();
    let rate = case.network.typical.map(|typical| {
        let basis =
            basis_words(&case.reference.basis).map_or(String::new(), |b| format!(" of {b}"));
        format!(
            "{hosts} hosts do {} of goodput{basis}",
            format_bits_per_sec(typical.value)
        )
    });
    let racks = racks_in_words(case);
    let judged = case.stages.iter().filter(|stage| stage.judged);
    let unseen = unseen(judged.flat_map(|stage| &stage.labels));
    // Nothing is concluded from these, which is less than to have found them in order.
    let set_aside = match case.network.quality.void_total() {
        0 => String::new(),
        rounds => format!("; {} excluded", count(rounds, "round")),
    };
    let rate = rate.unwrap_or_else(|| "nothing wrong found".into());
    format!("{rate}{unseen}{racks}{set_aside}")
}

/// What is known of the racks' uplinks where none limits: how far they were tested.
fn racks_in_words(case: &Case<'_>) -> String {
    let directions = || case.network.racks.iter().flatten();
    if case.network.rack_pairs.is_empty() {
        return String::new();
    }
    if directions().next().is_some()
        && directions().all(|direction| direction.reach == Reach::NotLimiting)
    {
        return ", and no rack is oversubscribed".into();
    }
    let reached =
        |direction: &RackDirection| direction.carried_bits_per_sec / direction.hosts_bits_per_sec;
    let tested = directions().filter(|direction| direction.reach != Reach::NotLimiting);
    match tested
        .map(reached)
        .filter(|share| share.is_finite())
        .min_by(f64::total_cmp)
    {
        Some(share) if share > 0.0 => format!(
            "; oversubscription not tested above {:.0}% of the hosts' rate",
            100.0 * share
        ),
        _ => "; oversubscription not tested".into(),
    }
}

/// What the first stages did, where there is nothing to compare it with.
fn figures(case: &Case<'_>) -> String {
    let alone = case.stages.iter().filter(|stage| stage.sweep.is_none());
    let reported: Vec<String> = alone
        .filter_map(|stage| Some(format!("`{}` {}", stage.name, did(stage)?)))
        .chain(case.sweeps.iter().map(sweep::in_words))
        .take(MOST_IN_SENTENCE)
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
    let remarks: BTreeSet<Remark> = labels.into_iter().map(|label| label.remark).collect();
    let untouched = remarks.contains(&Remark::SenderDidNotTouchBytes);
    let discarded = remarks.contains(&Remark::ReceiverDidNotSeeBytes);
    match (untouched, discarded) {
        (false, false) => "",
        (true, false) => " (the sending applications did not touch the bytes)",
        (false, true) => " (the receiving applications did not see the bytes)",
        (true, true) => " (the applications did not see the bytes at either end)",
    }
}

fn not_determined(case: &Case<'_>) -> String {
    let run = case.observations.run;
    let mut reasons = case
        .observations
        .stages
        .iter()
        .flat_map(|stage| &stage.missing);
    let failed = run.failed.values().chain(run.lost.values()).next();
    let reason = match (failed, reasons.next()) {
        (Some(message), _) => format!(": {message}"),
        (None, Some(flow)) => format!(": {}", flow.reason),
        (None, None) => String::new(),
    };
    format!("not determined: nothing was measured{reason}")
}
