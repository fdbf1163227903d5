//! The MTU of a host's data interface differs from its peers'.

use super::{Case, evidence};
use crate::basis::{data_interface, most_common};
use crate::words::{host_list, plain};
use ew_model::HostId;
use ew_model::finding::{Cause, Finding, Severity, Subject};
use std::collections::BTreeMap;

/// One finding per MTU that is not the usual one.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let run = case.observations.run;
    let mtu_of = |host: HostId| data_interface(run, host)?.mtu_bytes;
    let hosts = || run.manifest.inventory.host_ids();
    let Some(usual) = most_common(hosts().filter_map(mtu_of).map(u64::from)) else {
        return Vec::new();
    };
    let mut others: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    for host in hosts() {
        if let Some(mtu) = mtu_of(host).filter(|mtu| u64::from(*mtu) != usual) {
            others.entry(mtu).or_default().push(host);
        }
    }
    others
        .into_iter()
        .map(|(mtu, hosts)| finding(case, mtu, usual, &hosts))
        .collect()
}

fn finding(case: &Case<'_>, mtu: u32, usual: u64, hosts: &[HostId]) -> Finding {
    let names = host_list(case.observations.inventory(), hosts.iter().copied());
    let has = if hosts.len() == 1 { "has" } else { "have" };
    Finding {
        severity: Severity::Notice,
        subject: match hosts {
            [host] => Subject::Host { host: *host },
            _ => Subject::Run,
        },
        cause: Cause::Mtu,
        symptom: None,
        sentence: format!("{names} {has} an MTU of {mtu} where {usual} is usual here"),
        measured: Some(plain(f64::from(mtu), "bytes")),
        expected: Some(plain(usual as f64, "bytes")),
        confidence: 0.95,
        evidence: vec![evidence(
            format!("the data interface of {names} reports MTU {mtu}"),
            "events.jsonl: host-up, interfaces".into(),
        )],
        hint: "set the same MTU on all hosts (`ip link set dev IF mtu N`) and on the switch ports; a larger one than \
               the path carries loses packets silently"
            .into(),
    }
}
