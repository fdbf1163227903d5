//! One member of a bond carries nearly all of what a host sends or receives: the members together
//! are not what they seem.

use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_evidence::criteria::{MIN_EFFECT, SIGNIFICANT};
use ew_model::HostId;
use ew_model::facts::{Bond, HostSample, InterfaceCounters};
use ew_model::finding::details::{BondMember, BusiestMember, Directions};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

/// Less is not the run's load.
const MIN_BYTES: u64 = 1_000_000;
/// Modes in which one member is to carry all (Documentation/networking/bonding.rst).
const ONE_AT_A_TIME: &str = "active-backup";

/// What one member carries.
struct Found<'a> {
    host: HostId,
    bond_name: &'a str,
    bond: &'a Bond,
    /// The greater share, and in which directions.
    share: f64,
    member: &'a str,
    sends: bool,
    receives: bool,
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let all: Vec<Found<'_>> = hosts.filter_map(|host| found(case, host)).collect();
    let first = all.first()?;
    let bond = first.bond;
    let by_connection = |policy: &str| policy.contains("3+4");
    Some(Finding {
        measured: plain(first.share, "ratio"),
        expected: plain(1.0 / bond.members.len() as f64, "ratio"),
        ..finding_of(
            Severity::Notice,
            match all.len() {
                1 => Subject::Host { host: first.host },
                _ => Subject::Run,
            },
            Cause::BondMember,
            Details::BondMember(BondMember {
                bond: first.bond_name.to_owned(),
                mode: bond.mode.clone(),
                hash_policy: bond.hash_policy.clone(),
                is_hashed_by_connection: bond.hash_policy.as_deref().is_some_and(by_connection),
                members: bond.members.clone(),
                directions: directions(&all),
                busiest: all.iter().map(member).collect(),
            }),
        )
    })
}

fn directions(all: &[Found<'_>]) -> Directions {
    let (sends, receives) = (all.iter().any(|f| f.sends), all.iter().any(|f| f.receives));
    Directions::of(sends, receives).unwrap_or(Directions::Rx)
}

fn member(found: &Found<'_>) -> BusiestMember {
    BusiestMember {
        host: found.host,
        member: found.member.to_owned(),
        share: found.share,
    }
}

fn found<'a>(case: &Case<'a>, host: HostId) -> Option<Found<'a>> {
    let run = case.observations.run;
    let facts = run.facts.get(&host)?;
    let interface = ew_evidence::basis::data_interface(run, host)?;
    let (link, bond) = facts.bond_of(interface)?;
    if bond.members.len() < 2 || bond.mode.as_deref() == Some(ONE_AT_A_TIME) {
        return None;
    }
    let samples = case.telemetry.samples(host);
    let flows = |is_end: &dyn Fn(HostId, HostId) -> bool| {
        // A hash puts all of few flows on one member by chance, too.
        let flows = run.flows.iter().filter(|flow| is_end(flow.src, flow.dst));
        let by_chance = (bond.members.len() as f64).powi(1 - flows.count() as i32);
        by_chance < SIGNIFICANT
    };
    let busiest = |direction: fn(&InterfaceCounters) -> u64| busiest(bond, samples, direction);
    let tx = busiest(|counters| counters.tx_bytes).filter(|_| flows(&|src, _| src == host));
    let rx = busiest(|counters| counters.rx_bytes).filter(|_| flows(&|_, dst| dst == host));
    let (member, share) = match (tx, rx) {
        (Some(tx), Some(rx)) if rx.1 > tx.1 => rx,
        (tx, rx) => tx.or(rx)?,
    };
    Some(Found {
        host,
        bond_name: &link.name,
        bond,
        share,
        member,
        sends: tx.is_some(),
        receives: rx.is_some(),
    })
}

/// The member that carries nearly all of a direction, and its share.
fn busiest<'a>(
    bond: &'a Bond,
    samples: &[HostSample],
    direction: fn(&InterfaceCounters) -> u64,
) -> Option<(&'a str, f64)> {
    let (first, last) = (samples.first()?, samples.last()?);
    let moved = |member: &'a String| {
        let count = |sample: &HostSample| {
            let mut all = sample.interfaces.iter();
            all.find(|i| i.name == *member).map(direction)
        };
        Some((member.as_str(), count(last)?.checked_sub(count(first)?)?))
    };
    // A member that was not read makes shares unknown.
    let moved: Vec<(&str, u64)> = bond.members.iter().map(moved).collect::<Option<_>>()?;
    let total: u64 = moved.iter().map(|(_, bytes)| bytes).sum();
    let (member, bytes) = moved.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    let share = bytes as f64 / total as f64;
    (total >= MIN_BYTES && share > 1.0 - MIN_EFFECT).then_some((member, share))
}
