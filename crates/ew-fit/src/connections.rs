//! A limit that every single connection has: seen where flows of several connections do more than
//! flows of one.

use super::hypothesis::{Effect, Hypothesis, Location, Part};
use super::obs::Obs;
use super::rounds::Rounds;
use super::search::{FINE, Search, part_value};
use ew_evidence::criteria::{MIN_EFFECT, SURE};
use ew_model::HostId;
use ew_stats::{median, quantile};

/// Adds the limit if it explains more than it costs: where isolated flows of one connection do less
/// than their hosts' links did at their best, and hardly one does more than the limit.
pub(super) fn add(search: &mut Search<'_>, hypothesis: Hypothesis) -> Hypothesis {
    let single = single_connections(search.rounds);
    let members = &search.rounds.members;
    let of = |host: HostId| hypothesis.class_rate(host.index()) / f64::from(members[host.index()]);
    let shares: Vec<f64> = single
        .iter()
        .map(|obs| obs.bits_per_sec / of(obs.src).min(of(obs.dst)))
        .collect();
    let is_less = median(&shares).is_some_and(|share| share < 1.0 - MIN_EFFECT);
    let rates: Vec<f64> = single.iter().map(|obs| obs.bits_per_sec).collect();
    let Some(middle) = median(&rates).filter(|_| is_less) else {
        return hypothesis;
    };
    let part = Part {
        location: Location::Connection,
        effect: Effect::Capacity(middle),
    };
    let mut limited = hypothesis.with(part);
    let last = limited.parts.len() - 1;
    search.climb(&mut limited, |h| part_value(h, last), &FINE);
    let limit = part_value(&mut limited, last).map_or(middle, |value| *value);
    let is_kept = quantile(&rates, SURE).is_some_and(|high| high < (1.0 + MIN_EFFECT) * limit);
    if is_kept && search.worth(&limited) > search.worth(&hypothesis) {
        limited
    } else {
        hypothesis
    }
}

/// Isolated flows that have one connection: intra-rack, where there are such.
fn single_connections(rounds: &Rounds) -> Vec<&Obs> {
    let flows = rounds
        .rounds
        .iter()
        .flat_map(|round| rounds.of(round).iter().zip(&round.alone));
    let may_cross = !rounds.shows_hosts();
    let is_meant = |obs: &Obs| (obs.racks.is_none() || may_cross) && obs.streams < 1.5;
    let isolated = flows.filter(|(obs, alone)| **alone && is_meant(obs));
    isolated.map(|(obs, _)| obs).collect()
}
