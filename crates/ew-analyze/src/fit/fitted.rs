//! The explanation with all it predicts, flow by flow.

use super::filling::PRIVATE;
use super::hypothesis::{Capacities, Fabric, Hypothesis, Location};
use super::obs::Obs;
use super::rounds::{Round, Rounds};
use super::score::{Predicted, Scorer};
use std::collections::BTreeMap;

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

    pub(super) fn sums(&self) -> BTreeMap<(usize, usize), (f64, f64)> {
        let rounds = self
            .rounds
            .rounds
            .iter()
            .zip(&self.predicted)
            .filter(|(round, _)| !round.is_excused);
        let sum = |(round, predicted): (&Round, &Vec<Predicted>)| {
            let measured = self
                .rounds
                .of(round)
                .iter()
                .map(|obs| obs.bits_per_sec)
                .sum::<f64>();
            let predicted = predicted.iter().map(|flow| flow.bits_per_sec).sum::<f64>();
            ((round.stage, round.at), (predicted, measured))
        };
        rounds.map(sum).collect()
    }
}
