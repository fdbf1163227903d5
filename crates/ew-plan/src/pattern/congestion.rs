//! Victims under load. No host is both, so that a victim's own NIC and CPU are its own: what
//! it loses is lost in the network.

use super::{Draft, Impossible, Relation, Site, spread};
use crate::schedule::draw::Draw;
use ew_model::congestion::Aggressor;
use ew_model::inventory::{HostId, Inventory};
use std::collections::BTreeMap;

/// Two of each.
const LEAST_HOSTS: usize = 4;
/// GPCNeT has one victim in five hosts.
const HOSTS_PER_VICTIM: usize = 5;
/// Hosts that one sends to at once in all-to-all: enough to load every path, and no more
/// connections than a host has to spare.
const MOST_PARTNERS: usize = 16;

pub(super) fn drafts(
    site: &Site<'_>,
    aggressor: Aggressor,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let have = site.inventory.hosts.len();
    if have < LEAST_HOSTS {
        return Err(Impossible::TooFewHosts {
            need: LEAST_HOSTS,
            have,
        });
    }
    let (victims, aggressors) = sides(site.inventory, draw);
    let measured = circle(site.inventory, &victims);
    let draft = |sample: u32| {
        let in_the_way = load(site.inventory, &aggressors, aggressor, sample as usize);
        let in_the_way = in_the_way
            .into_iter()
            .map(|(from, to)| Relation::aggressor(from, to));
        let measured = measured.iter().map(|(from, to)| Relation::new(*from, *to));
        Draft::new(sample, measured.chain(in_the_way).collect())
    };
    Ok((0..site.samples).map(draft).collect())
}

/// An upper bound of one sample's relations.
pub(super) fn most_relations(hosts: u64) -> u64 {
    hosts.saturating_mul(MOST_PARTNERS as u64)
}

/// Victims, as many in each rack and at least one while half of the hosts are left, and aggressors.
/// Both alternate between racks.
fn sides(inventory: &Inventory, draw: &mut Draw) -> (Vec<HostId>, Vec<HostId>) {
    let mut victims = spread(inventory, inventory.host_ids().collect(), draw);
    let hosts = victims.len();
    let racks = inventory.racks.len().max(1);
    let in_each = (hosts / HOSTS_PER_VICTIM / racks).max(1);
    let count = (racks * in_each).max(2);
    let aggressors = victims.split_off(count.min(hosts / 2));
    (victims, aggressors)
}

/// Each sends to one and receives from one, of another rack where no rack has more than half of
/// them.
fn circle(inventory: &Inventory, hosts: &[HostId]) -> Vec<(HostId, HostId)> {
    let mut in_rack: BTreeMap<_, usize> = BTreeMap::new();
    for host in hosts {
        *in_rack.entry(inventory.rack_of(*host)).or_default() += 1;
    }
    let largest = in_rack.values().copied().max().unwrap_or(1);
    // Without racks all are in one; nobody sends to itself.
    let shift = if largest < hosts.len() { largest } else { 1 };
    let mut hosts = hosts.to_vec();
    hosts.sort_by_key(|host| inventory.rack_of(*host));
    let next = |place: usize| hosts[(place + shift) % hosts.len()];
    (0..hosts.len())
        .map(|place| (hosts[place], next(place)))
        .collect()
}

/// Who sends to whom in a repetition.
fn load(
    inventory: &Inventory,
    hosts: &[HostId],
    aggressor: Aggressor,
    sample: usize,
) -> Vec<(HostId, HostId)> {
    match aggressor {
        Aggressor::None => Vec::new(),
        Aggressor::Incast => {
            let receiver = hosts[sample % hosts.len()];
            let senders = hosts.iter().filter(|host| **host != receiver);
            senders.map(|sender| (*sender, receiver)).collect()
        }
        Aggressor::AllToAll => {
            let shifts = 1..=MOST_PARTNERS.min(hosts.len() - 1);
            let to = |from: usize, shift: usize| (hosts[from], hosts[(from + shift) % hosts.len()]);
            shifts
                .flat_map(|shift| (0..hosts.len()).map(move |from| to(from, shift)))
                .collect()
        }
        Aggressor::Permutation => circle(inventory, hosts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{flat, inventory, laid_out, site};
    use ew_model::Pattern;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(inventory: &Inventory, aggressor: Aggressor, seed: u64) -> Vec<Draft> {
        laid_out(
            &Pattern::Congestion { aggressor },
            &site(inventory, 3),
            seed,
        )
    }

    fn ends(draft: &Draft, is_aggressor: bool) -> BTreeSet<HostId> {
        let part = draft.relations.iter();
        let part = part.filter(|relation| relation.is_aggressor == is_aggressor);
        part.flat_map(|r| [r.client, r.server]).collect()
    }

    proptest! {
        #[test]
        fn victims_are_the_same_whatever_is_in_their_way(
            sizes in proptest::collection::vec(1usize..9, 2..6), seed: u64
        ) {
            let inventory = inventory(&sizes);
            prop_assume!(inventory.hosts.len() >= LEAST_HOSTS);
            let alone = of(&inventory, Aggressor::None, seed);
            prop_assert!(alone.iter().all(|draft| draft.relations == alone[0].relations));
            for aggressor in Aggressor::ALL {
                for draft in of(&inventory, aggressor, seed) {
                    let measured: Vec<_> = draft.relations.iter().copied().filter(|r| !r.is_aggressor).collect();
                    prop_assert_eq!(&measured, &alone[0].relations);
                    let (victims, others) = (ends(&draft, false), ends(&draft, true));
                    prop_assert!(victims.is_disjoint(&others));
                    prop_assert!(victims.len() >= 2);
                    let all_take_part = victims.len() + others.len() == inventory.hosts.len();
                    prop_assert!(aggressor == Aggressor::None || all_take_part);
                }
            }
        }

        #[test]
        fn between_racks_of_one_size_all_cross(racks in 2usize..6, size in 2usize..9, seed: u64) {
            let inventory = inventory(&vec![size; racks]);
            for draft in of(&inventory, Aggressor::Permutation, seed) {
                prop_assert!(draft.relations.iter().all(|r| inventory.crosses_racks(r.client, r.server)));
            }
        }
    }

    #[test]
    fn the_receiver_of_an_incast_changes_and_without_racks_it_works_too() {
        let drafts = of(&flat(10), Aggressor::Incast, 1);
        let receivers = |draft: &Draft| -> BTreeSet<HostId> {
            let load = draft.relations.iter().filter(|r| r.is_aggressor);
            load.map(|r| r.server).collect()
        };
        assert!(drafts.iter().all(|draft| receivers(draft).len() == 1));
        assert_ne!(receivers(&drafts[0]), receivers(&drafts[1]));
        assert_eq!(
            drafts[0]
                .relations
                .iter()
                .filter(|r| r.is_aggressor)
                .count(),
            7
        );
    }

    #[test]
    fn all_to_all_has_a_bound() {
        let drafts = of(&inventory(&[30, 30]), Aggressor::AllToAll, 1);
        assert_eq!(drafts[0].relations.len(), 12 + 48 * MOST_PARTNERS);
    }

    #[test]
    fn three_hosts_are_too_few() {
        let inventory = flat(3);
        let refused = drafts(
            &site(&inventory, 1),
            Aggressor::None,
            &mut Draw::new(1, "a"),
        );
        assert_eq!(refused, Err(Impossible::TooFewHosts { need: 4, have: 3 }));
    }
}
