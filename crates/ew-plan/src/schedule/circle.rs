//! The circle method: a round-robin tournament. One player stays, the others move one seat a round.

/// Rounds in which every unordered pair of `0..players` meets exactly once, and each player at most once a round:
/// `players - 1` rounds, or `players` rounds with a bye each when the number is odd.
pub(crate) fn rounds(players: usize) -> Vec<Vec<(usize, usize)>> {
    if players < 2 {
        return Vec::new();
    }
    // An odd number gets a dummy, whose partner has the bye.
    let seats = players + players % 2;
    let turning = seats - 1;
    let meets = |round: usize| {
        let fixed = (turning, round % turning);
        let others =
            (1..seats / 2).map(move |k| ((round + k) % turning, (round + turning - k) % turning));
        std::iter::once(fixed)
            .chain(others)
            .filter(|(a, b)| *a < players && *b < players)
            .collect()
    };
    (0..turning).map(meets).collect()
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
