//! Hosts that never came up, or were lost.

use super::{Case, evidence};
use crate::precision::confidence;
use crate::words::{host_list, plain};
use ew_model::HostId;
use ew_model::finding::{Cause, Finding, Severity, Subject};
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
    let failed = finding(case, &known(&run.failed), "never came up");
    let lost = finding(case, &known(&run.lost), "was lost during the run");
    failed.into_iter().chain(lost).collect()
}

fn finding(case: &Case<'_>, hosts: &BTreeMap<HostId, String>, what: &str) -> Option<Finding> {
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
    let what = if is_one {
        what.into()
    } else {
        what.replace("was ", "were ")
    };
    Some(Finding {
        severity: Severity::Fault,
        subject: match hosts.len() {
            1 => Subject::Host { host: *first },
            _ => Subject::Run,
        },
        cause: Cause::HostMissing,
        symptom: None,
        sentence: format!("{names} {what}{said}{costs}"),
        measured: Some(plain(hosts.len() as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: confidence(Cause::HostMissing),
        evidence: hosts
            .iter()
            .take(20)
            .map(|(host, message)| {
                let name = inventory.name(*host);
                evidence(format!("{name}: {message}"), format!("events.jsonl: host {name}"))
            })
            .collect(),
        hint: "bring the host back (power, link, sshd; `eastwest doctor` says what stops it) and run again; the \
               figures of the other hosts are valid"
            .into(),
    })
}
