//! Sums of what flows between racks share, as values to try for its capacity.

use super::rounds::Rounds;
use std::collections::BTreeMap;

/// Quantiles of the sums across that are tried as capacities, and a little above: a sum stays below
/// what it could be.
pub(super) const SUM_QUANTILES: [f64; 5] = [0.3, 0.5, 0.7, 0.9, 0.97];
pub(super) const OWN_QUANTILES: [f64; 2] = [0.5, 0.8];
pub(super) const ABOVE: f64 = 1.01;
/// Sums of flows between racks by what they share, of rounds whose flows show what that can do.
pub(super) fn sums(
    rounds: &Rounds,
    shared: impl Fn((usize, usize)) -> Option<usize>,
) -> BTreeMap<usize, Vec<f64>> {
    let mut all: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for round in &rounds.rounds {
        let mut of_round: BTreeMap<usize, (f64, bool)> = BTreeMap::new();
        for obs in rounds.of(round) {
            if let Some(at) = obs.racks.and_then(&shared) {
                let (sum, shows) = of_round.entry(at).or_default();
                *sum += obs.bits_per_sec;
                *shows |= obs.doubt < 1.0;
            }
        }
        for (at, (sum, _)) in of_round.into_iter().filter(|(_, (_, shows))| *shows) {
            all.entry(at).or_default().push(sum);
        }
    }
    all
}
