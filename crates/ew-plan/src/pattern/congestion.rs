//! Victims under load. No host is both, so that a victim's own NIC and CPU are its own: what
//! it loses is lost in the network.

use super::draft::{Draft, Impossible, Relation};
use super::site::{Sides, Site, dealt, spread};
use crate::schedule::draw::Draw;
use ew_model::congestion::Aggressor;
use ew_model::inventory::{HostId, Inventory};
use std::collections::BTreeMap;

/// Two of each.
const MIN_HOSTS: usize = 4;
/// With roles: one for victims, one for aggressors.
const MIN_OF_ROLE: usize = 2;
/// GPCNeT has one victim in five hosts.
const HOSTS_PER_VICTIM: usize = 5;
/// Hosts that one sends to at once in all-to-all: enough to load every path, and no more
/// connections than a host has to spare.
const MAX_PARTNERS: usize = 16;

pub(super) fn drafts(
    site: &Site<'_>,
    aggressor: Aggressor,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let have = site.inventory.hosts.len();
    if have < MIN_HOSTS {
        return Err(Impossible::TooFewHosts {
            need: MIN_HOSTS,
            have,
        });
    }
    let (victims, aggressors) = sides(site.inventory, draw);
    let measured = circle(site.inventory, &victims);
    Ok(under_load(site, &measured, |sample| {
        load(site.inventory, &aggressors, aggressor, sample)
    }))
}

/// With clients and servers: victims are some of both, aggressors the others, and every connection
/// is from a client to a server.
pub(super) fn drafts_between(
    site: &Site<'_>,
    between: &Sides,
    aggressor: Aggressor,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    for (role, hosts) in [("clients", &between.clients), ("servers", &between.servers)] {
        if hosts.len() < MIN_OF_ROLE {
            return Err(Impossible::TooFewOfRole {
                role,
                need: MIN_OF_ROLE,
                have: hosts.len(),
            });
        }
    }
    let mut split = |hosts: &[HostId]| {
        let mut victims = spread(site.inventory, hosts.to_vec(), draw);
        let count = (hosts.len() / HOSTS_PER_VICTIM).max(1);
        let aggressors = victims.split_off(count);
        (victims, aggressors)
    };
    let (victim_clients, clients) = split(&between.clients);
    let (victim_servers, servers) = split(&between.servers);
    let measured = dealt(&victim_clients, &victim_servers);
    let aggressors = Sides { clients, servers };
    Ok(under_load(site, &measured, |sample| {
        load_between(&aggressors, aggressor, sample)
    }))
}

/// The same victims in every repetition, and who is in their way.
fn under_load(
    site: &Site<'_>,
    measured: &[(HostId, HostId)],
    load: impl Fn(usize) -> Vec<(HostId, HostId)>,
) -> Vec<Draft> {
    let draft = |sample: u32| {
        let in_the_way = load(sample as usize).into_iter();
        let in_the_way = in_the_way.map(|(from, to)| Relation::aggressor(from, to));
        let measured = measured.iter().map(|(from, to)| Relation::new(*from, *to));
        Draft::new(sample, measured.chain(in_the_way).collect())
    };
    (0..site.samples).map(draft).collect()
}

/// An upper bound of one sample's relations.
pub(super) fn most_relations(hosts: u64) -> u64 {
    hosts.saturating_mul(MAX_PARTNERS as u64)
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
    let next = |index: usize| hosts[(index + shift) % hosts.len()];
    (0..hosts.len())
        .map(|index| (hosts[index], next(index)))
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
            let shifts = 1..=MAX_PARTNERS.min(hosts.len() - 1);
            let to = |from: usize, shift: usize| (hosts[from], hosts[(from + shift) % hosts.len()]);
            shifts
                .flat_map(|shift| (0..hosts.len()).map(move |from| to(from, shift)))
                .collect()
        }
        Aggressor::Permutation => circle(inventory, hosts),
    }
}

/// As [`load`], from clients to servers.
fn load_between(sides: &Sides, aggressor: Aggressor, sample: usize) -> Vec<(HostId, HostId)> {
    let Sides { clients, servers } = sides;
    match aggressor {
        Aggressor::None => Vec::new(),
        Aggressor::Incast => {
            let receiver = servers[sample % servers.len()];
            clients.iter().map(|client| (*client, receiver)).collect()
        }
        Aggressor::AllToAll => {
            let partners = MAX_PARTNERS.min(servers.len());
            let to = |from: usize, shift: usize| servers[(from + shift) % servers.len()];
            let to_all = |(from, client): (usize, &HostId)| {
                let client = *client;
                (0..partners).map(move |shift| (client, to(from, shift)))
            };
            clients.iter().enumerate().flat_map(to_all).collect()
        }
        Aggressor::Permutation => dealt(clients, servers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{flat, inventory, laid_out, site, two_sets};
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
            prop_assume!(inventory.hosts.len() >= MIN_HOSTS);
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
        assert_eq!(drafts[0].relations.len(), 12 + 48 * MAX_PARTNERS);
    }

    fn between(clients: u32, servers: u32, aggressor: Aggressor) -> Result<Vec<Draft>, Impossible> {
        let inventory = flat((clients + servers) as usize);
        let sides = two_sets(clients, servers);
        let site = Site {
            roles: Some(&sides),
            ..site(&inventory, 3)
        };
        let pattern = Pattern::Congestion { aggressor };
        crate::pattern::drafts(&pattern, &site, &mut Draw::new(1, "a"))
    }

    proptest! {
        #[test]
        fn with_roles_all_go_from_clients_to_servers(clients in 2u32..20, servers in 2u32..20) {
            let alone = between(clients, servers, Aggressor::None).unwrap();
            for aggressor in Aggressor::ALL {
                for draft in between(clients, servers, aggressor).unwrap() {
                    for relation in &draft.relations {
                        prop_assert!(relation.client.0 < clients && relation.server.0 >= clients);
                    }
                    let measured: Vec<_> = draft.relations.iter().copied().filter(|r| !r.is_aggressor).collect();
                    prop_assert_eq!(&measured, &alone[0].relations);
                    let (victims, others) = (ends(&draft, false), ends(&draft, true));
                    prop_assert!(victims.len() >= 2 && victims.is_disjoint(&others));
                    prop_assert_eq!(others.is_empty(), aggressor == Aggressor::None);
                }
            }
        }
    }

    #[test]
    fn with_roles_the_load_is_the_aggressors_word() {
        let load = |aggressor| -> Vec<Vec<(HostId, HostId)>> {
            let drafts = between(10, 5, aggressor).unwrap();
            let of = |draft: &Draft| {
                let load = draft.relations.iter().filter(|r| r.is_aggressor);
                load.map(|r| (r.client, r.server)).collect()
            };
            drafts.iter().map(of).collect()
        };
        let receivers = |flows: &[(HostId, HostId)]| -> BTreeSet<HostId> {
            flows.iter().map(|(_, to)| *to).collect()
        };
        let incast = load(Aggressor::Incast);
        assert!(
            incast
                .iter()
                .all(|flows| flows.len() == 8 && receivers(flows).len() == 1)
        );
        assert_ne!(receivers(&incast[0]), receivers(&incast[1]));
        let all: BTreeSet<_> = load(Aggressor::AllToAll)[0].iter().copied().collect();
        assert_eq!(all.len(), 8 * 4);
        assert_eq!(load(Aggressor::Permutation)[0].len(), 8);
        let refused = between(5, 1, Aggressor::Incast);
        let (role, need, have) = ("servers", 2, 1);
        assert_eq!(refused, Err(Impossible::TooFewOfRole { role, need, have }));
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
