//! A rack's uplinks carry less than its hosts could send or receive.

use super::{Case, evidence};
use crate::fit::{Direction, Place, RackDirection, Reach};
use crate::precision::confidence;
use crate::words::{count, plain, quantity, ratio};
use ew_model::RackId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeSet;

/// Ratios within this factor of one another are reported together.
const ALIKE: f64 = 1.1;
/// How far an interval's low end may lie above what was configured.
const CONFIGURED_TOLERANCE: f64 = 1.05;
/// The same of a value without an interval.
const CONFIGURED_TOLERANCE_UNSURE: f64 = 1.10;
/// Directions whose evidence is shown.
const MOST_EVIDENCE: usize = 6;

/// One direction of a rack that limits its hosts.
#[derive(Clone, Copy)]
struct Limit<'a> {
    rack: RackId,
    direction: Direction,
    found: &'a RackDirection,
    ratio: Estimate,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let limits = limits(case);
    let (alike, others) = most_alike(limits, case.network.racks.len());
    let mut findings: Vec<Finding> = (!alike.is_empty())
        .then(|| finding(case, &alike))
        .into_iter()
        .collect();
    for own in others.chunk_by(|a, b| a.rack == b.rack) {
        match are_alike(own) {
            true => findings.push(finding(case, own)),
            false => findings.extend(own.chunks(1).map(|limit| finding(case, limit))),
        }
    }
    findings
}

/// The directions of racks that are limited alike in both, where they are most of the racks: a
/// design, which is reported once. And all others.
fn most_alike<'a>(limits: Vec<Limit<'a>>, racks: usize) -> (Vec<Limit<'a>>, Vec<Limit<'a>>) {
    let ratios: Vec<f64> = limits.iter().map(|limit| limit.ratio.value).collect();
    let Some(middle) = crate::stats::median(&ratios) else {
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

fn finding(case: &Case<'_>, limits: &[Limit<'_>]) -> Finding {
    let estimate = together(limits);
    let configured = case.observations.run.plan.expect.oversubscription;
    let is_worse = configured.is_some_and(|configured| match estimate.low {
        Some(low) => low > configured * CONFIGURED_TOLERANCE,
        None => estimate.value > configured * CONFIGURED_TOLERANCE_UNSURE,
    });
    let against = configured.map_or(String::new(), |configured| {
        format!(" (expected {configured:.1}:1)")
    });
    let (who, subject) = subject(case, limits);
    let both = limits.iter().any(|limit| limit.direction == Direction::Tx)
        && limits.iter().any(|limit| limit.direction == Direction::Rx);
    let direction = match limits {
        _ if both => "in both directions",
        [
            Limit {
                direction: Direction::Tx,
                ..
            },
            ..,
        ] => "TX",
        _ => "RX",
    };
    let differs = !is_worse && configured.is_none() && differs_from_peers(case, limits);
    let peers = if differs { ", other racks not" } else { "" };
    Finding {
        severity: if is_worse || differs {
            Severity::Fault
        } else {
            Severity::Notice
        },
        subject,
        cause: Cause::Uplink,
        symptom: None,
        sentence: format!(
            "{who}: oversubscribed {} {direction}{against}{peers}",
            ratio(&estimate)
        ),
        measured: Some(quantity(&estimate, "ratio")),
        expected: Some(plain(configured.unwrap_or(1.0), "ratio")),
        confidence: confidence(Cause::Uplink),
        evidence: limits
            .iter()
            .take(MOST_EVIDENCE)
            .flat_map(|limit| proof(case, limit))
            .collect(),
        hint: hint(is_worse || differs || configured.is_none()),
    }
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

/// The racks in words, and the finding's subject.
fn subject(case: &Case<'_>, limits: &[Limit<'_>]) -> (String, Subject) {
    let inventory = case.observations.inventory();
    let rack = limits[0].rack;
    if limits.iter().all(|limit| limit.rack == rack) {
        return (inventory.rack_name(rack).to_owned(), Subject::Rack { rack });
    }
    let named: BTreeSet<RackId> = limits.iter().map(|limit| limit.rack).collect();
    match inventory.racks.len() {
        2 => {
            let (from, to) = (RackId(0), RackId(1));
            let names = format!(
                "{} and {}",
                inventory.rack_name(from),
                inventory.rack_name(to)
            );
            (names, Subject::RackPair { from, to })
        }
        racks if named.len() == racks => (format!("all {racks} racks"), Subject::Run),
        racks => (format!("{} of {racks} racks", named.len()), Subject::Run),
    }
}

/// One estimate for directions that are alike: the middle, with an interval that holds them all.
fn together(limits: &[Limit<'_>]) -> Estimate {
    let values: Vec<f64> = limits.iter().map(|limit| limit.ratio.value).collect();
    let lows: Option<Vec<f64>> = limits.iter().map(|limit| limit.ratio.low).collect();
    let highs: Option<Vec<f64>> = limits.iter().map(|limit| limit.ratio.high).collect();
    Estimate {
        value: crate::stats::median(&values).unwrap_or(1.0),
        low: lows.and_then(|lows| lows.into_iter().min_by(f64::total_cmp)),
        high: highs.and_then(|highs| highs.into_iter().max_by(f64::total_cmp)),
        samples: limits
            .iter()
            .map(|limit| limit.ratio.samples)
            .min()
            .unwrap_or(0),
    }
}

fn proof(case: &Case<'_>, limit: &Limit<'_>) -> Vec<Evidence> {
    let inventory = case.observations.inventory();
    let name = inventory.rack_name(limit.rack);
    let (word, column) = match limit.direction {
        Direction::Rx => ("RX", "dst_rack"),
        _ => ("TX", "src_rack"),
    };
    let Some(capacity) = limit.found.capacity else {
        return Vec::new();
    };
    let stage = limit
        .found
        .stage
        .and_then(|stage| case.observations.stages.get(stage));
    let stage = stage.map_or(String::new(), |stage| {
        format!(", stage `{}`", stage.stage.name)
    });
    let hosts = count(inventory.hosts_in(limit.rack).len(), "host");
    let mut found = vec![evidence(
        format!(
            "{name} {word}: uplinks carry {} of payload, its {hosts} {} ({})",
            format_bits_per_sec(capacity.value),
            format_bits_per_sec(limit.found.hosts_bits_per_sec),
            count(limit.found.rounds, "round"),
        ),
        format!("flows.parquet: {column} = {name}{stage}"),
    )];
    found.extend(rivals(case, limit));
    found
}

/// Racks that would explain the same flows.
fn rivals(case: &Case<'_>, limit: &Limit<'_>) -> Option<Evidence> {
    let inventory = case.observations.inventory();
    let is_own = |place: Place| matches!(place, Place::Rack(rack, _) if rack == limit.rack.index());
    let part = case.network.parts.iter().find(|part| is_own(part.place))?;
    let others = part.rivals.iter().filter(|place| !is_own(**place));
    let names: Vec<String> = others
        .filter_map(|place| match place {
            Place::Rack(rack, _) => Some(inventory.rack_name(RackId(*rack as u32)).to_owned()),
            _ => None,
        })
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    (!names.is_empty()).then(|| {
        evidence(
            format!(
                "not distinguished from {}: these uplinks would explain the same flows",
                crate::words::list(&names)
            ),
            format!(
                "flows.parquet: {} explained of {}",
                part.explained,
                count(part.touched, "flow")
            ),
        )
    })
}

fn hint(unexpected: bool) -> String {
    if unexpected {
        "if not intended: compare the number and speed of uplinks that are up on the leaf switches with the design, then per-member \
         counters of their ECMP or LAG groups"
            .into()
    } else {
        "nothing to do while jobs are placed with this in mind".into()
    }
}
