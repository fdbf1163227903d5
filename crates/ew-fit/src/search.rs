//! A search through hypotheses: what one is worth, and its values by hill climbing.

use super::hypothesis::{Effect, Fabric, Hypothesis, Location, Part};
use super::prices;
use super::rounds::Rounds;
use super::score::Scorer;

/// A search through hypotheses about one run.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) rounds: &'a Rounds,
    scorer: Scorer<'a>,
}

impl<'a> Search<'a> {
    pub(super) fn new(rounds: &'a Rounds) -> Self {
        Self {
            rounds,
            scorer: Scorer::new(rounds),
        }
    }

    pub(super) fn scorer(&mut self) -> &mut Scorer<'a> {
        &mut self.scorer
    }

    pub(super) fn score(&mut self, hypothesis: &Hypothesis) -> f64 {
        self.scorer.score(hypothesis)
    }

    /// Score less price.
    pub(super) fn worth(&mut self, hypothesis: &Hypothesis) -> f64 {
        self.score(hypothesis) - prices::of(self.rounds, hypothesis)
    }

    /// Hill climbing on one value.
    pub(super) fn climb(
        &mut self,
        hypothesis: &mut Hypothesis,
        value: impl Fn(&mut Hypothesis) -> Option<&mut f64>,
        steps: &[f64],
    ) -> f64 {
        let mut best = self.score(hypothesis);
        for step in steps.iter().flat_map(|step| [*step, 1.0 / step]) {
            for _ in 0..MAX_STEPS {
                let Some(at) = value(hypothesis) else {
                    return best;
                };
                let old = *at;
                *at = old * step;
                let score = self.score(hypothesis);
                if score <= best + 1e-9 {
                    if let Some(at) = value(hypothesis) {
                        *at = old;
                    }
                    break;
                }
                best = score;
            }
        }
        best
    }
}

/// Steps of one climb in one direction.
const MAX_STEPS: usize = 6;
/// Step sizes, coarse to fine.
pub(super) const COARSE: [f64; 3] = [1.10, 1.03, 1.01];
pub(super) const FINE: [f64; 2] = [1.03, 1.01];
/// What ties racks limits most flows: a value half a per cent off costs more than a part would,
/// that makes up for it.
pub(super) const FINEST: [f64; 3] = [1.03, 1.01, 1.003];

pub(super) fn fabric_value(hypothesis: &mut Hypothesis) -> Option<&mut f64> {
    match &mut hypothesis.fabric {
        Fabric::Unlimited | Fabric::Paths { .. } => None,
        Fabric::Equal(value) | Fabric::Proportional(value) => Some(value),
    }
}

pub(super) fn part_value(hypothesis: &mut Hypothesis, part: usize) -> Option<&mut f64> {
    match hypothesis.parts.get_mut(part)? {
        Part {
            location: Location::Member(..),
            ..
        } => None,
        Part {
            effect: Effect::Capacity(value) | Effect::Loss(value),
            ..
        } => Some(value),
    }
}
