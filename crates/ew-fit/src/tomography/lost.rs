//! Paths that are not in use: a link is down, or its routes are withdrawn.
//!
//! A rack sends over fewer routers than other racks, or than expected; or others do not use one of
//! their routers towards it. Which link that is, the addresses of those in use show.

use super::links;
use super::traces::{Fork, Traces};
use crate::Direction;
use ew_evidence::criteria::FAULT_ODDS;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Paths that are not in use.
#[derive(Clone, Debug)]
pub struct LostMember {
    /// Whose they are.
    pub location: LostLocation,
    /// Paths in use, and of the other racks, or expected.
    pub used: usize,
    /// Paths there should be.
    pub of: usize,
    /// Connections traced that show it.
    pub traced: usize,
    /// Routers not used there, by the rack that sends over them.
    pub without: Vec<(usize, IpAddr)>,
    /// Log-likelihood gained, less the price, nats.
    pub gain: f64,
    /// No rack shows more: that there should be more is a guess by the number, or by
    /// an address that is skipped.
    pub is_guess: bool,
}

/// Whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostLocation {
    /// One rack's, seen from it.
    Rack(usize, Direction),
    /// Of two racks, where the way out of the one is the way into the other.
    OneWay(usize, usize),
    /// Of two racks and both directions, so that nobody can know whose path it is.
    BetweenTwo,
    /// Of all racks.
    Everywhere,
}

/// Racks of which fewer paths are in use than there should be.
pub fn short_racks(traces: &Traces, expected: Option<u32>) -> BTreeSet<usize> {
    let lost = lost_members(traces, expected);
    lost.iter()
        .flat_map(|one| match one.location {
            LostLocation::Rack(rack, _) => vec![rack],
            LostLocation::OneWay(from, to) => vec![from, to],
            LostLocation::BetweenTwo | LostLocation::Everywhere => {
                traces.forks.keys().copied().collect()
            }
        })
        .collect()
}

/// Racks that use fewer paths than the others, or than expected, by too many connections for
/// chance.
pub(super) fn lost_members(traces: &Traces, expected: Option<u32>) -> Vec<LostMember> {
    let seen = traces.forks.values().map(|fork| fork.members.len()).max();
    let max = seen.unwrap_or(0).max(expected.unwrap_or(0) as usize);
    let price = (2.0 * traces.forks.len().max(1) as f64).ln() + (1.0 / FAULT_ODDS).ln();
    let racks = traces.forks.iter();
    let lost: Vec<LostMember> = racks
        .filter_map(|(rack, fork)| lost_member(traces, (*rack, fork), max, price))
        .collect();
    if lost.is_empty() && expected.is_none() {
        return one_short(traces, max, price).into_iter().collect();
    }
    let is_spine = lost.len() > 1
        && lost.len() == traces.forks.len()
        && lost
            .iter()
            .all(|one| one.location.has_tx() && one.used == lost[0].used);
    if !is_spine {
        return lost;
    }
    vec![LostMember {
        location: of_all(traces),
        used: lost[0].used,
        of: max,
        traced: lost.iter().map(|one| one.traced).sum(),
        without: skipped(traces),
        gain: lost.iter().map(|one| one.gain).sum(),
        is_guess: false,
    }]
}

impl LostLocation {
    /// The one rack whose way out it is, and nothing else.
    pub(super) fn sends(self) -> Option<usize> {
        match self {
            Self::Rack(rack, Direction::Tx) | Self::OneWay(rack, _) => Some(rack),
            _ => None,
        }
    }

    fn has_tx(self) -> bool {
        match self {
            Self::Rack(_, direction) => direction.has_tx(),
            _ => true,
        }
    }
}

fn of_all(traces: &Traces) -> LostLocation {
    match traces.forks.len() {
        2 => LostLocation::BetweenTwo,
        _ => LostLocation::Everywhere,
    }
}

/// The router that is missing in the order of each rack's, if one is in every rack's.
fn skipped(traces: &Traces) -> Vec<(usize, IpAddr)> {
    let racks = traces.forks.iter();
    let of_racks: Option<Vec<(usize, IpAddr)>> = racks
        .map(|(rack, fork)| Some((*rack, links::skipped(&fork.members)?)))
        .collect();
    of_racks.unwrap_or_default()
}

/// Fabrics are built with 2, 4, 8, 16 ... equal paths; where every rack uses one less than that, a
/// spine may be lost to all of them alike: from seven on, or where addresses skip one.
fn one_short(traces: &Traces, seen: usize, price: f64) -> Option<LostMember> {
    const MIN: usize = 7;
    let of = seen + 1;
    let forks = traces.forks.values();
    let without = skipped(traces);
    let is_alike = forks.clone().all(|fork| fork.members.len() == seen);
    let is_short = (seen >= MIN || !without.is_empty()) && of.is_power_of_two() && is_alike;
    let gains = forks.clone().map(|fork| lost_out(fork, of) - price);
    let gain = gains.min_by(f64::total_cmp)?;
    (is_short && gain > 0.0).then(|| LostMember {
        location: of_all(traces),
        used: seen,
        of,
        traced: forks.map(Fork::traced).sum(),
        without,
        gain,
        is_guess: true,
    })
}

fn lost_member(
    traces: &Traces,
    (rack, fork): (usize, &Fork),
    max: usize,
    price: f64,
) -> Option<LostMember> {
    // A router that has no way back to the rack that sends does not answer it.
    let max = traces.ends.links_into(rack).unwrap_or_default().max(max);
    // No router answered, as in a network that is all one subnet: there are no paths to lose.
    if max == 0 {
        return None;
    }
    let sends = lost_out(fork, max) - price;
    let (receives, mut without) = lost_in(traces, rack);
    let receives = receives - price;
    let location = match (sends > 0.0, receives > 0.0) {
        (true, true) => LostLocation::Rack(rack, Direction::Both),
        (true, false) => out_of(traces, rack),
        (false, true) => LostLocation::Rack(rack, Direction::Rx),
        (false, false) => return None,
    };
    if sends > 0.0 && without.is_empty() {
        without = traces.ends.unused_out_of(rack);
    }
    Some(LostMember {
        location,
        used: if sends > 0.0 {
            fork.members.len()
        } else {
            max - 1
        },
        of: max,
        traced: fork.traced(),
        without,
        gain: sends.max(receives),
        is_guess: false,
    })
}

/// The way out of a rack.
fn out_of(traces: &Traces, rack: usize) -> LostLocation {
    let mut others = traces.forks.keys().filter(|other| **other != rack);
    match (others.next(), others.next()) {
        (Some(to), None) => LostLocation::OneWay(rack, *to),
        _ => LostLocation::Rack(rack, Direction::Tx),
    }
}

/// Nats for "this rack sends over fewer paths" against "it missed the others by chance". Routers
/// that do not answer prove nothing.
fn lost_out(fork: &Fork, max: usize) -> f64 {
    let used = fork.members.len();
    let silent: usize = fork.to.values().map(|to| to.silent).sum();
    if used >= max || is_quiet(silent, fork.traced(), max) {
        return f64::NEG_INFINITY;
    }
    not_by_chance(fork.traced(), max) - (max as f64).ln()
}

/// The same for what others send to the rack, and which routers each of them does not use for it.
fn lost_in(traces: &Traces, rack: usize) -> (f64, Vec<(usize, IpAddr)>) {
    let mut nats = 0.0;
    let mut without = Vec::new();
    for (from, fork) in &traces.forks {
        let Some(to) = fork.to.get(&rack) else {
            continue;
        };
        let unused: Vec<IpAddr> = (fork.members.iter())
            .filter(|member| !to.members.contains_key(member))
            .copied()
            .collect();
        let used = fork.members.len();
        // Where there is one path, none can be missing among others.
        if used < 2 || is_quiet(to.silent, to.traced(), used) {
            continue;
        }
        match unused.as_slice() {
            [one] => {
                nats += not_by_chance(to.traced(), used) - (used as f64).ln();
                without.push((*from, *one));
            }
            // All are used: nothing is lost; several: too few were traced.
            [] => nats -= (used as f64).ln(),
            _ => {}
        }
    }
    (nats, without)
}

/// What it takes for one of so many equal paths to be missed by chance, nats.
fn not_by_chance(traced: usize, paths: usize) -> f64 {
    let paths = paths.max(2) as f64;
    traced as f64 * (paths / (paths - 1.0)).ln()
}

/// Whether a router's silence could be the reason why it was not seen.
fn is_quiet(silent: usize, traced: usize, paths: usize) -> bool {
    2 * silent * paths.max(1) > traced
}
