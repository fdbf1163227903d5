//! The circle method: a round-robin tournament. One player stays, the others move one position a
//! round.

/// Rounds in which every unordered pair of `0..players` meets exactly once, and each player at most
/// once a round: `players - 1` rounds, or `players` rounds with a bye each when the number is odd.
pub(crate) fn rounds(players: usize) -> Vec<Vec<(usize, usize)>> {
    (0..count(players))
        .map(|number| round(players, number))
        .collect()
}

/// How many rounds there are.
pub(crate) fn count(players: usize) -> usize {
    match players {
        0 | 1 => 0,
        // An odd number gets a dummy, whose partner has the bye.
        _ => players + players % 2 - 1,
    }
}

/// One of the rounds.
pub(crate) fn round(players: usize, number: usize) -> Vec<(usize, usize)> {
    let turning = count(players);
    let fixed = (turning, number % turning);
    let others = (1..turning.div_ceil(2))
        .map(|k| ((number + k) % turning, (number + turning - k) % turning));
    std::iter::once(fixed)
        .chain(others)
        .filter(|(a, b)| *a < players && *b < players)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_meets_once_and_nobody_twice_a_round() {
        for players in [0, 1, 2, 3, 4, 5, 6, 16, 99, 100, 257] {
            let rounds = rounds(players);
            let expected_rounds = match players {
                0 | 1 => 0,
                n if n % 2 == 0 => n - 1,
                n => n,
            };
            assert_eq!(rounds.len(), expected_rounds);
            let mut met = BTreeSet::new();
            for round in &rounds {
                let mut busy = BTreeSet::new();
                for (a, b) in round {
                    assert!(busy.insert(*a) && busy.insert(*b) && a != b);
                    assert!(met.insert((*a.min(b), *a.max(b))));
                }
            }
            assert_eq!(met.len(), players * players.saturating_sub(1) / 2);
        }
    }
}
