//! Every host to a host of another rack: by matchings in which nobody shares a target, or at random
//! as the shell loop makes them; all racks at once, or pair by pair; all hosts, or a ramp of 1, 2,
//! ... senders a rack.

use super::draft::{Draft, Impossible, Relation};
use super::site::{Site, racks};
use crate::schedule::circle;
use crate::schedule::draw::Draw;
use crate::schedule::matching::{draw_matching, rotated};
use crate::schedule::shift::{paired, rack_offsets};
use ew_model::inventory::HostId;
use ew_model::scenario::{Pick, RackScope, Senders};

/// Counts of senders that a ramp tries: all of 1..=n up to this, evenly spread above, so that a
/// ramp over large racks takes minutes, not hours; the knee is then known to a sixteenth of the
/// rack.
const MAX_RAMP_STEPS: usize = 16;

/// Racks that are active together, by index. Several arenas share a round and have no rack in
/// common.
type Arena = Vec<usize>;

pub(super) fn drafts(
    site: &Site<'_>,
    pick: Pick,
    senders: Senders,
    scope: RackScope,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let mut racks = racks(site.inventory);
    if racks.len() < 2 {
        return Err(Impossible::NeedsTwoRacks { have: racks.len() });
    }
    // A random order per rack, kept over samples, so that turns reach everybody.
    racks.iter_mut().for_each(|hosts| draw.shuffle(hosts));
    if let (Pick::Matching, Senders::All, RackScope::All) = (pick, senders, scope)
        && racks.iter().all(|hosts| hosts.len() == racks[0].len())
    {
        return Ok(shifted(site, racks, draw));
    }
    let rounds = rounds_of_arenas(racks.len(), scope, draw);
    let mut drafts = Vec::new();
    for sample in 0..site.samples {
        for arenas in &rounds {
            for step in steps(arenas, &racks, senders, scope) {
                let relations = arenas
                    .iter()
                    .filter(|arena| step.is_none_or(|k| k <= most_senders(arena, &racks, scope)))
                    .flat_map(|arena| relations(arena, &racks, step, sample, pick, draw))
                    .collect();
                drafts.push(Draft {
                    sample,
                    senders_per_rack: step.map(|k| k as u32),
                    relations,
                });
            }
        }
    }
    Ok(drafts)
}

/// Racks of one size: every repetition another shift of the racks against each other, in a random
/// order, and their hosts matched anew. Racks of several sizes are matched at random instead,
/// because pairs of racks would leave the larger ones' hosts idle.
fn shifted(site: &Site<'_>, mut racks: Vec<Vec<HostId>>, draw: &mut Draw) -> Vec<Draft> {
    let mut offsets = Vec::new();
    let mut drafts = Vec::new();
    for sample in 0..site.samples {
        let offset = offsets.pop().unwrap_or_else(|| {
            draw.shuffle(&mut racks);
            offsets = rack_offsets(racks.len(), draw);
            offsets.pop().unwrap_or(1)
        });
        let pairs = paired(&racks, offset, sample as usize);
        let relations = pairs.into_iter().map(|(a, b)| Relation::new(a, b));
        drafts.push(Draft::new(sample, relations.collect()));
    }
    drafts
}

/// See [`super::most_relations`].
pub(super) fn most_relations(hosts: u64, racks: u64, senders: Senders, scope: RackScope) -> u64 {
    let steps = match senders {
        Senders::All => 1,
        Senders::Ramp => MAX_RAMP_STEPS as u64,
    };
    let rounds = match scope {
        RackScope::All => 1,
        RackScope::EachPair => racks,
    };
    hosts.saturating_mul(steps).saturating_mul(rounds)
}

/// One arena of all racks, or the circle method over racks.
fn rounds_of_arenas(racks: usize, scope: RackScope, draw: &mut Draw) -> Vec<Vec<Arena>> {
    match scope {
        RackScope::All => vec![vec![(0..racks).collect()]],
        RackScope::EachPair => {
            let order = draw.shuffled(&(0..racks).collect::<Vec<_>>());
            circle::rounds(racks)
                .into_iter()
                .map(|round| {
                    round
                        .iter()
                        .map(|(a, b)| vec![order[*a], order[*b]])
                        .collect()
                })
                .collect()
        }
    }
}

/// The counts of senders a rack to try one after the other; `None` is all.
fn steps(
    arenas: &[Arena],
    racks: &[Vec<HostId>],
    senders: Senders,
    scope: RackScope,
) -> Vec<Option<usize>> {
    let most = arenas
        .iter()
        .map(|arena| most_senders(arena, racks, scope))
        .max();
    match senders {
        Senders::All => vec![None],
        Senders::Ramp => ramp(most.unwrap_or(0)).into_iter().map(Some).collect(),
    }
}

fn ramp(most: usize) -> Vec<usize> {
    if most <= MAX_RAMP_STEPS {
        return (1..=most).collect();
    }
    let last = MAX_RAMP_STEPS - 1;
    (0..=last).map(|i| 1 + (most - 1) * i / last).collect()
}

/// Where the ramp of an arena ends: at the smaller rack of a pair, at the largest of all racks.
fn most_senders(arena: &Arena, racks: &[Vec<HostId>], scope: RackScope) -> usize {
    let sizes = arena.iter().map(|rack| racks[*rack].len());
    match scope {
        RackScope::All => sizes.max().unwrap_or(0),
        RackScope::EachPair => sizes.min().unwrap_or(0),
    }
}

fn relations(
    arena: &Arena,
    racks: &[Vec<HostId>],
    senders: Option<usize>,
    sample: u32,
    pick: Pick,
    draw: &mut Draw,
) -> Vec<Relation> {
    let turn = sample as usize;
    let taking_part: Vec<Vec<HostId>> = arena
        .iter()
        .map(|rack| match senders {
            None => racks[*rack].clone(),
            Some(count) => rotated(&racks[*rack], turn, count),
        })
        .collect();
    match pick {
        Pick::Matching => draw_matching(&taking_part, turn, draw)
            .into_iter()
            .map(|(a, b)| Relation::new(a, b))
            .collect(),
        Pick::Random { lanes } => {
            let servers: Vec<&[HostId]> = arena.iter().map(|r| racks[*r].as_slice()).collect();
            random_picks(&taking_part, &servers, lanes, draw)
        }
    }
}

/// Each client selects a random server of another rack, as if nobody else did.
fn random_picks(
    clients: &[Vec<HostId>],
    servers: &[&[HostId]],
    lanes: u16,
    draw: &mut Draw,
) -> Vec<Relation> {
    let mut relations = Vec::new();
    for (own, hosts) in clients.iter().enumerate() {
        let others: Vec<HostId> = (0..servers.len())
            .filter(|rack| *rack != own)
            .flat_map(|rack| servers[rack].iter().copied())
            .collect();
        relations.extend(picks(hosts, &others, lanes, draw));
    }
    relations
}

/// Each client selects one of the servers and one of its ports.
pub(super) fn picks(
    clients: &[HostId],
    servers: &[HostId],
    lanes: u16,
    draw: &mut Draw,
) -> Vec<Relation> {
    let mut pick = |client: &HostId| {
        let server = servers[draw.below(servers.len())];
        let lane = Some(draw.below(usize::from(lanes)) as u16);
        let relation = Relation::new(*client, server);
        Relation { lane, ..relation }
    };
    clients.iter().map(&mut pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{inventory, is_matching, laid_out, site};
    use ew_model::{Pattern, RackId};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn pattern(pick: Pick, senders: Senders, scope: RackScope) -> Pattern {
        Pattern::CrossRack {
            pick,
            senders,
            scope,
        }
    }

    fn sizes() -> impl Strategy<Value = Vec<usize>> {
        proptest::collection::vec(1usize..7, 2..6)
    }

    proptest! {
        #[test]
        fn matchings_of_all_racks(sizes in sizes(), seed: u64) {
            let inventory = inventory(&sizes);
            let pattern = pattern(Pick::Matching, Senders::All, RackScope::All);
            let total: usize = sizes.iter().sum();
            let largest = sizes.iter().copied().max().unwrap_or(0);
            for draft in laid_out(&pattern, &site(&inventory, 3), seed) {
                prop_assert!(is_matching(&draft));
                prop_assert_eq!(draft.relations.len(), total.min(2 * (total - largest)));
                prop_assert!(draft.relations.iter().all(|r| inventory.crosses_racks(r.client, r.server)));
            }
        }

        #[test]
        fn each_pair_meets_alone_in_both_directions(sizes in sizes(), seed: u64) {
            let inventory = inventory(&sizes);
            let pattern = pattern(Pick::Matching, Senders::All, RackScope::EachPair);
            let mut flows: BTreeMap<(RackId, RackId), usize> = BTreeMap::new();
            for draft in laid_out(&pattern, &site(&inventory, 1), seed) {
                prop_assert!(is_matching(&draft));
                let mut partner: BTreeMap<RackId, BTreeSet<RackId>> = BTreeMap::new();
                for r in &draft.relations {
                    let racks = (inventory.rack_of(r.client).unwrap(), inventory.rack_of(r.server).unwrap());
                    *flows.entry(racks).or_default() += 1;
                    partner.entry(racks.0).or_default().insert(racks.1);
                    partner.entry(racks.1).or_default().insert(racks.0);
                }
                prop_assert!(partner.values().all(|p| p.len() == 1));
            }
            prop_assert_eq!(flows.len(), sizes.len() * (sizes.len() - 1));
            for ((a, b), count) in flows {
                prop_assert_eq!(count, sizes[a.index()].min(sizes[b.index()]));
            }
        }

        #[test]
        fn a_ramp_has_k_senders_each_way(sizes in sizes(), seed: u64) {
            let inventory = inventory(&sizes);
            let pattern = pattern(Pick::Matching, Senders::Ramp, RackScope::EachPair);
            let mut seen: BTreeMap<(RackId, RackId), Vec<u32>> = BTreeMap::new();
            for draft in laid_out(&pattern, &site(&inventory, 1), seed) {
                let k = draft.senders_per_rack.unwrap();
                let mut count: BTreeMap<(RackId, RackId), u32> = BTreeMap::new();
                for r in &draft.relations {
                    let racks = (inventory.rack_of(r.client).unwrap(), inventory.rack_of(r.server).unwrap());
                    *count.entry(racks).or_default() += 1;
                }
                prop_assert!(!count.is_empty());
                for (racks, n) in count {
                    prop_assert_eq!(n, k);
                    seen.entry(racks).or_default().push(k);
                }
            }
            for ((a, b), ks) in seen {
                let most = sizes[a.index()].min(sizes[b.index()]) as u32;
                prop_assert_eq!(ks, (1..=most).collect::<Vec<_>>());
            }
        }

        #[test]
        fn random_picks_cross_racks_on_known_lanes(sizes in sizes(), seed: u64, lanes in 1u16..5) {
            let inventory = inventory(&sizes);
            let pattern = pattern(Pick::Random { lanes }, Senders::All, RackScope::All);
            let drafts = laid_out(&pattern, &site(&inventory, 4), seed);
            prop_assert_eq!(drafts.len(), 4);
            for draft in drafts {
                let mut clients: Vec<_> = draft.relations.iter().map(|r| r.client).collect();
                clients.sort_unstable();
                prop_assert_eq!(clients, inventory.host_ids().collect::<Vec<_>>());
                for r in &draft.relations {
                    prop_assert!(inventory.crosses_racks(r.client, r.server));
                    prop_assert!(r.lane.unwrap() < lanes);
                }
            }
        }
    }

    #[test]
    fn random_picks_collide_as_the_loop_does() {
        let inventory = inventory(&[8, 8]);
        let pattern = pattern(Pick::Random { lanes: 3 }, Senders::All, RackScope::All);
        let drafts = laid_out(&pattern, &site(&inventory, 20), 5);
        let colliding = drafts.iter().filter(|draft| {
            let drawn: BTreeSet<_> = draft.relations.iter().map(|r| (r.server, r.lane)).collect();
            drawn.len() < draft.relations.len()
        });
        assert!(colliding.count() > 10);
    }

    #[test]
    fn long_ramps_are_sampled_with_both_ends() {
        assert_eq!(ramp(3), [1, 2, 3]);
        let long = ramp(40);
        assert_eq!((long.len(), long[0], long[15]), (16, 1, 40));
        assert!(long.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn one_rack_is_not_enough() {
        let inventory = inventory(&[4]);
        let pattern = pattern(Pick::Matching, Senders::All, RackScope::All);
        let result = crate::pattern::drafts(&pattern, &site(&inventory, 1), &mut Draw::new(0, ""));
        assert_eq!(result, Err(Impossible::NeedsTwoRacks { have: 1 }));
    }
}
