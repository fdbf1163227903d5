//! All findings, worst first, with one sentence on top.

use crate::basis::basis_words;
use crate::rules::{Case, findings};
use crate::words::count;
use ew_model::finding::{Cause, Finding, Severity, Verdict, VerdictStatus};
use ew_model::units::format_bits_per_sec;

/// Findings that the sentence on top tells in full.
const MOST_IN_SENTENCE: usize = 3;

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
            worst(status, findings)
        }
    }
}

/// The worst findings in their own words. The missing flows' own sentence is left out where a missing host says it.
fn worst(status: VerdictStatus, findings: &[Finding]) -> String {
    let host_missing = findings
        .iter()
        .any(|finding| finding.cause == Cause::HostMissing);
    let told: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .filter(|finding| !(host_missing && finding.cause == Cause::CellsMissing))
        .collect();
    let shown = told.len().min(MOST_IN_SENTENCE);
    let mut parts: Vec<String> = told[..shown]
        .iter()
        .map(|finding| finding.sentence.clone())
        .collect();
    if told.len() > shown {
        parts.push(count(told.len() - shown, "more finding"));
    }
    let only_gaps = told
        .iter()
        .all(|finding| matches!(finding.cause, Cause::HostMissing | Cause::CellsMissing));
    if status == VerdictStatus::Partial && only_gaps {
        parts.push("nothing wrong found in the rest".into());
    }
    parts.join("; ")
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
