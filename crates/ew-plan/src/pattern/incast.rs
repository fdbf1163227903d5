//! N senders to one receiver, the receivers one after the other, one selected per rack and kept
//! over the samples; which N of more hosts send is selected anew, spread over the racks.

use super::draft::{Draft, Impossible, Relation};
use super::fan::{fan, one_per_rack};
use super::site::{Site, spread};
use crate::schedule::draw::Draw;
use ew_model::inventory::HostId;

pub(super) fn drafts(
    site: &Site<'_>,
    senders: Option<u32>,
    max_senders: Option<u32>,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let others = u32::try_from(site.inventory.hosts.len() - 1).unwrap_or(u32::MAX);
    let senders = senders.or_else(|| max_senders.map(|most| most.min(others)));
    fan(site, senders, draw, |receiver, sender| {
        Relation::new(sender, receiver)
    })
}

/// Fewer to one are no incast.
const MIN_SENDERS: usize = 2;

/// One receiver of each rack at the same time, and all other hosts shared out among them as
/// senders, spread over the racks: as many for each receiver, up to the number asked for. Where
/// racks have too few hosts for that, some have no receiver.
pub(super) fn drafts_at_once(
    site: &Site<'_>,
    senders: Option<u32>,
    max_senders: Option<u32>,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let hosts = site.inventory.hosts.len();
    let mut receivers = one_per_rack(site.inventory, draw);
    let most_receivers = (hosts / (1 + MIN_SENDERS)).max(1);
    if receivers.len() > most_receivers {
        draw.shuffle(&mut receivers);
        receivers.truncate(most_receivers);
    }
    let others = hosts - receivers.len();
    let most = senders.or(max_senders).map_or(usize::MAX, |n| n as usize);
    let each = (others / receivers.len()).clamp(1, most.max(1));
    let drafts = (0..site.samples).map(|sample| {
        let is_sender = |id: &HostId| !receivers.contains(id);
        let senders = site.inventory.host_ids().filter(is_sender).collect();
        let senders = spread(site.inventory, senders, draw);
        // The receivers take one each in turn, so that each one's are spread over the racks, too.
        let dealt = senders.iter().zip(receivers.iter().cycle());
        let relations = dealt.map(|(sender, receiver)| Relation::new(*sender, *receiver));
        Draft::new(sample, relations.take(each * receivers.len()).collect())
    });
    Ok(drafts.collect())
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{flat, inventory, laid_out, site};
    use crate::pattern::{Impossible, drafts};
    use crate::schedule::draw::Draw;
    use ew_model::Pattern;
    use std::collections::{BTreeMap, BTreeSet};

    fn incast(senders: Option<u32>, max_senders: Option<u32>) -> Pattern {
        Pattern::Incast {
            senders,
            max_senders,
            at_once: false,
        }
    }

    #[test]
    fn all_racks_at_once_share_the_senders_out() {
        let inventory = inventory(&[4; 5]);
        let pattern = Pattern::Incast {
            senders: None,
            max_senders: Some(16),
            at_once: true,
        };
        for draft in laid_out(&pattern, &site(&inventory, 3), 9) {
            let mut of: BTreeMap<_, u32> = BTreeMap::new();
            for relation in &draft.relations {
                *of.entry(relation.server).or_default() += 1;
            }
            assert_eq!(of.values().copied().collect::<Vec<_>>(), [3; 5]);
            let racks: BTreeSet<_> = of.keys().map(|id| inventory.rack_of(*id)).collect();
            assert_eq!(racks.len(), 5);
            let senders: BTreeSet<_> = draft.relations.iter().map(|r| r.client).collect();
            assert_eq!(senders.len(), 15);
            assert!(senders.iter().all(|id| !of.contains_key(id)));
        }
    }

    #[test]
    fn racks_of_one_or_two_hosts_are_not_all_received_in() {
        let pattern = Pattern::Incast {
            senders: None,
            max_senders: Some(16),
            at_once: true,
        };
        for (sizes, receivers, flows) in [
            (&[1, 1][..], 1, 1),
            (&[1; 7], 2, 4),
            (&[2; 3], 2, 4),
            (&[1, 1, 9], 3, 6),
        ] {
            for draft in laid_out(&pattern, &site(&inventory(sizes), 2), 9) {
                let servers: BTreeSet<_> = draft.relations.iter().map(|r| r.server).collect();
                assert_eq!(servers.len(), receivers, "{sizes:?}");
                assert_eq!(draft.relations.len(), flows, "{sizes:?}");
                assert!(draft.relations.iter().all(|r| !servers.contains(&r.client)));
            }
        }
    }

    #[test]
    fn receivers_take_turns_one_per_rack() {
        let inventory = inventory(&[3, 4]);
        let drafts = laid_out(&incast(None, None), &site(&inventory, 2), 9);
        assert_eq!(drafts.len(), 4);
        for draft in &drafts {
            let servers: BTreeSet<_> = draft.relations.iter().map(|r| r.server).collect();
            let clients: BTreeSet<_> = draft.relations.iter().map(|r| r.client).collect();
            assert_eq!((servers.len(), clients.len()), (1, 6));
        }
        let racks = drafts[..2]
            .iter()
            .map(|d| inventory.rack_of(d.relations[0].server));
        assert_eq!(racks.collect::<BTreeSet<_>>().len(), 2);
        assert_eq!(drafts[0].relations[0].server, drafts[2].relations[0].server);
    }

    #[test]
    fn n_is_held_and_checked() {
        let inventory = flat(5);
        let few = laid_out(&incast(Some(3), None), &site(&inventory, 1), 9);
        assert_eq!((few.len(), few[0].relations.len()), (1, 3));
        let five = incast(Some(5), None);
        let error = drafts(&five, &site(&inventory, 1), &mut Draw::new(0, ""));
        assert_eq!(
            error,
            Err(Impossible::TooManyPartners {
                asked: 5,
                others: 4
            })
        );
    }

    #[test]
    fn n_is_bounded_and_spread_over_the_racks() {
        let inventory = inventory(&[20, 20, 4, 20]);
        let bounded = laid_out(&incast(None, Some(16)), &site(&inventory, 3), 9);
        for draft in &bounded {
            let mut per_rack = BTreeMap::new();
            for relation in &draft.relations {
                *per_rack
                    .entry(inventory.rack_of(relation.client))
                    .or_insert(0) += 1;
            }
            let counts: Vec<u32> = per_rack.into_values().collect();
            assert_eq!(counts.iter().sum::<u32>(), 16);
            assert!(
                counts.iter().all(|count| (3..=5).contains(count)),
                "{counts:?}"
            );
        }
        let senders = |draft: &crate::pattern::Draft| -> BTreeSet<_> {
            draft.relations.iter().map(|r| r.client).collect()
        };
        assert_ne!(senders(&bounded[0]), senders(&bounded[4]), "selected anew");
        let few = laid_out(&incast(None, Some(16)), &site(&flat(5), 1), 9);
        assert_eq!(few[0].relations.len(), 4, "a bound is no demand");
        let all = laid_out(&incast(Some(63), Some(16)), &site(&inventory, 1), 9);
        assert_eq!(all[0].relations.len(), 63, "a configured number goes first");
    }
}
