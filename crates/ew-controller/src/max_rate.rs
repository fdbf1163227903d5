//! `--max-rate`: what a run may load of its hosts' links.

use crate::members::Members;
use crate::run::RunError;
use ew_model::facts::InterfaceFacts;
use ew_model::inventory::HostId;
use ew_model::plan::{Plan, RateLimit};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

/// How much of a link, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxRate {
    /// Of its line rate, above 0, at most 1.
    Share(f64),
    /// Bits per second on the wire.
    BitsPerSec(f64),
}

impl MaxRate {
    /// The limit of hosts whose line rates are known, bits per second each.
    #[must_use]
    pub fn of_lines(self, lines: &[f64]) -> RateLimit {
        let limit = |line: &f64| match self {
            Self::Share(share) => share * line,
            Self::BitsPerSec(rate) => rate,
        };
        let hosts_bits_per_sec: Vec<f64> = lines.iter().map(limit).collect();
        let lines = (0..).map(HostId).zip(lines.iter().copied()).collect();
        RateLimit {
            of_line_rate: of_line_rate(&hosts_bits_per_sec, &lines),
            hosts_bits_per_sec,
        }
    }
}

/// Drivers of devices that have no link of their own, and report any speed.
const VIRTUAL: [&str; 5] = ["veth", "tun", "bridge", "macvlan", "ipvlan"];

/// Whether an interface has no link of its own.
pub(crate) fn is_virtual(interface: &InterfaceFacts) -> bool {
    let driver = interface.driver.as_deref();
    driver.is_some_and(|driver| VIRTUAL.contains(&driver))
}

/// The limit of every host: what the user and the host's owner allow, the lower of both. `None`:
/// nobody limits anything.
pub(crate) fn limit(
    max: Option<MaxRate>,
    plan: &Plan,
    members: &Members,
) -> Result<Option<RateLimit>, RunError> {
    let lines = line_rates(plan, members);
    let asked = |host: HostId| match max {
        None => Some(f64::INFINITY),
        Some(MaxRate::BitsPerSec(rate)) => Some(rate),
        Some(MaxRate::Share(share)) => lines.get(&host).map(|line| share * line),
    };
    let alive = members.alive();
    let unknown = alive.iter().filter(|host| asked(**host).is_none());
    let unknown: Vec<&str> = unknown
        .map(|host| members.inventory().name(*host))
        .collect();
    if !unknown.is_empty() {
        let hosts = ew_plan::inventory::fold(unknown);
        return Err(RunError::NoLineRate { hosts });
    }
    let allowed = |host: HostId| {
        let owner = members.owners_limit(host).unwrap_or(f64::INFINITY);
        asked(host).unwrap_or(f64::INFINITY).min(owner)
    };
    let hosts_bits_per_sec: Vec<f64> = members.inventory().host_ids().map(allowed).collect();
    if hosts_bits_per_sec.iter().all(|limit| limit.is_infinite()) {
        return Ok(None);
    }
    Ok(Some(RateLimit {
        of_line_rate: of_line_rate(&hosts_bits_per_sec, &lines),
        hosts_bits_per_sec,
    }))
}

/// Which hosts' owners limit rates.
pub(crate) fn owners_words(members: &Members) -> Option<String> {
    let alive = members.alive();
    let limits = alive.iter().filter_map(|host| {
        let limit = members.owners_limit(*host)?;
        Some((members.inventory().name(*host), limit))
    });
    let limits: Vec<(&str, f64)> = limits.collect();
    let lowest = limits.iter().map(|(_, limit)| *limit).reduce(f64::min)?;
    Some(format!(
        "{}: limited by the owner, to {} at the lowest (/etc/eastwest/limits)",
        ew_plan::inventory::fold(limits.iter().map(|(name, _)| *name)),
        format_bits_per_sec(lowest)
    ))
}

/// Median over hosts. `None` unless every host has a limit and a line rate.
fn of_line_rate(limits: &[f64], lines: &BTreeMap<HostId, f64>) -> Option<f64> {
    let hosts = (0..).map(HostId).zip(limits);
    let shares = hosts.map(|(host, limit)| Some((limit / lines.get(&host)?).min(1.0)));
    let mut shares: Vec<f64> = shares.collect::<Option<_>>()?;
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied()
}

/// What was stated, else what interfaces report that have a link.
fn line_rates(plan: &Plan, members: &Members) -> BTreeMap<HostId, f64> {
    let inventory = members.inventory();
    let rate = |host: HostId| {
        plan.expect.nic_bits_per_sec.or_else(|| {
            let interface = members.data_interface(host)?;
            interface
                .speed_bits_per_sec
                .filter(|_| !is_virtual(interface))
        })
    };
    let known = inventory
        .host_ids()
        .filter_map(|host| Some((host, rate(host)?)));
    known.collect()
}
