//! All findings, worst first, with one sentence on top.

use crate::basis::basis_words;
use crate::rules::{Case, findings};
use crate::words::{count, host_list};
use ew_model::HostId;
use ew_model::finding::{Cause, Finding, Severity, Subject, Verdict, VerdictStatus};
use ew_model::units::format_bits_per_sec;

/// Findings that the sentence on top tells in full.
const MOST_IN_SENTENCE: usize = 3;
/// This many hosts with the same cause are told in one clause.
const FOLD_FROM: usize = 3;

/// Draws the conclusion.
pub(crate) fn verdict(case: &Case<'_>) -> Verdict {
    let mut findings = findings(case);
    findings.sort_by(|a, b| {
        let by_rank = rank(b).cmp(&rank(a));
        by_rank
            .then(b.confidence.total_cmp(&a.confidence))
            .then(a.subject.cmp(&b.subject))
    });
    let status = status(case, &findings);
    Verdict {
        sentence: sentence(case, status, &findings),
        status,
        findings,
    }
}

/// Order of weight: severity, then how much of the cluster a cause concerns.
fn rank(finding: &Finding) -> (Severity, u8) {
    let weight = match finding.cause {
        Cause::HostMissing => 9,
        Cause::LinkSpeed => 8,
        Cause::SlowHost => 7,
        Cause::SlowReceiver | Cause::SlowSender => 6,
        Cause::Uplink => 5,
        Cause::SlowPair => 4,
        Cause::Latency => 3,
        Cause::Mtu => 2,
        Cause::CellsMissing => 1,
        Cause::NotDetermined => 0,
    };
    (finding.severity, weight)
}

/// Missing hosts or flows go before findings: the answer is not whole, whatever the rest says.
fn status(case: &Case<'_>, findings: &[Finding]) -> VerdictStatus {
    let has = |cause: Cause| findings.iter().any(|finding| finding.cause == cause);
    if !case.observations.anything() {
        VerdictStatus::NotDetermined
    } else if has(Cause::HostMissing) || has(Cause::CellsMissing) {
        VerdictStatus::Partial
    } else if findings
        .iter()
        .any(|finding| finding.severity == Severity::Fault)
    {
        VerdictStatus::Worse
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

/// The worst findings in their own words. The missing flows' own sentence is left out where a missing host says it.
fn worst(case: &Case<'_>, status: VerdictStatus, findings: &[Finding]) -> String {
    let host_missing = findings
        .iter()
        .any(|finding| finding.cause == Cause::HostMissing);
    let told: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .filter(|finding| !(host_missing && finding.cause == Cause::CellsMissing))
        .collect();
    let all = clauses(case, &told);
    let shown = all.len().min(MOST_IN_SENTENCE);
    let mut parts: Vec<String> = all[..shown]
        .iter()
        .map(|clause| clause.text.clone())
        .collect();
    let left: usize = all[shown..].iter().map(|clause| clause.findings).sum();
    if left > 0 {
        parts.push(count(left, "more finding"));
    }
    let only_gaps = told
        .iter()
        .all(|finding| matches!(finding.cause, Cause::HostMissing | Cause::CellsMissing));
    if status == VerdictStatus::Partial && only_gaps {
        parts.push("nothing wrong found in the rest".into());
    }
    parts.join("; ")
}

/// A part of the sentence and how many findings it tells.
struct Clause {
    text: String,
    findings: usize,
}

/// One clause per finding; hosts that share a cause are told together when they are many, so that they do not crowd
/// out the rest.
fn clauses(case: &Case<'_>, told: &[&Finding]) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut folded: Vec<Cause> = Vec::new();
    for finding in told {
        let is_host = matches!(finding.subject, Subject::Host { .. });
        if is_host && folded.contains(&finding.cause) {
            continue;
        }
        let hosts: Vec<HostId> = told
            .iter()
            .filter(|other| other.cause == finding.cause)
            .filter_map(|other| match other.subject {
                Subject::Host { host } => Some(host),
                _ => None,
            })
            .collect();
        let do_what = match finding.cause {
            Cause::SlowHost => "are slow both ways",
            Cause::SlowSender => "send slowly",
            Cause::SlowReceiver => "receive slowly",
            Cause::LinkSpeed => "have links that came up slow",
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
    let hosts = case.hosts.len();
    let rate = case.network.fit.typical.map(|typical| {
        let basis =
            basis_words(&case.reference.basis).map_or(String::new(), |b| format!(" of {b}"));
        format!(
            ": {hosts} hosts do {} of payload{basis}",
            format_bits_per_sec(typical.value)
        )
    });
    let pairs = &case.network.rack_pairs.pairs;
    let racks = if pairs.is_empty() {
        ""
    } else if pairs
        .iter()
        .all(|pair| pair.analysis.limited == Some(false))
    {
        ", and no rack is oversubscribed"
    } else if pairs.iter().all(|pair| pair.analysis.limited.is_none()) {
        "; oversubscription was not determined"
    } else {
        "; oversubscription was not determined for every rack"
    };
    format!("nothing wrong found{}{racks}", rate.unwrap_or_default())
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
