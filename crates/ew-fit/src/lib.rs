//! One fit: the smallest set of departures from "all alike" that explains every flow of every
//! round.
//!
//! A hypothesis is what hosts can send and receive, by class, how racks are tied together, and
//! what single things are off (`hypothesis`). From it max-min sharing predicts each flow
//! (`filling`, `score`), a noise model gives how likely the recorded rates are (`noise`), and
//! departures are added while they explain more than they cost (`explain`, `search`, `prices`).
//! Values then come straight from the flows that a component limits, with exact order-statistic
//! intervals (`fitted`, `network`, `uplinks`).

mod classes;
mod connections;
mod explain;
mod filling;
mod fitted;
mod hashing;
mod hosts;
mod hypothesis;
mod lag;
mod loss;
mod loss_index;
mod members;
mod network;
mod noise;
mod obs;
mod paced;
mod pairs;
mod pods;
mod prices;
mod racks;
mod rounds;
mod score;
mod search;
mod side;
mod sums;
pub mod tomography;
mod uplinks;
mod views;

pub use classes::is_class;
pub use hypothesis::{Direction, Effect, Location};
pub use loss::{are_unhindered, is_scattered};
pub use members::Posterior;
pub use network::{Isolated, Network, PartFound, SlowSide};
pub use noise::{ANY_PART, ANYTHING, OVERDISPERSION};
pub use obs::retransmitted_share;
pub use pairs::Unexplained;
pub use pods::PodLimit;
pub use rounds::KnownPaths;
pub use side::Side;
pub use uplinks::{RackDirection, Reach};

use ew_evidence::basis::{Reference, line_rate};
use ew_evidence::criteria::{EQUAL, FULL, MANY};
use ew_evidence::observations::Observations;
use ew_evidence::quality::Quality;
use ew_model::HostId;
use ew_stats::{median, robust_sigma};
use explain::Found;
use hypothesis::{Fabric, Hypothesis, Part};
use rounds::Rounds;
use search::Search;
use std::collections::BTreeMap;

/// Explains a run. Of a run whose rounds are mostly void nothing is concluded.
pub fn network(
    observations: &Observations<'_>,
    reference: &Reference,
    quality: Quality,
    paths: KnownPaths,
) -> Network {
    let mut rounds = Rounds::new(observations, &quality);
    if quality.is_invalid() || rounds.obs.is_empty() {
        return Network::nothing(observations, &rounds, quality);
    }
    let (mut classes, class_of) = classes::classes(&rounds);
    rounds.paths = paths;
    let mut shares = lag::Shares::default();
    lag::find(
        observations,
        &mut rounds,
        (&mut classes, &class_of),
        &mut shares,
    );
    let mut start = Hypothesis {
        classes,
        class_of,
        fabric: Fabric::Unlimited,
        parts: Vec::new(),
        split_sigma: noise::SPLIT_SIGMA,
        isolated_sigma: noise::ISOLATED_SIGMA,
    };
    hashing::expect(&mut rounds, &start, &mut shares);
    if !quality.is_throttled {
        rounds.forgive_harmless_starvation(|host| start.class_rate(host.index()));
    }
    rounds.doubt_single_connections();
    rounds.excuse_slow_rounds(|host| start.class_rate(host.index()));
    rounds.note_scatter(|host| start.class_rate(host.index()));
    start.isolated_sigma = isolated_sigma(&rounds);
    let goodput = |host| {
        let rate = line_rate(observations.run, host)?;
        Some(rate * reference.basis.efficiency)
    };
    let (found, host_rates) = found(&rounds, &start, goodput);
    Network::new(observations, found, (quality, host_rates), &rounds)
}

/// How it is known what hosts can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRates {
    /// Flows show it.
    Shown,
    /// They do what their links let pass: no other assumption explains as much.
    OfLinks,
    /// It is not.
    Unknown,
}

/// What explains the rounds, and how it is known what hosts can do. Where only cross-rack flows
/// show that, what hosts did at their best may be what leads there carries: that they can do what
/// others do, or what their links let pass, are other explanations then, and the better one counts.
fn found(
    rounds: &Rounds,
    start: &Hypothesis,
    goodput: impl Fn(HostId) -> Option<f64>,
) -> (Found, HostRates) {
    let mut search = Search::new(rounds);
    let of_classes = |(classes, class_of)| Hypothesis {
        classes,
        class_of,
        ..start.clone()
    };
    let as_seen = search.run(start.clone());
    if !rounds.has_crossing() {
        return (as_seen, HostRates::Shown);
    }
    if let Some(alike) = classes::alike(rounds).map(of_classes) {
        if alike.class_of == start.class_of {
            return (as_seen, HostRates::Shown);
        }
        let alike = search.run(alike);
        // Fewer classes are the simpler explanation, unless hosts are slow instead.
        let is_simpler = slow_hosts(&alike) <= slow_hosts(&as_seen);
        if is_simpler && alike.worth > as_seen.worth - EQUAL {
            return (alike, HostRates::Shown);
        }
    }
    if rounds.shows_hosts() {
        return (as_seen, HostRates::Shown);
    }
    let by_links = search.run(of_classes(classes::of_links(rounds, &goodput)));
    let gain = by_links.worth - as_seen.worth;
    let (better, rates) = match gain > EQUAL {
        true => (by_links, HostRates::OfLinks),
        false => (as_seen, HostRates::Shown),
    };
    let does_as_link = |host: &usize| {
        let link = goodput(HostId(*host as u32));
        link.is_some_and(|link| better.hypothesis.class_rate(*host) > FULL * link)
    };
    let doing_so = (0..rounds.hosts).filter(does_as_link).count() as f64;
    // Several classes fit whatever hosts did.
    let is_one_class = better.hypothesis.classes.len() == 1;
    let are_known = gain < -EQUAL && is_one_class || doing_so >= (1.0 - MANY) * rounds.hosts as f64;
    // What keeps each connection from more may be anything, and keeps hosts from showing more.
    let is_of_connections = |part: &Part| matches!(part.location, Location::Connection);
    match are_known && !better.hypothesis.parts.iter().any(is_of_connections) {
        true => (better, rates),
        false => (better, HostRates::Unknown),
    }
}

fn slow_hosts(found: &Found) -> usize {
    let parts = found.hypothesis.parts.iter();
    parts
        .filter(|part| matches!(part.location, Location::Host(..)))
        .count()
}

/// Spread of isolated flows about the median of their pair, as far as a run repeats pairs.
fn isolated_sigma(rounds: &Rounds) -> f64 {
    let mut pairs: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for round in &rounds.rounds {
        for (obs, alone) in rounds.of(round).iter().zip(&round.alone) {
            if *alone && obs.racks.is_none() && obs.starvation < noise::LITTLE_STARVATION {
                pairs
                    .entry((obs.src, obs.dst))
                    .or_default()
                    .push(obs.ln_rate);
            }
        }
    }
    let residuals: Vec<f64> = pairs
        .values()
        .filter(|logs| logs.len() > 2)
        .flat_map(|logs| {
            let middle = median(logs).unwrap_or(0.0);
            logs.iter().map(move |log| log - middle)
        })
        .collect();
    robust_sigma(&residuals).clamp(noise::ISOLATED_SIGMA, noise::MAX_ISOLATED_SIGMA)
}
