//! What the hosts of a run may be loaded with, by who started it and by their owners.

use crate::max_rate::{MaxRate, is_virtual, of_line_rate};
use crate::members::Members;
use crate::run_error::RunError;
use ew_model::inventory::HostId;
use ew_model::plan::{Plan, RateLimit};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

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

/// The line rates that the plan's loads are a share of, by host id; empty without such loads. Of
/// hosts that take no part 0.
pub(crate) fn loaded_lines(plan: &Plan, members: &Members) -> Result<Vec<f64>, RunError> {
    let mut stages = plan.stages.iter();
    let Some(loaded) = stages.find(|stage| stage.workload.pace.line_share.is_some()) else {
        return Ok(Vec::new());
    };
    let lines = line_rates(plan, members);
    let inventory = members.inventory();
    let alive = members.alive();
    let unknown = alive.iter().filter(|host| !lines.contains_key(host));
    let unknown: Vec<&str> = unknown.map(|host| inventory.name(*host)).collect();
    if !unknown.is_empty() {
        return Err(RunError::NoRateToLoad {
            test: loaded.name.clone(),
            hosts: ew_plan::inventory::fold(unknown),
        });
    }
    let rate = |host| lines.get(&host).copied().unwrap_or(0.0);
    Ok(inventory.host_ids().map(rate).collect())
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

/// What was configured, else what interfaces report that have a link.
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
