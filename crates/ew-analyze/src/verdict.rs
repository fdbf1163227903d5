//! All findings, worst first, and what they amount to.

use crate::rules::{Case, findings};
use ew_fit::{RackDirection, Reach};
use ew_model::finding::{Cause, Finding, Grounds, Severity, UplinkTest, Verdict, VerdictStatus};

/// Draws the conclusion.
pub(crate) fn verdict(case: &Case<'_>) -> Verdict {
    let mut findings = findings(case);
    sort(&mut findings);
    let status = status(case, &findings);
    Verdict {
        status,
        findings,
        grounds: grounds(case),
    }
}

/// Worst first.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        let by_rank = rank(b).cmp(&rank(a));
        by_rank
            .then(b.confidence.cmp(&a.confidence))
            .then(a.subject.cmp(&b.subject))
    });
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
        Cause::PairsMissing => 1,
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

/// Missing hosts or flows go before findings: the answer is not whole, whatever the rest shows.
fn status(case: &Case<'_>, findings: &[Finding]) -> VerdictStatus {
    let has = |cause: Cause| findings.iter().any(|finding| finding.cause == cause);
    if !case.observations.anything() {
        VerdictStatus::NotDetermined
    } else if has(Cause::HostMissing) || has(Cause::PairsMissing) || has(Cause::MeasurementQuality)
    {
        VerdictStatus::Partial
    } else if findings
        .iter()
        .any(|finding| finding.severity == Severity::Fault)
    {
        VerdictStatus::Worse
    } else if findings.iter().any(Finding::leaves_the_run_open) {
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

fn grounds(case: &Case<'_>) -> Grounds {
    Grounds {
        is_judged: case.observations.judged().next().is_some(),
        typical_bits_per_sec: case.network.typical,
        uplinks: uplinks(case),
        excluded_rounds: case.network.quality.void_total(),
        starved_path_flows: starved_path_flows(case),
        failure: failure(case),
    }
}

/// Where most flows that load paths by half show nothing of them.
fn starved_path_flows(case: &Case<'_>) -> Option<f64> {
    let paths = case.tomography;
    paths.traced_paths?;
    paths.starved_share.filter(|share| *share > 0.5)
}

/// How far the racks' uplinks were tested.
fn uplinks(case: &Case<'_>) -> UplinkTest {
    let directions = || case.network.racks.iter().flatten();
    if case.network.rack_pairs.is_empty() {
        return UplinkTest::None;
    }
    if directions().next().is_some()
        && directions().all(|direction| direction.reach == Reach::NotLimiting)
    {
        return UplinkTest::NoneLimits;
    }
    let reached =
        |direction: &RackDirection| direction.carried_bits_per_sec / direction.hosts_bits_per_sec;
    let tested = directions().filter(|direction| direction.reach != Reach::NotLimiting);
    let min = tested
        .map(reached)
        .filter(|share| share.is_finite())
        .min_by(f64::total_cmp);
    UplinkTest::UpTo(min.unwrap_or(0.0))
}

/// Why nothing was measured.
fn failure(case: &Case<'_>) -> Option<String> {
    if case.observations.anything() {
        return None;
    }
    let run = case.observations.run;
    let failed = run.failed.values().chain(run.lost.values()).next();
    let stages = case.observations.stages.iter();
    let mut reasons = stages.flat_map(|stage| &stage.missing);
    failed
        .cloned()
        .or_else(|| Some(reasons.next()?.reason.to_string()))
}
