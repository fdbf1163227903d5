//! Every ordered pair of hosts. Isolated: each host in at most one flow per direction at a time,
//! and no uplink loaded above what it is taken to carry. Loaded: cyclic shifts, every host sending
//! and receiving.

use super::draft::{Draft, Relation};
use super::site::Site;
use crate::schedule::draw::Draw;
use crate::schedule::repair::uplink_flows;
use crate::schedule::{circle, uplink};
use ew_model::inventory::{HostId, Inventory};
use ew_model::scenario::MeshMode;

/// Up to this many hosts several orders are tried for an uplink-aware mesh.
const FEW_HOSTS: usize = 64;
const TRIES: usize = 16;

pub(super) fn drafts(
    site: &Site<'_>,
    mode: MeshMode,
    max_rounds: Option<u32>,
    draw: &mut Draw,
) -> Vec<Draft> {
    let hosts: Vec<HostId> = site.inventory.host_ids().collect();
    let mut drafts = Vec::new();
    for sample in 0..site.samples {
        let order = draw.shuffled(&hosts);
        let mut rounds = match mode {
            MeshMode::Isolated if hosts.len() > FEW_HOSTS && max_rounds.is_some() => {
                sampled(site, &order, max_rounds.unwrap_or(0) as usize, draw)
            }
            MeshMode::Isolated => isolated(site, &order, draw),
            MeshMode::Loaded { shifts_at_once } => loaded(&order, shifts_at_once, draw),
        };
        rounds.truncate(max_rounds.map_or(usize::MAX, |n| n as usize));
        drafts.extend(
            rounds
                .into_iter()
                .map(|relations| Draft::new(sample, relations)),
        );
    }
    drafts
}

/// See [`super::most_relations`].
pub(super) fn most_relations(hosts: u64, mode: MeshMode, max_rounds: Option<u32>) -> u64 {
    let whole = hosts * hosts.saturating_sub(1);
    match (mode, max_rounds) {
        (MeshMode::Loaded { shifts_at_once }, Some(rounds)) => {
            let shifts = u64::from(rounds) * u64::from(shifts_at_once);
            whole.min(shifts.saturating_mul(hosts))
        }
        (MeshMode::Isolated, Some(rounds)) if hosts > FEW_HOSTS as u64 => {
            whole.min(u64::from(rounds).saturating_mul(hosts))
        }
        // A small isolated schedule is made whole before it is cut.
        _ => whole,
    }
}

fn isolated(site: &Site<'_>, order: &[HostId], draw: &mut Draw) -> Vec<Vec<Relation>> {
    let Some(topology) = narrow_uplinks(site, order) else {
        let both = |(a, b): &(usize, usize)| {
            [
                Relation::new(order[*a], order[*b]),
                Relation::new(order[*b], order[*a]),
            ]
        };
        return circle::rounds(order.len())
            .iter()
            .map(|round| round.iter().flat_map(both).collect())
            .collect();
    };
    let mut rounds = spare_uplinks(order, &topology);
    if order.len() <= FEW_HOSTS {
        // How close the greedy comes depends on the order; where trying is cheap, the best of some
        // is taken.
        let least = uplink::min_rounds(&topology);
        for _ in 1..TRIES {
            if rounds.len() <= least {
                break;
            }
            let order = draw.shuffled(order);
            let other = narrow_uplinks(site, &order).map(|t| spare_uplinks(&order, &t));
            rounds = match other {
                Some(other) if other.len() < rounds.len() => other,
                _ => rounds,
            };
        }
    }
    // The busiest rounds come out first; a mesh cut short by max-rounds should be a fair sample.
    draw.shuffle(&mut rounds);
    rounds
}

/// Rounds of the circle in random order, of each as many pairs as the uplinks carry: the whole
/// schedule of a large mesh takes long to make, and a sample needs little of it.
fn sampled(
    site: &Site<'_>,
    order: &[HostId],
    rounds: usize,
    draw: &mut Draw,
) -> Vec<Vec<Relation>> {
    let topology = narrow_uplinks(site, order);
    let mut numbers: Vec<usize> = (0..circle::count(order.len())).collect();
    draw.shuffle(&mut numbers);
    let round = |number: usize| {
        let mut pairs = circle::round(order.len(), number);
        if let Some(topology) = &topology {
            let mut free = topology.uplink_flows.clone();
            draw.shuffle(&mut pairs);
            pairs.retain(|(a, b)| fits(topology, &mut free, *a, *b));
        }
        let both = |(a, b): (usize, usize)| {
            [
                Relation::new(order[a], order[b]),
                Relation::new(order[b], order[a]),
            ]
        };
        pairs.into_iter().flat_map(both).collect()
    };
    numbers.into_iter().take(rounds).map(round).collect()
}

/// Takes capacity for a pair, both directions at once, on the uplinks between its hosts.
fn fits(topology: &uplink::Topology, free: &mut [u32], a: usize, b: usize) -> bool {
    let (a, b) = (topology.rack_of[a], topology.rack_of[b]);
    if a == b {
        return true;
    }
    if free[a] == 0 || free[b] == 0 {
        return false;
    }
    free[a] -= 1;
    free[b] -= 1;
    true
}

fn spare_uplinks(order: &[HostId], topology: &uplink::Topology) -> Vec<Vec<Relation>> {
    let relation = |(a, b): &(usize, usize)| Relation::new(order[*a], order[*b]);
    uplink::rounds(topology)
        .iter()
        .map(|round| round.iter().map(relation).collect())
        .collect()
}

/// The racks of the hosts in `order`, if any uplink carries less than its rack could send. A host
/// without a rack counts as a rack of its own.
fn narrow_uplinks(site: &Site<'_>, order: &[HostId]) -> Option<uplink::Topology> {
    let inventory = site.inventory;
    let mut carried = uplink_flows(inventory, site.oversubscription);
    if !any_narrow(inventory, &carried) {
        return None;
    }
    let rack_of = order
        .iter()
        .map(|host| match inventory.rack_of(*host) {
            Some(rack) => rack.index(),
            None => {
                carried.push(1);
                carried.len() - 1
            }
        })
        .collect();
    Some(uplink::Topology {
        rack_of,
        uplink_flows: carried,
    })
}

/// One rack that contains everybody has nothing behind its uplink.
fn any_narrow(inventory: &Inventory, carried: &[u32]) -> bool {
    let mut hosts = vec![0usize; carried.len()];
    for rack in inventory.hosts.iter().filter_map(|host| host.rack) {
        hosts[rack.index()] += 1;
    }
    let all = inventory.hosts.len();
    hosts
        .iter()
        .zip(carried)
        .any(|(n, u)| *n < all && *n > *u as usize)
}

/// Shifts in random order, K of them a round: in shift s, host i sends to host i + s.
fn loaded(order: &[HostId], shifts_at_once: u32, draw: &mut Draw) -> Vec<Vec<Relation>> {
    let hosts = order.len();
    let shifts = draw.shuffled(&(1..hosts).collect::<Vec<_>>());
    shifts
        .chunks(shifts_at_once.max(1) as usize)
        .map(|together| {
            let shift = |s: &usize| {
                let s = *s;
                (0..hosts).map(move |i| Relation::new(order[i], order[(i + s) % hosts]))
            };
            together.iter().flat_map(shift).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{flat, inventory, is_matching, laid_out, site};
    use ew_model::Pattern;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn mesh(mode: MeshMode) -> Pattern {
        Pattern::Mesh {
            mode,
            max_rounds: None,
        }
    }

    fn pairs(drafts: &[Draft]) -> Vec<(u32, u32)> {
        let relations = drafts.iter().flat_map(|d| &d.relations);
        relations.map(|r| (r.client.0, r.server.0)).collect()
    }

    fn is_every_ordered_pair_once(drafts: &[Draft], hosts: usize) -> bool {
        let pairs = pairs(drafts);
        let distinct: BTreeSet<_> = pairs.iter().copied().collect();
        pairs.len() == hosts * (hosts - 1) && distinct.len() == pairs.len()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn isolated_covers_all_and_keeps_hosts_apart(
            sizes in proptest::collection::vec(1usize..7, 1..6), seed: u64
        ) {
            let inventory = inventory(&sizes);
            let hosts = inventory.hosts.len();
            prop_assume!(hosts > 1);
            let drafts = laid_out(&mesh(MeshMode::Isolated), &site(&inventory, 1), seed);
            prop_assert!(is_every_ordered_pair_once(&drafts, hosts));
            let carried = uplink_flows(&inventory, 4.0);
            for draft in &drafts {
                prop_assert!(is_matching(draft));
                let narrow = any_narrow(&inventory, &carried);
                for rack in inventory.rack_ids().filter(|_| narrow) {
                    let crossing = |r: &&Relation| inventory.crosses_racks(r.client, r.server);
                    let up = draft.relations.iter().filter(crossing)
                        .filter(|r| inventory.rack_of(r.client) == Some(rack)).count();
                    prop_assert!(up <= carried[rack.index()] as usize);
                }
            }
        }

        #[test]
        fn loaded_covers_all_with_everybody_busy(hosts in 2usize..20, k in 1u32..5, seed: u64) {
            let inventory = flat(hosts);
            let mode = MeshMode::Loaded { shifts_at_once: k };
            let drafts = laid_out(&mesh(mode), &site(&inventory, 1), seed);
            prop_assert!(is_every_ordered_pair_once(&drafts, hosts));
            prop_assert_eq!(drafts.len(), (hosts - 1).div_ceil(k as usize));
            for draft in &drafts {
                prop_assert_eq!(draft.relations.len() % hosts, 0);
                prop_assert!(k > 1 || is_matching(draft));
            }
        }
    }

    #[test]
    fn wide_uplinks_give_the_pure_circle() {
        let inventory = inventory(&[8, 8]);
        let site = Site {
            oversubscription: 1.0,
            ..site(&inventory, 1)
        };
        let drafts = laid_out(&mesh(MeshMode::Isolated), &site, 1);
        assert_eq!(drafts.len(), 15);
        let first: BTreeSet<_> = pairs(&drafts[..1]).into_iter().collect();
        assert!(first.iter().all(|(a, b)| first.contains(&(*b, *a))));
    }

    #[test]
    fn a_mesh_can_be_sampled() {
        let inventory = flat(20);
        let pattern = Pattern::Mesh {
            mode: MeshMode::Loaded { shifts_at_once: 1 },
            max_rounds: Some(8),
        };
        assert_eq!(laid_out(&pattern, &site(&inventory, 1), 1).len(), 8);
        assert_eq!(laid_out(&pattern, &site(&inventory, 2), 1).len(), 16);
    }

    #[test]
    fn a_large_mesh_is_sampled_without_loading_uplinks() {
        let inventory = inventory(&[40; 8]);
        let pattern = Pattern::Mesh {
            mode: MeshMode::Isolated,
            max_rounds: Some(24),
        };
        let drafts = laid_out(&pattern, &site(&inventory, 1), 1);
        assert_eq!(drafts.len(), 24);
        let carried = uplink_flows(&inventory, 4.0);
        for draft in &drafts {
            assert!(is_matching(draft));
            assert!(draft.relations.len() > 40);
            for rack in inventory.rack_ids() {
                let leaves = |r: &&Relation| {
                    inventory.rack_of(r.client) == Some(rack)
                        && inventory.crosses_racks(r.client, r.server)
                };
                let count = draft.relations.iter().filter(leaves).count();
                assert!(count <= carried[rack.index()] as usize);
            }
        }
    }

    #[test]
    fn small_meshes_take_hardly_more_rounds_than_they_must() {
        for (sizes, least) in [(vec![4, 4], 16), (vec![3, 3, 3], 18), (vec![8, 8], 32)] {
            let inventory = inventory(&sizes);
            for seed in 0..10 {
                let rounds = laid_out(&mesh(MeshMode::Isolated), &site(&inventory, 1), seed).len();
                assert!(
                    rounds <= least + 2,
                    "{sizes:?}: {rounds} rounds against {least}"
                );
            }
        }
    }

    #[test]
    fn hundreds_of_hosts_are_scheduled_near_the_bound() {
        let inventory = inventory(&[40; 8]);
        let drafts = laid_out(&mesh(MeshMode::Isolated), &site(&inventory, 1), 1);
        let bound = 40 * 280 / 10;
        let rounds = drafts.len();
        assert!(
            rounds >= bound && rounds * 100 <= bound * 105,
            "{rounds} against {bound}"
        );
    }
}
