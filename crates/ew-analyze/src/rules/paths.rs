//! Parallel paths between racks: how many, what hashing costs single connections, and one that is
//! bad.

use super::case::Case;
use super::collisions;
use crate::finding::{bit_rate, finding_of, plain, within};
use ew_evidence::criteria::SURE;
use ew_fit::{Effect, Location, PartFound, Posterior};
use ew_model::RackId;
use ew_model::finding::details::{
    Directions, NarrowPath, NumberOfPaths, PathsByRates, PathsByRouters, RateInterval,
};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use std::collections::BTreeSet;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let traced = case.tomography.traced_paths;
    let Some(paths) = case.network.parallel_paths() else {
        let traced = traced.map(|traced| by_routers(case, traced));
        return traced.into_iter().collect();
    };
    // Whoever knows the routers knows better.
    let is_named = case.tomography.bad_member.is_some();
    let parts = case.network.parts.iter().filter(|_| !is_named);
    let bad = parts.filter_map(|part| narrow_path(paths, part));
    let number = traced.map_or_else(|| by_rates(case, paths), |traced| by_routers(case, traced));
    bad.chain([number]).collect()
}

/// Their number as the routers show it.
fn by_routers(case: &Case<'_>, (paths, connections): (usize, usize)) -> Finding {
    number(
        paths,
        Details::PathsByRouters(PathsByRouters {
            paths,
            traced_connections: connections,
            hashing: collisions::cost(case, paths),
        }),
    )
}

fn by_rates(case: &Case<'_>, paths: &Posterior) -> Finding {
    let interval = |(low, high)| RateInterval {
        low_bits_per_sec: low,
        high_bits_per_sec: high,
    };
    number(
        paths.paths,
        Details::PathsByRates(PathsByRates {
            paths: paths.paths,
            numbers: likely(paths),
            each: interval(paths.each_interval),
            total: interval(paths.total_interval),
            hashing: collisions::cost(case, paths.paths),
        }),
    )
}

fn number(paths: usize, details: Details) -> Finding {
    Finding {
        measured: plain(paths as f64, "count"),
        ..finding_of(Severity::Info, Subject::Run, Cause::HashCollisions, details)
    }
}

fn likely(paths: &Posterior) -> Vec<NumberOfPaths> {
    let numbers = paths.counts.iter().map(|(paths, share)| NumberOfPaths {
        paths: *paths,
        probability: *share,
    });
    let likely = numbers.filter(|number| number.probability > 1.0 - SURE);
    likely.collect()
}

fn narrow_path(paths: &Posterior, part: &PartFound) -> Option<Finding> {
    let (Location::Member(rack, direction), Effect::Capacity(value)) = (part.location, part.effect)
    else {
        return None;
    };
    let bad = paths.bad.as_ref()?;
    let racks = candidates(part, rack, &bad.racks);
    let directions = match racks.len() {
        1 => direction.into(),
        _ => Directions::Both,
    };
    Some(Finding {
        measured: within(value, bad.interval, "bits_per_sec"),
        expected: bit_rate(paths.each_bits_per_sec),
        ..finding_of(
            Severity::Fault,
            Subject::Rack {
                rack: RackId(rack as u32),
            },
            Cause::BadPath,
            Details::NarrowPath(NarrowPath {
                racks,
                directions,
                paths: paths.paths,
                likely_paths: likely(paths).iter().map(|number| number.paths).collect(),
                bits_per_sec: value,
                others_bits_per_sec: paths.each_bits_per_sec,
                explained: part.explained,
                touched: part.touched,
                rounds: part.rounds,
            }),
        )
    })
}

/// The racks one of whose paths it may be, by their probabilities and by what else would explain
/// the same flows.
fn candidates(part: &PartFound, rack: usize, probabilities: &[f64]) -> Vec<RackId> {
    let rivals = part.rivals.iter().filter_map(|location| match location {
        Location::Member(other, _) => Some(*other),
        _ => None,
    });
    let likely = probabilities.iter().enumerate();
    let likely = likely.filter(|(_, share)| **share > 1.0 - SURE);
    let likely = likely.map(|(rack, _)| rack);
    let racks: BTreeSet<usize> = rivals.chain(likely).chain([rack]).collect();
    racks.iter().map(|rack| RackId(*rack as u32)).collect()
}
