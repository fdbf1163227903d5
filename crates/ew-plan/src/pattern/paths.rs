//! Every host to one other host, the same pairs in every repetition: with pinned source ports the
//! same 5-tuples, and so the same paths, are measured again. A shift pairs each rack with the one
//! so many positions on. What is low in one shift and fine in another belongs to the end that they
//! do not share. Every other repetition has the pairs the other way: twice as many 5-tuples, of
//! which each is opened by who sends, so that it can be traced.

use super::draft::{Draft, Relation};
use super::site::{Site, racks};
use crate::schedule::draw::Draw;
use crate::schedule::shift::{paired, rack_offsets};
use ew_model::inventory::HostId;

pub(super) fn drafts(site: &Site<'_>, shifts: u32, draw: &mut Draw) -> Vec<Draft> {
    let racks = racks(site.inventory);
    let shifts: Vec<Vec<Relation>> = match racks.len() {
        0 | 1 => of_hosts(site, shifts, draw),
        _ => of_racks(&racks, shifts, draw),
    };
    let repetition = |sample: u32| {
        shifts.iter().map(move |relations| match sample % 2 {
            0 => Draft::new(sample, relations.clone()),
            _ => Draft::new(sample, swapped(relations)),
        })
    };
    (0..site.samples).flat_map(repetition).collect()
}

fn swapped(relations: &[Relation]) -> Vec<Relation> {
    let relations = relations.iter();
    relations
        .map(|pair| Relation::new(pair.server, pair.client))
        .collect()
}

fn of_racks(racks: &[Vec<HostId>], shifts: u32, draw: &mut Draw) -> Vec<Vec<Relation>> {
    let mut racks = draw.shuffled(racks);
    racks.iter_mut().for_each(|hosts| draw.shuffle(hosts));
    let offsets = rack_offsets(racks.len(), draw);
    let turns = offsets.iter().cycle().zip(0..shifts as usize);
    turns
        .map(|(offset, turn)| paired(&racks, *offset, turn))
        .map(|pairs| {
            pairs
                .into_iter()
                .map(|(a, b)| Relation::new(a, b))
                .collect()
        })
        .collect()
}

fn of_hosts(site: &Site<'_>, shifts: u32, draw: &mut Draw) -> Vec<Vec<Relation>> {
    let hosts: Vec<HostId> = site.inventory.host_ids().collect();
    let hosts = draw.shuffled(&hosts);
    let offsets = rack_offsets(hosts.len(), draw);
    let turns = offsets.iter().cycle().take(shifts as usize);
    let to = |from: usize, offset: usize| hosts[(from + offset) % hosts.len()];
    turns
        .map(|offset| {
            let relation = |from: usize| Relation::new(hosts[from], to(from, *offset));
            (0..hosts.len()).map(relation).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{flat, inventory, is_matching, laid_out, site};
    use ew_model::Pattern;
    use ew_model::inventory::RackId;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn repetitions_have_the_same_pairs_and_shifts_other_racks(
            sizes in proptest::collection::vec(1usize..6, 2..6), seed: u64
        ) {
            let inventory = inventory(&sizes);
            let drafts = laid_out(&Pattern::Paths { shifts: 2 }, &site(&inventory, 4), seed);
            prop_assert_eq!(drafts.len(), 8);
            for (n, draft) in drafts.iter().enumerate() {
                prop_assert!(is_matching(draft));
                let (first, is_swapped) = (&drafts[n % 2].relations, n / 2 % 2 == 1);
                let expected = if is_swapped { super::swapped(first) } else { first.clone() };
                prop_assert_eq!(&draft.relations, &expected);
                prop_assert!(draft.relations.iter().all(|r| inventory.crosses_racks(r.client, r.server)));
                let mut into: BTreeMap<RackId, BTreeSet<RackId>> = BTreeMap::new();
                for r in &draft.relations {
                    let (from, to) = (inventory.rack_of(r.client).unwrap(), inventory.rack_of(r.server).unwrap());
                    into.entry(to).or_default().insert(from);
                }
                prop_assert!(into.values().all(|from| from.len() == 1), "one rack sends to one");
            }
            let racks = |n: usize| -> BTreeSet<_> {
                let of = |r: &crate::pattern::Relation| (inventory.rack_of(r.client), inventory.rack_of(r.server));
                drafts[n].relations.iter().map(of).collect()
            };
            prop_assert!(sizes.len() == 2 || racks(0).is_disjoint(&racks(1)));
        }

        #[test]
        fn without_racks_every_host_sends_to_another(hosts in 3usize..20, seed: u64) {
            let inventory = flat(hosts);
            let drafts = laid_out(&Pattern::Paths { shifts: 2 }, &site(&inventory, 1), seed);
            let pairs = drafts.iter().flat_map(|d| &d.relations).map(|r| (r.client, r.server));
            prop_assert_eq!(pairs.collect::<BTreeSet<_>>().len(), 2 * hosts);
        }
    }
}
