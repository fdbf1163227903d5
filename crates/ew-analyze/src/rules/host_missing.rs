//! Hosts that never came up, or were lost: for good, or until they came back.

use super::case::Case;
use crate::finding::{MAX_EVIDENCE, finding_of, plain};
use ew_model::HostId;
use ew_model::barrier::BarrierKind;
use ew_model::finding::details::{Absence, AbsenceReason, HostsMissing};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use std::collections::BTreeMap;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let run = case.observations.run;
    // Ids beyond the inventory can only come from a damaged file.
    let known = |hosts: &BTreeMap<HostId, String>| -> BTreeMap<HostId, String> {
        let count = run.manifest.inventory.hosts.len();
        let inside = hosts.iter().filter(|(host, _)| host.index() < count);
        inside
            .map(|(host, message)| (*host, message.clone()))
            .collect()
    };
    let ways = [
        (&run.failed, Absence::NeverCameUp),
        (&run.lost, Absence::Lost),
        (&run.returned, Absence::CameBack),
    ];
    let found = ways.map(|(hosts, absence)| finding(case, &known(hosts), absence));
    found.into_iter().flatten().collect()
}

fn finding(case: &Case<'_>, hosts: &BTreeMap<HostId, String>, absence: Absence) -> Option<Finding> {
    let first = *hosts.keys().next()?;
    Some(Finding {
        measured: plain(hosts.len() as f64, "count"),
        expected: plain(0.0, "count"),
        ..finding_of(
            match absence {
                Absence::NeverCameUp | Absence::Lost => Severity::Fault,
                Absence::CameBack => Severity::Notice,
            },
            match hosts.len() {
                1 => Subject::Host { host: first },
                _ => Subject::Run,
            },
            Cause::HostMissing,
            Details::HostsMissing(HostsMissing {
                hosts: hosts.keys().copied().collect(),
                absence,
                missing_flows: missing_flows(case, hosts),
                reasons: hosts.iter().take(MAX_EVIDENCE).map(reason).collect(),
                pod_ends: ends_of_pods(case, hosts),
            }),
        )
    })
}

fn missing_flows(case: &Case<'_>, hosts: &BTreeMap<HostId, String>) -> usize {
    let stages = case.observations.stages.iter();
    let missing = stages.flat_map(|stage| &stage.missing);
    let is_theirs = |end: HostId| hosts.contains_key(&end);
    missing
        .filter(|flow| is_theirs(flow.src) || is_theirs(flow.dst))
        .count()
}

fn reason((host, message): (&HostId, &String)) -> AbsenceReason {
    AbsenceReason {
        host: *host,
        message: message.clone(),
    }
}

/// Why hosts' pods ended, where they are pods.
fn ends_of_pods(case: &Case<'_>, hosts: &BTreeMap<HostId, String>) -> Vec<String> {
    let barriers = case.observations.run.manifest.barriers.iter();
    let of_hosts = barriers.filter(|barrier| {
        let host = barrier.host;
        barrier.kind == BarrierKind::PodEnded && host.is_some_and(|host| hosts.contains_key(&host))
    });
    of_hosts.map(|barrier| barrier.words.clone()).collect()
}
