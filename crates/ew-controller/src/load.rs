//! How much a run moves, once the hosts have reported their links: what could not be confirmed
//! before.

use crate::members::Members;
use crate::run_error::RunError;
use ew_model::plan::Plan;
use ew_model::units::{format_bits_per_sec, format_bytes};
use ew_plan::estimate::{estimate_stage, fills_links};

/// The rate of links that report none, which are those of virtual machines: what Linux's own
/// virtual interfaces report (`SPEED_10000` of drivers/net/veth.c and tun.c).
const UNKNOWN_BITS_PER_SEC: f64 = 10e9;

/// Refuses more than `max_bytes`. With an expected line rate it was counted before the launch.
pub(crate) fn check(
    plan: &Plan,
    members: &Members,
    max_bytes: Option<u64>,
) -> Result<(), RunError> {
    let Some(max_bytes) = max_bytes.filter(|_| plan.expect.nic_bits_per_sec.is_none()) else {
        return Ok(());
    };
    let speeds = members.link_speeds(None);
    let alive = members.alive();
    let links = alive.iter().map(|host| speeds.get(host).copied());
    refuse(plan, &links.collect::<Vec<_>>(), max_bytes)
}

/// By the fastest of the hosts' links.
fn refuse(plan: &Plan, links: &[Option<f64>], max_bytes: u64) -> Result<(), RunError> {
    let lines = links
        .iter()
        .map(|line| line.unwrap_or(UNKNOWN_BITS_PER_SEC));
    let line = lines.max_by(f64::total_cmp).unwrap_or(UNKNOWN_BITS_PER_SEC);
    let limits = plan.rate_limit.iter();
    let limits = limits.flat_map(|limit| limit.hosts_bits_per_sec.iter().copied());
    let rate = limits.max_by(f64::total_cmp).unwrap_or(line).min(line);
    let loads = plan.stages.iter().filter(|stage| fills_links(stage));
    let bytes = loads.filter_map(|stage| estimate_stage(stage, Some(rate)).bytes);
    let bytes: u64 = bytes.fold(0, u64::saturating_add);
    if bytes <= max_bytes {
        return Ok(());
    }
    let silent = links.iter().filter(|line| line.is_none()).count();
    Err(RunError::MuchLoad {
        bytes: format_bytes(bytes),
        rate: format_bits_per_sec(rate),
        source_of_rate: match silent {
            0 => "the fastest line rate that hosts report".to_owned(),
            hosts => format!(
                "{hosts} of {} hosts report no line rate; give it with --expect-nic 10G",
                links.len()
            ),
        },
        limit: format_bytes(max_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::{Host, Inventory};
    use ew_model::plan::RateLimit;
    use ew_plan::scenario::{builtin, parse_file};

    const TIB: u64 = 1 << 40;

    fn plan() -> Plan {
        let changes = ["duration=60s", "samples=4"].map(String::from);
        let file = parse_file(builtin("pair").unwrap(), "pair", &changes).unwrap();
        let host = |name: &str| Host {
            name: name.into(),
            address: None,
            rack: None,
        };
        let inventory = Inventory {
            hosts: vec![host("a"), host("b")],
            ..Inventory::default()
        };
        ew_plan::plan(&file.scenario, &inventory, 1).unwrap()
    }

    #[test]
    fn what_hosts_report_decides_and_unknown_links_are_those_of_virtual_machines() {
        let words = |links: &[Option<f64>], max_bytes| match refuse(&plan(), links, max_bytes) {
            Ok(()) => String::new(),
            Err(refused) => refused.to_string(),
        };
        assert_eq!(words(&[Some(1e9); 2], TIB), "");
        let fast = words(&[Some(1e9), Some(100e9)], TIB);
        assert!(
            fast.contains("at 100 Gb/s per host (the fastest line rate that hosts report)"),
            "{fast}"
        );
        assert!(
            fast.contains("more than 1.00 TiB") && fast.contains("--yes"),
            "{fast}"
        );
        assert_eq!(words(&[None; 2], TIB), "");
        let unknown = words(&[Some(1e9), None], TIB / 16);
        assert!(
            unknown.contains("10.0 Gb/s") && unknown.contains("1 of 2 hosts report no line rate"),
            "{unknown}"
        );
        let mixed = words(&[Some(100e9), None], TIB);
        assert!(mixed.contains("100 Gb/s"), "a slow host hides no fast one");
    }

    #[test]
    fn a_limit_of_rates_limits_bytes() {
        let mut plan = plan();
        plan.rate_limit = Some(RateLimit {
            hosts_bits_per_sec: vec![1e9, 1e9],
            of_line_rate: None,
        });
        assert!(refuse(&plan, &[Some(100e9); 2], TIB).is_ok());
    }
}
