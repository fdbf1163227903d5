//! What an assumption costs before it may explain anything: BIC for its value, the number of
//! locations it could have been at, and how odd it is (prior odds). All in nats.

use super::hypothesis::{Effect, Fabric, Hypothesis, Location, Part};
use super::rounds::Rounds;
use ew_evidence::criteria::FAULT_ODDS;

/// Racks are tied by less than their hosts could send, and by parallel paths, as often as not.
const EVEN_ODDS: f64 = 1.0;

fn price(rounds: &Rounds, locations: f64, odds: f64) -> f64 {
    0.5 * (rounds.rounds.len().max(2) as f64).ln() + locations.max(1.0).ln() + (1.0 / odds).ln()
}

/// Of one part.
pub(super) fn of_part(rounds: &Rounds, part: &Part) -> f64 {
    let (hosts, racks) = (rounds.hosts as f64, rounds.racks as f64);
    let locations = match part.location {
        Location::Host(..) => 2.0 * hosts,
        Location::Rack(..) => 2.0 * racks,
        Location::Member(..) => 3.0 * racks,
        // Pods are tied by less than their racks could send as often as racks are.
        Location::Pod(..) => return price(rounds, 2.0 * rounds.paths.pods() as f64, EVEN_ODDS),
        Location::Pair(..) => hosts * (hosts - 1.0),
        // It is one thing, and nothing odd: one connection seldom fills a fast link.
        Location::Connection => return price(rounds, 1.0, EVEN_ODDS),
    };
    // Loss is a second possible effect at the same location.
    let kinds = match part.effect {
        Effect::Capacity(_) => 0.0,
        Effect::Loss(_) => 2.0_f64.ln(),
    };
    price(rounds, locations, FAULT_ODDS) + kinds
}

/// Of how racks are tied.
pub(super) fn of_fabric(rounds: &Rounds, fabric: &Fabric) -> f64 {
    match fabric {
        Fabric::Unlimited => 0.0,
        Fabric::Equal(_) | Fabric::Proportional(_) => price(rounds, 1.0, EVEN_ODDS),
        Fabric::Paths { .. } => price(rounds, super::members::COUNTS.len() as f64, EVEN_ODDS),
    }
}

/// Of LAGs that no host reports, of so many numbers of links: hosts have them as often as racks
/// have parallel paths.
pub(super) fn of_lag(rounds: &Rounds, counts: usize) -> f64 {
    price(rounds, counts as f64, EVEN_ODDS)
}

/// Of all of it.
pub(super) fn of(rounds: &Rounds, hypothesis: &Hypothesis) -> f64 {
    let parts = hypothesis.parts.iter().map(|part| of_part(rounds, part));
    of_fabric(rounds, &hypothesis.fabric) + parts.sum::<f64>()
}
