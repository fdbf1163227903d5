//! The explanation with all it predicts, flow by flow.

use super::filling::PRIVATE;
use super::hashing::Links;
use super::hypothesis::{Capacities, Fabric, Hypothesis, Location};
use super::obs::Obs;
use super::rounds::{Round, Rounds};
use super::score::{Predicted, Scorer};
use std::collections::BTreeMap;

/// By stage and round: what its flows should carry together, and what they did.
pub(super) type Sums = BTreeMap<(usize, usize), (f64, f64)>;

/// What single connections leave at least of links that as many of them as there are paths share:
/// one of e paths stays empty (balls into bins).
pub(super) const LEFT_BY_COLLISIONS: f64 = 1.0 - 1.0 / std::f64::consts::E;

/// A hypothesis with all it predicts.
pub(super) struct Fitted<'a> {
    pub(super) rounds: &'a Rounds,
    pub(super) hypothesis: &'a Hypothesis,
    pub(super) capacities: Capacities,
    /// Per round, per flow.
    pub(super) predicted: Vec<Vec<Predicted>>,
    /// The same if nothing but hosts limited: what is asked of the fabric.
    pub(super) asked: Vec<Vec<Predicted>>,
}

impl<'a> Fitted<'a> {
    pub(super) fn new(scorer: &mut Scorer<'a>, hypothesis: &'a Hypothesis) -> Self {
        let rounds = scorer.rounds;
        let capacities = hypothesis.capacities(rounds);
        let mut hosts_alone = Hypothesis {
            fabric: Fabric::Unlimited,
            ..hypothesis.clone()
        };
        hosts_alone
            .parts
            .retain(|part| matches!(part.location, Location::Host(..)));
        let mut of = |capacities: &Capacities| -> Vec<Vec<Predicted>> {
            rounds
                .rounds
                .iter()
                .map(|round| scorer.mean_prediction(capacities, round))
                .collect()
        };
        let predicted = of(&capacities);
        let asked = of(&hosts_alone.capacities(rounds));
        Self {
            rounds,
            hypothesis,
            capacities,
            predicted,
            asked,
        }
    }

    /// Every flow with its round's index, its own index, and its prediction.
    pub(super) fn flows(&self) -> impl Iterator<Item = (usize, usize, &'a Obs, Predicted)> + '_ {
        let rounds = self.rounds.rounds.iter().enumerate();
        rounds.flat_map(move |(at, round)| {
            let flows = self
                .rounds
                .of(round)
                .iter()
                .zip(&self.predicted[at])
                .enumerate();
            flows.map(move |(slot, (obs, predicted))| (at, slot, obs, *predicted))
        })
    }

    /// Whether only hosts, or the pair, limit a flow, and it shares none with another.
    pub(super) fn is_isolated(&self, round: usize, slot: usize, predicted: &Predicted) -> bool {
        let round = &self.rounds.rounds[round];
        let obs = &self.rounds.of(round)[slot];
        let is_host = (predicted.bottleneck as usize) < 2 * self.rounds.hosts;
        let is_pair = predicted.bottleneck == PRIVATE
            && self.capacities.pairs.contains_key(&(obs.src, obs.dst));
        round.alone[slot] && (is_host || is_pair) && predicted.users < 1.5
    }

    /// By stage and round: what its flows should carry together, and what they did. Over hashed
    /// paths that is no more than where no connection takes over what another leaves; of cross-rack
    /// flows such a part is expected.
    pub(super) fn sums(&self, of_crossing: f64) -> Sums {
        let narrower = |direction| self.hosts_of(direction).min(self.uplinks()[direction]);
        let mut links = self.hashed_links(narrower);
        let rounds = self.rounds.rounds.iter().zip(&self.predicted);
        let sum = |(round, predicted): (&Round, &Vec<Predicted>)| {
            let flows = self.rounds.of(round);
            let measured = flows.iter().map(|obs| obs.bits_per_sec).sum::<f64>();
            let (mut intra, mut crossing) = (0.0, 0.0);
            for (obs, predicted) in flows.iter().zip(predicted) {
                let sum = obs.racks.map_or(&mut intra, |_| &mut crossing);
                *sum += predicted.bits_per_sec;
            }
            if let Some(links) = links.as_mut().filter(|_| crossing > 0.0) {
                let out = links
                    .carried_evenly(round)
                    .into_iter()
                    .take(self.rounds.racks);
                crossing = out.map(|(_, carried)| carried).sum::<f64>().min(crossing);
            }
            (
                (round.stage, round.at),
                (intra + of_crossing * crossing, measured),
            )
        };
        rounds
            .filter(|(round, _)| !round.is_excused)
            .map(sum)
            .collect()
    }

    /// Capacities found of the racks' uplinks, out of all and then into all, bits per second.
    pub(super) fn uplinks(&self) -> &[f64] {
        let first = self.capacities.up(0, 0);
        &self.capacities.bits_per_sec[first..first + 2 * self.rounds.racks]
    }

    /// What the hosts behind a direction of the uplinks can do, bits per second.
    pub(super) fn hosts_of(&self, direction: usize) -> f64 {
        let rack = direction % self.rounds.racks;
        self.hypothesis.hosts_bits_per_sec(self.rounds, rack)
    }

    /// What a host of the fastest class can do.
    pub(super) fn fastest_class_bits_per_sec(&self) -> f64 {
        self.hypothesis.classes.iter().copied().fold(0.0, f64::max)
    }

    /// Links over which hashes spread connections, between racks as wide as `of_rack` has it.
    /// `None` where the fit has hidden paths, and where nobody knows how many there are.
    pub(super) fn hashed_links(&self, of_rack: impl Fn(usize) -> f64) -> Option<Links<'a>> {
        let is_known = self.rounds.paths.most.is_some_and(|paths| paths > 1);
        (self.capacities.paths == 1 && is_known).then(|| {
            let of_host = |side: usize| self.capacities.bits_per_sec[side];
            let connection = self.capacities.connection_bits_per_sec;
            Links::new(self.rounds, of_host, of_rack, connection)
        })
    }
}
