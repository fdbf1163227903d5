//! A rack's uplinks carry less than its hosts could send or receive.

use super::case::Case;
use crate::finding::{MAX_EVIDENCE, finding_of, plain, quantity};
use ew_evidence::criteria::{ALIKE, MIN_EFFECT, SLOW};
use ew_fit::{Direction, Location, RackDirection, Reach};
use ew_model::RackId;
use ew_model::analysis::Estimate;
use ew_model::finding::details::{Directions, Oversubscribed, UplinkLimit, UplinkRivals};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::together;
use std::collections::BTreeSet;

/// One direction of a rack that limits its hosts.
#[derive(Clone, Copy)]
struct Limit<'a> {
    rack: RackId,
    direction: Direction,
    found: &'a RackDirection,
    ratio: Estimate,
}

/// What a finding is about.
struct Subjects {
    /// Of one way between two racks the one that it leaves first.
    racks: Vec<RackId>,
    directions: Directions,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let limits = limits(case);
    let (alike, others) = most_alike(limits, case.network.racks.len());
    let mut findings: Vec<Finding> = (!alike.is_empty())
        .then(|| finding(case, &alike, Subjects::of(&alike)))
        .into_iter()
        .collect();
    if are_two_alike(&case.network.racks) {
        let ways = ways(others).into_iter();
        findings.extend(ways.map(|(way, about)| finding(case, &way, about)));
        return findings;
    }
    for own in others.chunk_by(|a, b| a.rack == b.rack) {
        let of = |limits: &[Limit<'_>]| finding(case, limits, Subjects::of(limits));
        match are_alike(own) {
            true => findings.push(of(own)),
            false => findings.extend(own.chunks(1).map(of)),
        }
    }
    findings
}

fn are_two_alike(racks: &[[RackDirection; 2]]) -> bool {
    let able = |rack: &[RackDirection; 2]| rack[0].hosts_bits_per_sec;
    matches!(racks, [a, b] if (able(a) / able(b)).ln().abs() < ALIKE.ln())
}

/// Of two racks what leaves one enters the other, and the uplinks of either may be meant: what
/// limits from the first to the second and back, together where both are as narrow.
fn ways<'a>(limits: Vec<Limit<'a>>) -> Vec<(Vec<Limit<'a>>, Subjects)> {
    let (first, second) = (RackId(0), RackId(1));
    let leaves_first =
        |limit: &Limit<'a>| (limit.direction == Direction::Tx) == (limit.rack == first);
    let about = |racks: [RackId; 2], directions| Subjects {
        racks: racks.to_vec(),
        directions,
    };
    let are_one = are_alike(&limits);
    let (there, back): (Vec<_>, Vec<_>) = limits.iter().copied().partition(leaves_first);
    if are_one && !there.is_empty() && !back.is_empty() {
        return vec![(limits, about([first, second], Directions::Both))];
    }
    let ways = [
        (there, about([first, second], Directions::Tx)),
        (back, about([second, first], Directions::Tx)),
    ];
    ways.into_iter()
        .filter(|(way, _)| !way.is_empty())
        .collect()
}

impl Subjects {
    fn of(limits: &[Limit<'_>]) -> Self {
        let racks: BTreeSet<RackId> = limits.iter().map(|limit| limit.rack).collect();
        Self {
            racks: racks.into_iter().collect(),
            directions: directions(limits),
        }
    }
}

/// The directions of racks that are limited alike in both, where they are most of the racks: a
/// design, which is reported once. And all others.
fn most_alike<'a>(limits: Vec<Limit<'a>>, racks: usize) -> (Vec<Limit<'a>>, Vec<Limit<'a>>) {
    let ratios: Vec<f64> = limits.iter().map(|limit| limit.ratio.value).collect();
    let Some(middle) = ew_stats::median(&ratios) else {
        return (limits, Vec::new());
    };
    let is_typical = |limit: &Limit<'_>| {
        let off = (limit.ratio.value / middle).ln().abs();
        off <= ALIKE.ln() / 2.0
    };
    let typical = |rack: RackId| {
        let mut own = limits.iter().filter(|limit| limit.rack == rack);
        2 == own.clone().count() && own.all(is_typical)
    };
    let design: BTreeSet<RackId> = limits.iter().map(|limit| limit.rack).collect();
    let design: BTreeSet<RackId> = design.into_iter().filter(|rack| typical(*rack)).collect();
    let are_most = 2 * design.len() > racks && (design.len() > 2 || design.len() == racks);
    limits
        .into_iter()
        .partition(|limit| are_most && design.contains(&limit.rack))
}

fn limits<'a>(case: &Case<'a>) -> Vec<Limit<'a>> {
    let racks = (0..).map(RackId).zip(&case.network.racks);
    let both = racks
        .flat_map(|(rack, [out, into])| [(rack, Direction::Tx, out), (rack, Direction::Rx, into)]);
    let limiting = both.filter(|(_, _, found)| found.reach == Reach::Limits);
    limiting
        .filter_map(|(rack, direction, found)| {
            Some(Limit {
                rack,
                direction,
                found,
                ratio: found.ratio?,
            })
        })
        .collect()
}

fn are_alike(limits: &[Limit<'_>]) -> bool {
    let ratios = || limits.iter().map(|limit| limit.ratio.value);
    ratios().fold(0.0, f64::max) <= ALIKE * ratios().fold(f64::INFINITY, f64::min)
}

fn finding(case: &Case<'_>, limits: &[Limit<'_>], about: Subjects) -> Finding {
    let ratios: Vec<Estimate> = limits.iter().map(|limit| limit.ratio).collect();
    let estimate = together(&ratios);
    let configured = case.observations.run.plan.expect.oversubscription;
    let is_worse = configured.is_some_and(|configured| match estimate.low {
        Some(low) => low > configured / (1.0 - MIN_EFFECT),
        None => estimate.value > configured / SLOW,
    });
    let differs = !is_worse && configured.is_none() && differs_from_peers(case, limits);
    Finding {
        measured: quantity(&estimate, "ratio"),
        expected: plain(configured.unwrap_or(1.0), "ratio"),
        ..finding_of(
            if is_worse || differs {
                Severity::Fault
            } else {
                Severity::Notice
            },
            subject(case, &about.racks),
            Cause::Uplink,
            Details::Oversubscribed(Oversubscribed {
                racks: about.racks,
                directions: about.directions,
                ratio: estimate,
                configured,
                is_unlike_others: differs,
                is_unexpected: is_worse || differs || configured.is_none(),
                limits: limits
                    .iter()
                    .take(MAX_EVIDENCE)
                    .filter_map(|limit| proof(case, limit))
                    .collect(),
            }),
        )
    }
}

fn directions(limits: &[Limit<'_>]) -> Directions {
    let has = |direction| limits.iter().any(|limit| limit.direction == direction);
    Directions::of(has(Direction::Tx), has(Direction::Rx)).unwrap_or(Directions::Rx)
}

/// One rack of three or more whose uplinks limit while nobody else's do, with racks of the same
/// hosts.
fn differs_from_peers(case: &Case<'_>, limits: &[Limit<'_>]) -> bool {
    let racks = &case.network.racks;
    let rack = limits[0].rack;
    let own = &racks[rack.index()][0];
    let others = racks
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != rack.index());
    let is_free = |found: &RackDirection| {
        let same_hosts = (found.hosts_bits_per_sec / own.hosts_bits_per_sec)
            .ln()
            .abs()
            < ALIKE.ln();
        // Hashing costs every rack as much: only a ratio above all of the others' intervals
        // differs.
        let other = found.ratio.and_then(|ratio| ratio.high);
        let is_above = other.is_some_and(|other| {
            limits
                .iter()
                .all(|limit| limit.ratio.low.is_some_and(|low| low > other))
        });
        found.reach == Reach::NotLimiting && same_hosts && is_above
    };
    racks.len() > 2
        && limits.iter().all(|limit| limit.rack == rack)
        && others.flat_map(|(_, directions)| directions).all(is_free)
}

fn subject(case: &Case<'_>, racks: &[RackId]) -> Subject {
    match *racks {
        [rack] => Subject::Rack { rack },
        [from, to] if case.network.racks.len() == 2 => Subject::RackPair { from, to },
        _ => Subject::Run,
    }
}

fn proof(case: &Case<'_>, limit: &Limit<'_>) -> Option<UplinkLimit> {
    let stages = &case.observations.stages;
    let stage = limit.found.stage.and_then(|stage| stages.get(stage));
    Some(UplinkLimit {
        rack: limit.rack,
        direction: directions(&[*limit]),
        capacity_bits_per_sec: limit.found.capacity?.value,
        hosts_bits_per_sec: limit.found.hosts_bits_per_sec,
        rounds: limit.found.rounds,
        stage: stage.map(|stage| stage.stage.name.clone()),
        rivals: rivals(case, limit),
    })
}

/// Racks that would explain the same flows.
fn rivals(case: &Case<'_>, limit: &Limit<'_>) -> Option<UplinkRivals> {
    let is_own = |location: Location| matches!(location, Location::Rack(rack, _) if rack == limit.rack.index());
    let part = case
        .network
        .parts
        .iter()
        .find(|part| is_own(part.location))?;
    let others = part.rivals.iter().filter(|location| !is_own(**location));
    let racks: BTreeSet<RackId> = others
        .filter_map(|location| match location {
            Location::Rack(rack, _) => Some(RackId(*rack as u32)),
            _ => None,
        })
        .collect();
    (!racks.is_empty()).then(|| UplinkRivals {
        racks: racks.into_iter().collect(),
        explained: part.explained,
        touched: part.touched,
    })
}
