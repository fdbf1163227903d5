//! Seeded matchings between groups: everybody sends to a member of another group, nobody shares a
//! target.

use super::draw::Draw;

/// Selects random pairs (sender, receiver) of different groups, each member at most once as sender
/// and once as receiver, as many as there can be. A perfect matching unless one group outnumbers
/// all others together; then that group's members alternate: `turn` moves the window of those that
/// take part.
pub(crate) fn draw_matching<T: Copy>(
    groups: &[Vec<T>],
    turn: usize,
    draw: &mut Draw,
) -> Vec<(T, T)> {
    let total: usize = groups.iter().map(Vec::len).sum();
    let Some(largest) = (0..groups.len()).max_by_key(|g| groups[*g].len()) else {
        return Vec::new();
    };
    let others = total - groups[largest].len();
    if groups[largest].len() >= others {
        dominated(groups, largest, turn, draw)
    } else {
        perfect(groups, draw)
    }
}

/// One group against all others: as many as the others are go each way.
fn dominated<T: Copy>(
    groups: &[Vec<T>],
    largest: usize,
    turn: usize,
    draw: &mut Draw,
) -> Vec<(T, T)> {
    let members = |g: &usize| groups[*g].iter().copied();
    let rest: Vec<T> = (0..groups.len())
        .filter(|g| *g != largest)
        .flat_map(|g| members(&g).collect::<Vec<_>>())
        .collect();
    let window = rotated(&groups[largest], turn * rest.len(), rest.len());
    let to_rest = draw.shuffled(&rest);
    let to_window = draw.shuffled(&window);
    let out = window.iter().copied().zip(to_rest);
    let back = rest.iter().copied().zip(to_window);
    out.chain(back).collect()
}

/// `count` items from `start` on, around the end.
pub(crate) fn rotated<T: Copy>(items: &[T], start: usize, count: usize) -> Vec<T> {
    let len = items.len().max(1);
    let at = |i| items.get((start + i) % len).copied();
    (0..count.min(items.len())).filter_map(at).collect()
}

/// No group is a majority: groups laid out one after the other and shifted by between the largest
/// group's size and the rest's land in another group everywhere. Random exchanges of targets then
/// forget the layout.
fn perfect<T: Copy>(groups: &[Vec<T>], draw: &mut Draw) -> Vec<(T, T)> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    draw.shuffle(&mut order);
    let members: Vec<(usize, T)> = order
        .iter()
        .flat_map(|g| draw.shuffled(&groups[*g]).into_iter().map(|m| (*g, m)))
        .collect();
    let total = members.len();
    let largest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let shift = largest + draw.below(total - 2 * largest + 1);
    let mut target: Vec<usize> = (0..total).map(|i| (i + shift) % total).collect();
    for _ in 0..10 * total {
        let (i, j) = (draw.below(total), draw.below(total));
        let differs = |a: usize, b: usize| members[a].0 != members[b].0;
        if differs(i, target[j]) && differs(j, target[i]) {
            target.swap(i, j);
        }
    }
    (0..total)
        .map(|i| (members[i].1, members[target[i]].1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn groups_of(sizes: &[usize]) -> Vec<Vec<(usize, usize)>> {
        let group = |(g, n): (usize, &usize)| (0..*n).map(|i| (g, i)).collect();
        sizes.iter().enumerate().map(group).collect()
    }

    proptest! {
        #[test]
        fn matchings_cross_groups_and_are_as_large_as_can_be(
            sizes in proptest::collection::vec(0usize..9, 0..7), seed: u64, turn in 0usize..5
        ) {
            let groups = groups_of(&sizes);
            let pairs = draw_matching(&groups, turn, &mut Draw::new(seed, "t"));
            let senders: BTreeSet<_> = pairs.iter().map(|p| p.0).collect();
            let receivers: BTreeSet<_> = pairs.iter().map(|p| p.1).collect();
            prop_assert_eq!(senders.len(), pairs.len());
            prop_assert_eq!(receivers.len(), pairs.len());
            prop_assert!(pairs.iter().all(|(a, b)| a.0 != b.0));
            let total: usize = sizes.iter().sum();
            let largest = sizes.iter().copied().max().unwrap_or(0);
            prop_assert_eq!(pairs.len(), total.min(2 * (total - largest)));
        }
    }

    #[test]
    fn everybody_of_a_large_group_gets_a_turn() {
        let groups = groups_of(&[7, 2]);
        let mut sent = BTreeSet::new();
        for turn in 0..4 {
            let pairs = draw_matching(&groups, turn, &mut Draw::new(1, "t"));
            sent.extend(pairs.iter().map(|p| p.0).filter(|m| m.0 == 0));
        }
        assert_eq!(sent.len(), 7);
    }

    #[test]
    fn targets_are_spread_over_the_other_groups() {
        let groups = groups_of(&[4, 4, 4, 4]);
        let mut draw = Draw::new(3, "t");
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            seen.extend(draw_matching(&groups, 0, &mut draw));
        }
        assert_eq!(
            seen.len(),
            16 * 12,
            "every legal pair is selected at some time"
        );
    }
}
