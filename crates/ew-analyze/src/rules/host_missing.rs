//! Hosts that never came up, or were lost: for good, or until they came back.

use super::{Case, evidence};
use crate::precision::confidence;
use crate::words::{host_list, plain};
use ew_model::HostId;
use ew_model::barrier::BarrierKind;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Worded};
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
    let kinds = [
        (&run.failed, &FAILED),
        (&run.lost, &LOST),
        (&run.returned, &RETURNED),
    ];
    let found = kinds.map(|(hosts, kind)| finding(case, &known(hosts), kind));
    found.into_iter().flatten().collect()
}

/// How hosts are missing.
struct Kind {
    severity: Severity,
    what: &'static str,
    hint: &'static str,
}

const FAILED: Kind = Kind {
    severity: Severity::Fault,
    what: "never came up",
    hint: BRING_BACK,
};
const LOST: Kind = Kind {
    severity: Severity::Fault,
    what: "was lost during the run",
    hint: BRING_BACK,
};
const RETURNED: Kind = Kind {
    severity: Severity::Notice,
    what: "was lost during the run and came back",
    hint: "find out why the connection to its agent broke (the host's log, the network between it and the controller); what it missed was \
           tried again",
};
const BRING_BACK: &str = "bring the host back (power, link, sshd; `eastwest doctor` says what stops it) and run again; the \
                          figures of the other hosts are valid";

fn finding(case: &Case<'_>, hosts: &BTreeMap<HostId, String>, kind: &Kind) -> Option<Finding> {
    let inventory = case.observations.inventory();
    let (first, message) = hosts.first_key_value()?;
    let names = host_list(inventory, hosts.keys().copied());
    let missing = case
        .observations
        .stages
        .iter()
        .flat_map(|stage| &stage.missing)
        .filter(|flow| hosts.contains_key(&flow.src) || hosts.contains_key(&flow.dst))
        .count();
    let is_one = hosts.len() == 1;
    let whose = if is_one { "with it" } else { "with them" };
    let costs = match missing {
        0 => String::new(),
        1 => format!("; 1 flow {whose} is missing"),
        n => format!("; {n} flows {whose} are missing"),
    };
    let said = if is_one {
        format!(": {message}")
    } else {
        String::new()
    };
    let what = match is_one {
        true => kind.what.to_owned(),
        false => kind.what.replace("was ", "were "),
    };
    Some(Finding {
        severity: kind.severity,
        subject: match hosts.len() {
            1 => Subject::Host { host: *first },
            _ => Subject::Run,
        },
        cause: Cause::HostMissing,
        symptom: None,
        measured: Some(plain(hosts.len() as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: confidence(Cause::HostMissing),
        details: Worded::details(
            format!("{names} {what}{said}{costs}"),
            hosts
                .iter()
                .take(20)
                .map(|(host, message)| {
                    let name = inventory.name(*host);
                    evidence(
                        format!("{name}: {message}"),
                        format!("events.jsonl: host {name}"),
                    )
                })
                .chain(ends_of_pods(case, hosts))
                .collect(),
            kind.hint.into(),
        ),
        cables: Vec::new(),
    })
}

/// Why hosts' pods ended, where they are pods.
fn ends_of_pods(case: &Case<'_>, hosts: &BTreeMap<HostId, String>) -> Vec<Evidence> {
    let barriers = case.observations.run.manifest.barriers.iter();
    let of_hosts = barriers.filter(|barrier| {
        let host = barrier.host;
        barrier.kind == BarrierKind::PodEnded && host.is_some_and(|host| hosts.contains_key(&host))
    });
    of_hosts
        .map(|barrier| evidence(barrier.words.clone(), "run.json: barriers".into()))
        .collect()
}
