//! One run at a time on a host: what a run reports about itself, and what it does where another one
//! is.

use crate::job::LaunchOptions;
use crate::journal::Journal;
use crate::members::Members;
use crate::run_error::RunError;
use ew_model::claim::Claim;
use ew_model::inventory::Inventory;
use ew_model::network::is_public;
use ew_model::plan::{Plan, Stage};
use ew_model::units::format_duration_ns;
use ew_sys::clock;
use std::net::IpAddr;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;

/// What others on its hosts are shown of this run.
pub(crate) fn claim(run: String, by: &str, plan: &Plan) -> Claim {
    let since_unix_s = clock::realtime_ns() / SECOND_NS;
    let planned_ns: u64 = plan.stages.iter().map(Stage::planned_ns).sum();
    Claim {
        run,
        by: by.to_owned(),
        since_unix_s,
        until_unix_s: since_unix_s + planned_ns.div_ceil(SECOND_NS),
    }
}

/// Refuses networks and hosts that others use, before anything is loaded.
pub(crate) fn check_sharing(
    members: &Members,
    options: &LaunchOptions,
    journal: &mut Journal,
) -> Result<(), RunError> {
    if !options.allow_wan {
        refuse_public_addresses(members.inventory())?;
    }
    refuse_hosts_in_use(members, options.force, journal)?;
    if options.claimed_by.is_some() {
        refuse_hosts_at_work(members, options.force, journal)?;
    }
    Ok(())
}

/// Refuses hosts that do other work, unless by force, which is a warning then.
fn refuse_hosts_at_work(
    members: &Members,
    force: bool,
    journal: &mut Journal,
) -> Result<(), RunError> {
    let at_work = members.at_work();
    let Some((first, what)) = at_work.first() else {
        return Ok(());
    };
    let example = format!("{first}: {}", what.join(", "));
    let hosts = ew_plan::inventory::fold(at_work.iter().map(|(name, _)| *name));
    if force {
        journal.warn(format!(
            "{hosts}: at other work ({example}); each disturbs the other (--force)"
        ));
        return Ok(());
    }
    Err(RunError::AtWork { hosts, example })
}

fn refuse_public_addresses(inventory: &Inventory) -> Result<(), RunError> {
    let hosts = inventory.hosts.iter();
    let public = hosts.filter_map(|host| {
        let address = host.address.filter(|address| is_public(*address))?;
        Some((host.name.as_str(), address))
    });
    let public: Vec<(&str, IpAddr)> = public.collect();
    let Some((_, example)) = public.first() else {
        return Ok(());
    };
    Err(RunError::PublicAddresses {
        hosts: ew_plan::inventory::fold(public.iter().map(|(name, _)| *name)),
        example: *example,
    })
}

/// Refuses hosts that another run is loading, unless by force, which is a warning then.
fn refuse_hosts_in_use(
    members: &Members,
    force: bool,
    journal: &mut Journal,
) -> Result<(), RunError> {
    let in_use = members.in_use();
    let Some((_, claim)) = in_use.first() else {
        return Ok(());
    };
    let now_unix_s = clock::realtime_ns() / SECOND_NS;
    let names: Vec<&str> = in_use.iter().map(|(name, _)| *name).collect();
    let hosts = ew_plan::inventory::fold(names);
    let (times, left) = times(claim, now_unix_s);
    if force {
        journal.warn(format!(
            "{hosts}: in use by run {} of {}, {times}; rates are of both together (--force)",
            claim.run, claim.by
        ));
        return Ok(());
    }
    Err(RunError::InUse {
        hosts,
        run: claim.run.clone(),
        by: claim.by.clone(),
        times,
        left,
    })
}

fn times(claim: &Claim, now_unix_s: u64) -> (String, Duration) {
    let ago = now_unix_s.saturating_sub(claim.since_unix_s);
    let left = claim.until_unix_s.saturating_sub(now_unix_s);
    let duration = |seconds: u64| format_duration_ns(seconds.saturating_mul(SECOND_NS));
    let end = match left {
        0 => "past its planned end".to_owned(),
        left => format!("planned to end in {}", duration(left)),
    };
    let words = format!("began {} ago, {end}", duration(ago));
    (words, Duration::from_secs(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::Host;

    #[test]
    fn public_addresses_are_refused_by_name() {
        let mut inventory = Inventory::default();
        for (name, address) in [("n1", "10.0.0.1"), ("n2", "8.8.4.4"), ("n3", "8.8.8.8")] {
            inventory.hosts.push(Host {
                name: name.into(),
                address: Some(address.parse().unwrap()),
                rack: None,
            });
        }
        let refused = refuse_public_addresses(&inventory).unwrap_err().to_string();
        assert!(
            refused.starts_with("n[2-3]: public addresses, such as 8.8.4.4;"),
            "{refused}"
        );
        inventory.hosts.truncate(1);
        assert!(refuse_public_addresses(&inventory).is_ok());
    }

    #[test]
    fn times_are_relative_to_now() {
        let claim = Claim {
            since_unix_s: 1000,
            until_unix_s: 1090,
            ..Claim::default()
        };
        let (words, left) = times(&claim, 1060);
        assert_eq!(words, "began 60.0 s ago, planned to end in 30.0 s");
        assert_eq!(left, Duration::from_secs(30));
        assert!(times(&claim, 2000).0.ends_with("past its planned end"));
    }
}
