//! The smallest set of departures that explains the rounds: add what explains most, change it for
//! what explains more, drop what explains nothing.

use super::hypothesis::{Effect, Hypothesis, Location, Part};
use super::rounds::Rounds;
use super::search::{FINE, Search, fabric_value, part_value};
use super::{connections, hosts, members, pairs, pods, racks};
use ew_evidence::criteria::MIN_EFFECT;
use ew_model::HostId;

/// Passes of exchanging parts; each must gain.
const EXCHANGES: usize = 3;
/// What an exchange must gain, nats: less is rounding.
const MIN_GAIN: f64 = 0.5;

/// The best explanation, with what was learnt of parallel paths on the way.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) hypothesis: Hypothesis,
    pub(super) paths: Option<members::Posterior>,
    /// Score less price.
    pub(super) worth: f64,
}

impl Search<'_> {
    /// Explains the rounds, from hosts to racks to what both leave.
    pub(super) fn run(&mut self, start: Hypothesis) -> Found {
        let start = connections::add(self, start);
        // Before it is known what ties racks, flows that cross them show nothing of hosts.
        let hosts = hosts::add(self, start, |obs| obs.racks.is_none());
        let mut fabrics = racks::fabrics(self, &hosts);
        fabrics.extend(pods::alike(self, &hosts));
        let mut best = self.best(fabrics).unwrap_or_else(|| hosts.clone());
        best = hosts::add(self, best, |_| true);
        best = hosts::lossy_anew(self, best);
        best = racks::add(self, best);
        best = racks::instead_of_hosts(self, best);
        best = hosts::beside_lossy_racks(self, best);
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
            worth: self.worth(&best),
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

    /// All values anew, in small steps. What parallel paths carry was found exactly.
    fn refine(&mut self, mut hypothesis: Hypothesis) -> Hypothesis {
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
        Effect::Capacity(value) => value < (1.0 - MIN_EFFECT) * expected,
        Effect::Loss(_) => true,
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
        Location::Pod(..) => pods::rivals(rounds),
        Location::Pair(src, dst) => pairs::rivals(src, dst),
        Location::Connection => Vec::new(),
    };
    let others = locations
        .into_iter()
        .filter(|location| *location != part.location && !hypothesis.has(*location));
    others.map(|location| Part { location, ..part }).collect()
}
