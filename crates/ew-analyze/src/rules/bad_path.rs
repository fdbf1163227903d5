//! One of a rack's hashed paths is slow or loses packets: by its routers where these answer, else
//! by its share of the connections.

use super::peers::percent;
use super::{Case, evidence};
use crate::fit::Direction;
use crate::precision::confidence;
use crate::stats::share_estimate;
use crate::tomography::{BadMember, Scope};
use crate::words::{count, list, plain};
use ew_model::RackId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Finding, Quantity, Severity, Subject, Worded};

/// Below this share of the pace a path is narrow; above, it loses.
const NARROW: f64 = 0.85;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    match &case.tomography.bad_member {
        Some(found) => Some(by_router(case, found)),
        None => by_share(case),
    }
}

fn by_router(case: &Case<'_>, found: &BadMember) -> Finding {
    let names = names(case, found.scope, &found.rivals);
    let inventory = case.observations.inventory();
    let rack = |rack: &usize| inventory.rack_name(RackId(*rack as u32)).to_owned();
    let routers: Vec<String> = (found.via.iter())
        .map(|(from, router)| format!("{router} (from {})", rack(from)))
        .collect();
    let first = found
        .via
        .first()
        .map_or(String::new(), |(_, router)| router.to_string());
    let more = match found.via.len() {
        0 | 1 => String::new(),
        several => format!(" and {} more", several - 1),
    };
    let share = found.bad as f64 / found.connections.max(1) as f64;
    let (connections, bad) = (count(found.connections, "connection"), found.bad);
    let others = percent(found.others_bad_share);
    Finding {
        severity: Severity::Fault,
        subject: subject(found.scope),
        cause: Cause::BadPath,
        symptom: None,
        measured: Some(plain(share, "share")),
        expected: Some(plain(found.others_bad_share, "share")),
        confidence: confidence(Cause::BadPath),
        details: Worded::details(format!("{names}: path via {first}{more} degraded, {bad} of {connections} (others {others})"), vec![
            evidence(
                format!("routers on the path: {}", list(&routers)),
                "flows.parquet: stages of workload trace".into(),
            ),
            evidence(
                format!(
                    "{bad} of {connections} over them slow or retransmitting, {others} of all other connections of the same tests; likelihood gain {:.0} nats",
                    found.gain
                ),
                "flows.parquet: cross-rack flows with one connection, and at half load".into(),
            ),
        ], "look at speed, errors and discards of the ports on both sides of this path (`ethtool -S`, the switch's interface \
               counters), and take the path out of the group (ECMP or LAG) until it is repaired"
            .into()),
        cables: Vec::new(),
    }
}

fn by_share(case: &Case<'_>) -> Option<Finding> {
    let found = case.tomography.bad_path.as_ref()?;
    let estimate = share_estimate(found.bad, found.connections)?;
    let share = estimate.value;
    let what = if found.of_pace < NARROW {
        format!("{} of pace", percent(found.of_pace))
    } else {
        format!(
            "{} of segments retransmitted",
            percent(found.retransmitted_share)
        )
    };
    let names = names(case, found.scope, &found.rivals);
    Some(Finding {
        severity: Severity::Fault,
        subject: subject(found.scope),
        cause: Cause::BadPath,
        symptom: None,
        measured: Some(Quantity {
            low: estimate.low,
            high: estimate.high,
            ..plain(share, "share")
        }),
        expected: Some(plain(0.0, "share")),
        confidence: confidence(Cause::BadPath),
        details: Worded::details(format!("{names}: one of {} paths degraded at half load, {what}; {} of connections affected", count_of_paths(&estimate), percent(share)), vec![evidence(
            format!(
                "{} of {} slow or retransmitting in every round of theirs, paced to half load: median {} of pace, {} of segments retransmitted; likelihood gain {:.0} nats",
                found.bad,
                count(found.connections, "connection"),
                percent(found.of_pace),
                percent(found.retransmitted_share),
                found.gain,
            ),
            format!("flows.parquet: stage `{}`, by source port", found.stage),
        )], "compare speed, errors and bytes of each member of these uplinks (ECMP or LAG) on the leaf switch, and of the spine ports \
               behind them"
            .into()),
        cables: Vec::new(),
    })
}

/// "4 to 11": as many paths as a share of connections on one of them leaves open, 95%.
fn count_of_paths(share: &Estimate) -> String {
    let paths = |share: Option<f64>| (1.0 / share.unwrap_or(1.0)).round().max(2.0);
    match (paths(share.high), paths(share.low)) {
        (fewest, most) if fewest >= most => format!("{fewest:.0}"),
        (fewest, most) => format!("{fewest:.0} to {most:.0}"),
    }
}

pub(super) fn subject(scope: Scope) -> Subject {
    match scope {
        Scope::Rack(rack, _) => Subject::Rack {
            rack: RackId(rack as u32),
        },
        Scope::Everywhere => Subject::Run,
    }
}

/// "rack2 TX", "rack2 TX or rack1 RX (not distinguished)".
pub(super) fn names(case: &Case<'_>, scope: Scope, rivals: &[Scope]) -> String {
    let name = |scope: &Scope| match scope {
        Scope::Rack(rack, direction) => {
            let name = case
                .observations
                .inventory()
                .rack_name(RackId(*rack as u32));
            format!("{name}{}", direction_word(*direction))
        }
        Scope::Everywhere => "every rack (a spine)".to_owned(),
    };
    let all: Vec<String> = [&scope].into_iter().chain(rivals).map(name).collect();
    match all.len() {
        1 => all.concat(),
        _ => format!("{} (not distinguished)", all.join(" or ")),
    }
}

/// " TX", " RX", or nothing for both.
pub(super) fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Tx => " TX",
        Direction::Rx => " RX",
        Direction::Both => "",
    }
}
