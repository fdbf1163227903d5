//! The smallest set of departures that explains the rounds: add what explains most, change it for
//! what explains more, drop what explains nothing.

use super::hypothesis::{Effect, Fabric, Hypothesis, Location, Part};
use super::rounds::Rounds;
use super::score::Scorer;
use super::{connections, hosts, members, pairs, prices, racks};
use ew_model::HostId;

/// Passes of exchanging parts; each must gain.
const EXCHANGES: usize = 3;
/// What an exchange must gain, nats: less is rounding.
const MIN_GAIN: f64 = 0.5;

/// A search through hypotheses about one run.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) rounds: &'a Rounds,
    scorer: Scorer<'a>,
}

/// The best explanation, with what was learnt of parallel paths on the way.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) hypothesis: Hypothesis,
    pub(super) paths: Option<members::Posterior>,
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

    /// Explains the rounds, from hosts to racks to what both leave.
    pub(super) fn run(&mut self, start: Hypothesis) -> Found {
        let start = connections::add(self, start);
        let hosts = hosts::add(self, start);
        let fabrics = racks::fabrics(self, &hosts);
        let mut best = self.best(fabrics).unwrap_or_else(|| hosts.clone());
        best = hosts::add(self, best);
        best = racks::add(self, best);
        best = pairs::add(self, best);
        let paths = racks::hidden(self, &hosts, &best);
        if let Some(other) = paths.as_ref().and_then(|paths| paths.hypothesis.clone()) {
            best = other;
        }
        best = self.refine(best);
        best = self.exchange(best);
        best = self.drop(best);
        let mut best = self.refine(best);
        let kept = best.parts.iter().filter(|part| is_effect(&best, part));
        best.parts = kept.copied().collect();
        Found {
            hypothesis: best,
            paths: paths.map(|paths| paths.posterior),
        }
    }

    fn best(&mut self, candidates: Vec<Hypothesis>) -> Option<Hypothesis> {
        let scored = candidates.into_iter().map(|one| (self.worth(&one), one));
        let scored: Vec<(f64, Hypothesis)> = scored.collect();
        scored
            .into_iter()
            .reduce(|a, b| if b.0 > a.0 { b } else { a })
            .map(|(_, best)| best)
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

    /// All values anew, in small steps. What parallel paths carry was found exactly.
    pub(super) fn refine(&mut self, mut hypothesis: Hypothesis) -> Hypothesis {
        for class in 0..hypothesis.classes.len() {
            self.climb(&mut hypothesis, |h| h.classes.get_mut(class), &FINE);
        }
        self.climb(&mut hypothesis, fabric_value, &FINE);
        for part in 0..hypothesis.parts.len() {
            self.climb(&mut hypothesis, |h| part_value(h, part), &FINE);
        }
        hypothesis
    }

    /// Greedy may have named the sender that a slow receiver happened to meet most: tries every
    /// rival instead of it.
    fn exchange(&mut self, mut hypothesis: Hypothesis) -> Hypothesis {
        for _ in 0..EXCHANGES {
            let mut best = self.worth(&hypothesis) + MIN_GAIN;
            let mut better = None;
            for index in 0..hypothesis.parts.len() {
                for rival in rivals(self.rounds, &hypothesis, index) {
                    let mut other = hypothesis.clone();
                    other.parts[index] = rival;
                    let worth = self.worth(&other);
                    if worth > best {
                        best = worth;
                        better = Some(other);
                    }
                }
            }
            match better {
                Some(other) => hypothesis = other,
                None => break,
            }
        }
        hypothesis
    }

    /// Every part without which the rest is worth more goes.
    fn drop(&mut self, mut hypothesis: Hypothesis) -> Hypothesis {
        let mut best = self.worth(&hypothesis);
        loop {
            let mut lesser = None;
            for index in 0..hypothesis.parts.len() {
                let other = hypothesis.without(index);
                let worth = self.worth(&other);
                if worth > best {
                    best = worth;
                    lesser = Some(other);
                }
            }
            match lesser {
                Some(other) => hypothesis = other,
                None => return hypothesis,
            }
        }
    }
}

/// Whether a part takes enough of what its hosts do to be worth reporting: refining values may
/// bring it near theirs.
fn is_effect(hypothesis: &Hypothesis, part: &Part) -> bool {
    let class = |host: HostId| hypothesis.classes[hypothesis.class_of[host.index()]];
    let expected = match part.location {
        Location::Host(host, _) => class(host),
        Location::Pair(src, dst) => class(src).min(class(dst)),
        _ => return true,
    };
    match part.effect {
        Effect::Capacity(value) => value < (1.0 - prices::MIN_EFFECT) * expected,
        Effect::Loss(_) => true,
    }
}

/// Steps of one climb in one direction.
const MAX_STEPS: usize = 6;
/// Step sizes, coarse to fine.
pub(super) const COARSE: [f64; 3] = [1.10, 1.03, 1.01];
pub(super) const FINE: [f64; 2] = [1.03, 1.01];

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

/// What else could be meant by a part: the other side, both sides, other racks, and the partners
/// whose flows it explains.
pub(super) fn rivals(rounds: &Rounds, hypothesis: &Hypothesis, index: usize) -> Vec<Part> {
    let part = hypothesis.parts[index];
    let locations = match part.location {
        Location::Host(host, _) => hosts::rivals(rounds, host),
        Location::Rack(..) => racks::rivals(rounds, Location::Rack),
        Location::Member(..) => racks::rivals(rounds, Location::Member),
        Location::Pair(src, dst) => pairs::rivals(src, dst),
        Location::Connection => Vec::new(),
    };
    let others = locations
        .into_iter()
        .filter(|location| *location != part.location && !hypothesis.has(*location));
    others.map(|location| Part { location, ..part }).collect()
}
