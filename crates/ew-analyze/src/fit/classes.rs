//! Classes of hosts: NICs of several speeds are no fault of the slower ones.

use super::rounds::Rounds;
use crate::criteria::{CLASS_SHARE, LEAST_FILL, MIN_EFFECT, MIN_SEEN};
use crate::stats::median;

/// Whether so many of all hosts are a class, and no exceptions.
pub(crate) fn is_class(hosts: usize, of: usize) -> bool {
    hosts >= MIN_SEEN && hosts as f64 >= CLASS_SHARE * of as f64
}

/// Value of each class, ascending, and the class of every host.
pub(super) fn classes(rounds: &Rounds) -> (Vec<f64>, Vec<usize>) {
    let best = best_rates(rounds);
    let values = values(rounds.hosts, &best);
    let class_of = best.iter().map(|best| class_of(&values, *best)).collect();
    (values, class_of)
}

/// What each host did at its best, sending or receiving: its sums over the flows of a round.
fn best_rates(rounds: &Rounds) -> Vec<f64> {
    let mut sums = vec![Vec::new(); 2 * rounds.hosts];
    let mut of_round = vec![0.0; 2 * rounds.hosts];
    for round in &rounds.rounds {
        of_round.fill(0.0);
        for obs in rounds.of(round) {
            of_round[obs.src.index()] += obs.bits_per_sec;
            of_round[rounds.hosts + obs.dst.index()] += obs.bits_per_sec;
        }
        for (sums, sum) in sums
            .iter_mut()
            .zip(&of_round)
            .filter(|(_, sum)| **sum > 0.0)
        {
            sums.push(*sum);
        }
    }
    let (tx, rx) = sums.split_at(rounds.hosts);
    tx.iter()
        .zip(rx)
        .map(|(tx, rx)| high(tx).max(high(rx)))
        .collect()
}

/// The second largest of four or more: one figure may be anything.
fn high(values: &[f64]) -> f64 {
    let sorted = crate::stats::sorted(values);
    match sorted.len() {
        0 => 0.0,
        1..4 => sorted[sorted.len() - 1],
        count => sorted[count - 2],
    }
}

fn values(hosts: usize, best: &[f64]) -> Vec<f64> {
    let sorted: Vec<f64> = crate::stats::sorted(best)
        .into_iter()
        .filter(|best| *best > 0.0)
        .collect();
    let groups: Vec<&[f64]> = sorted
        .chunk_by(|a, b| a >= &((1.0 - MIN_EFFECT) * b))
        .collect();
    let is_class = |group: &&&[f64]| {
        is_class(group.len(), hosts) && group[0] > LEAST_FILL * group[group.len() - 1]
    };
    let mut classes: Vec<&[f64]> = groups.iter().filter(is_class).copied().collect();
    if classes.is_empty() {
        // Too few hosts for classes: the fastest that are not one alone, else the largest group.
        let last = groups.last().filter(|group| group.len() > 1);
        classes.extend(last.or_else(|| groups.iter().max_by_key(|group| group.len())));
    }
    classes.iter().filter_map(|class| median(class)).collect()
}

/// The lowest class whose value is as good as what the host did at its best.
fn class_of(values: &[f64], best: f64) -> usize {
    let reaching = values
        .iter()
        .position(|value| (1.0 - MIN_EFFECT) * best <= *value);
    reaching.unwrap_or(values.len().saturating_sub(1))
}
