//! Parallel paths between racks: how many, what hashing costs single connections, and one that is
//! bad.

use super::bad_path::direction_word;
use super::peers::percent;
use super::{Case, collisions, evidence};
use crate::fit::{Effect, PartFound, Place, Posterior};
use crate::precision::confidence;
use crate::words::{count, list, plain};
use ew_model::RackId;
use ew_model::finding::{Cause, Finding, Quantity, Severity, Subject, Worded};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeSet;

/// Numbers of paths that are less likely than this are not shown.
const UNLIKELY: f64 = 0.05;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let traced = case.tomography.traced_paths;
    let Some(paths) = case.network.parallel_paths() else {
        let traced = traced.map(|traced| by_routers(case, traced));
        return traced.into_iter().collect();
    };
    // Whoever knows the routers knows better.
    let is_named = case.tomography.bad_member.is_some();
    let parts = case.network.parts.iter().filter(|_| !is_named);
    let bad = parts.filter_map(|part| bad_path(case, paths, part));
    let number = traced.map_or_else(|| hashing(case, paths), |traced| by_routers(case, traced));
    bad.chain([number]).collect()
}

/// Their number as the routers show it.
fn by_routers(case: &Case<'_>, (paths, connections): (usize, usize)) -> Finding {
    let cost = collisions::words(case, paths);
    Finding {
        severity: Severity::Info,
        subject: Subject::Run,
        cause: Cause::HashCollisions,
        symptom: None,
        measured: Some(plain(paths as f64, "count")),
        expected: None,
        confidence: confidence(Cause::HashCollisions),
        details: Worded::details(
            format!("{paths} parallel paths per rack: {cost}"),
            vec![evidence(
                format!("routers met by {} traced", count(connections, "connection")),
                "flows.parquet: stages of workload trace".into(),
            )],
            HASHING_HINT.into(),
        ),
        cables: Vec::new(),
    }
}

const HASHING_HINT: &str = "capacity needs several connections per host (`--set streams=8`); what single connections get is the price of hashing";

/// "4", "4 or 6".
fn counts(paths: &Posterior) -> String {
    let likely = paths.counts.iter().filter(|(_, share)| *share > UNLIKELY);
    let counts: Vec<String> = likely.map(|(count, _)| count.to_string()).collect();
    counts.join(" or ")
}

fn hashing(case: &Case<'_>, paths: &Posterior) -> Finding {
    let (low, high) = paths.total_interval;
    let (each_low, each_high) = paths.each_interval;
    let range = |low, high| {
        format!(
            "{} to {}",
            format_bits_per_sec(low),
            format_bits_per_sec(high)
        )
    };
    Finding {
        severity: Severity::Info,
        subject: Subject::Run,
        cause: Cause::HashCollisions,
        symptom: None,
        measured: Some(plain(paths.paths as f64, "count")),
        expected: None,
        confidence: confidence(Cause::HashCollisions),
        details: Worded::details(
            format!(
                "{} parallel paths per rack, {} each, {} together: {}",
                counts(paths),
                range(each_low, each_high),
                range(low, high),
                collisions::words(case, paths.paths),
            ),
            vec![evidence(
                format!("posterior of the number of paths: {}", posterior(paths)),
                "flows.parquet: cross-rack flows, by round".into(),
            )],
            HASHING_HINT.into(),
        ),
        cables: Vec::new(),
    }
}

fn posterior(paths: &Posterior) -> String {
    let likely = paths.counts.iter().filter(|(_, share)| *share > UNLIKELY);
    list(
        &likely
            .map(|(count, share)| format!("{count} ({})", percent(*share)))
            .collect::<Vec<_>>(),
    )
}

fn bad_path(case: &Case<'_>, paths: &Posterior, part: &PartFound) -> Option<Finding> {
    let (Place::Member(rack, direction), Effect::Capacity(value)) = (part.place, part.effect)
    else {
        return None;
    };
    let bad = paths.bad.as_ref()?;
    let inventory = case.observations.inventory();
    let name = |rack: usize| inventory.rack_name(RackId(rack as u32)).to_owned();
    let others = part.rivals.iter().filter_map(|place| match place {
        Place::Member(other, _) => Some(*other),
        _ => None,
    });
    let candidates = bad
        .racks
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > UNLIKELY)
        .map(|(rack, _)| rack);
    let racks: BTreeSet<usize> = others.chain(candidates).chain([rack]).collect();
    let names: Vec<String> = racks.iter().map(|rack| name(*rack)).collect();
    let or = if names.len() > 1 {
        " (not distinguished)"
    } else {
        direction_word(direction)
    };
    let rate = format_bits_per_sec;
    Some(Finding {
        severity: Severity::Fault,
        subject: Subject::Rack { rack: RackId(rack as u32) },
        cause: Cause::BadPath,
        symptom: None,
        measured: Some(Quantity {
            low: Some(bad.interval.0),
            high: Some(bad.interval.1),
            ..plain(value, "bits_per_sec")
        }),
        expected: Some(plain(paths.each_bits_per_sec, "bits_per_sec")),
        confidence: confidence(Cause::BadPath),
        details: Worded::details(format!(
            "{}{or}: one of {} uplink paths at {} (others {}), 1 of {} connections affected",
            names.join(" or "),
            counts(paths),
            rate(value),
            rate(paths.each_bits_per_sec),
            paths.paths,
        ), vec![evidence(
            format!("explains {} of {} flows in {} rounds", part.explained, part.touched, part.rounds),
            "flows.parquet: cross-rack flows, by round".into(),
        )], "compare speed, errors and bytes of each member of the rack's uplinks (ECMP or LAG) on the leaf switch".into()),
        cables: Vec::new(),
    })
}
