//! The MTU of a host's data interface differs from its peers'.

use super::case::Case;
use super::suspect::Suspect;
use crate::finding::{finding_of, plain};
use ew_evidence::basis::{data_interface, most_common};
use ew_model::HostId;
use ew_model::finding::details::{OddMtu, Why};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use std::collections::BTreeMap;

/// One finding per MTU that is not the typical one.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let Some(typical) = typical(case) else {
        return Vec::new();
    };
    let mut others: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    for host in case.observations.inventory().host_ids() {
        if let Some(mtu) = mtu_of(case, host).filter(|mtu| u64::from(*mtu) != typical) {
            others.entry(mtu).or_default().push(host);
        }
    }
    others
        .into_iter()
        .map(|(mtu, hosts)| finding(mtu, typical, hosts))
        .collect()
}

/// A slow host whose MTU is not its peers'.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let typical = typical(case)?;
    let mtu = mtu_of(case, suspect.host).filter(|mtu| u64::from(*mtu) != typical)?;
    Some(Why::OddMtu(OddMtu {
        hosts: vec![suspect.host],
        mtu_bytes: mtu,
        typical_bytes: typical,
    }))
}

fn mtu_of(case: &Case<'_>, host: HostId) -> Option<u32> {
    // A pod's is its network's, and part of what pods are compared with their nodes for.
    let name = case.observations.inventory().name(host);
    let is_pod = ew_model::pods::parse_agent_name(name).pod.is_some();
    let interface = data_interface(case.observations.run, host)?;
    interface.mtu_bytes.filter(|_| !is_pod)
}

fn typical(case: &Case<'_>) -> Option<u64> {
    let hosts = case.observations.inventory().host_ids();
    most_common(hosts.filter_map(|host| mtu_of(case, host)).map(u64::from))
}

fn finding(mtu: u32, typical: u64, hosts: Vec<HostId>) -> Finding {
    Finding {
        measured: plain(f64::from(mtu), "bytes"),
        expected: plain(typical as f64, "bytes"),
        ..finding_of(
            Severity::Notice,
            match hosts.as_slice() {
                [host] => Subject::Host { host: *host },
                _ => Subject::Run,
            },
            Cause::Mtu,
            Details::OddMtu(OddMtu {
                hosts,
                mtu_bytes: mtu,
                typical_bytes: typical,
            }),
        )
    }
}
