//! One half of the hosts against the other, both directions at once: every host sends to one of the
//! other half and receives from one of it. Whole racks are dealt to the halves, the largest first,
//! so that the halves come out as equal as they can; without two racks, hosts are dealt.

use super::draft::{Draft, Relation};
use super::site::{Site, racks};
use crate::schedule::draw::Draw;
use ew_model::inventory::HostId;

pub(super) fn drafts(site: &Site<'_>, draw: &mut Draw) -> Vec<Draft> {
    (0..site.samples)
        .map(|sample| Draft::new(sample, relations(site, draw)))
        .collect()
}

fn relations(site: &Site<'_>, draw: &mut Draw) -> Vec<Relation> {
    let (left, right) = halves(site, draw);
    let (left, right) = (draw.shuffled(&left), draw.shuffled(&right));
    // The larger half's surplus stays idle this time; who that is was just selected.
    let count = left.len().min(right.len());
    let (left, right) = (&left[..count], &right[..count]);
    let to_right = left.iter().zip(draw.shuffled(right));
    let to_left = right.iter().zip(draw.shuffled(left));
    to_right
        .chain(to_left)
        .map(|(a, b)| Relation::new(*a, b))
        .collect()
}

fn halves(site: &Site<'_>, draw: &mut Draw) -> (Vec<HostId>, Vec<HostId>) {
    let inventory = site.inventory;
    let mut blocks = racks(inventory);
    let without_rack = inventory
        .host_ids()
        .filter(|id| inventory.rack_of(*id).is_none());
    blocks.extend(without_rack.map(|id| vec![id]));
    if blocks.len() < 2 {
        blocks = inventory.host_ids().map(|id| vec![id]).collect();
    }
    draw.shuffle(&mut blocks);
    blocks.sort_by_key(|block| std::cmp::Reverse(block.len()));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for block in blocks {
        let half = if left.len() <= right.len() {
            &mut left
        } else {
            &mut right
        };
        half.extend(block);
    }
    (left, right)
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{flat, inventory, is_matching, laid_out, site};
    use ew_model::{Pattern, RackId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn equal_racks_are_split_and_all_take_part(racks in 1usize..4, n in 1usize..6, seed: u64) {
            let inventory = inventory(&vec![n; racks * 2]);
            for draft in laid_out(&Pattern::Bisection, &site(&inventory, 3), seed) {
                prop_assert!(is_matching(&draft));
                prop_assert_eq!(draft.relations.len(), racks * 2 * n);
                // Two colours are enough: the halves are made of whole racks.
                let mut side: BTreeMap<RackId, bool> = BTreeMap::new();
                for _ in 0..racks * 2 {
                    for r in &draft.relations {
                        let (a, b) = (inventory.rack_of(r.client).unwrap(), inventory.rack_of(r.server).unwrap());
                        if side.is_empty() {
                            side.insert(a, true);
                        }
                        if let Some(s) = side.get(&a).copied() {
                            prop_assert_eq!(*side.entry(b).or_insert(!s), !s);
                        }
                    }
                }
            }
        }

        #[test]
        fn hosts_without_racks_are_split(hosts in 2usize..20, seed: u64) {
            let inventory = flat(hosts);
            for draft in laid_out(&Pattern::Bisection, &site(&inventory, 2), seed) {
                prop_assert!(is_matching(&draft));
                prop_assert_eq!(draft.relations.len(), hosts / 2 * 2);
            }
        }
    }
}
