//! In each rack a random circle: every host sends to the next and receives from the one before.
//! Without racks one circle over all hosts. A rack with one host stays out.

use super::draft::{Draft, Impossible, Relation};
use super::site::{Site, racks};
use crate::schedule::draw::Draw;

pub(super) fn drafts(site: &Site<'_>, draw: &mut Draw) -> Result<Vec<Draft>, Impossible> {
    let mut circles = racks(site.inventory);
    if circles.is_empty() {
        circles.push(site.inventory.host_ids().collect());
    }
    circles.retain(|hosts| hosts.len() > 1);
    if circles.is_empty() {
        return Err(Impossible::NoRackOfTwo);
    }
    let drafts = (0..site.samples).map(|sample| {
        let relations = circles.iter().flat_map(|hosts| {
            let order = draw.shuffled(hosts);
            let next = order.clone().into_iter().cycle().skip(1);
            order
                .into_iter()
                .zip(next)
                .map(|(a, b)| Relation::new(a, b))
        });
        Draft::new(sample, relations.collect())
    });
    Ok(drafts.collect())
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{flat, inventory, is_matching, laid_out, site};
    use crate::pattern::{Draft, Impossible, drafts};
    use crate::schedule::draw::Draw;
    use ew_model::Pattern;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Length of the circle through the first relation's client.
    fn circle_length(draft: &Draft) -> usize {
        let next: BTreeMap<_, _> = draft
            .relations
            .iter()
            .map(|r| (r.client, r.server))
            .collect();
        let start = draft.relations[0].client;
        let mut at = next[&start];
        let mut length = 1;
        while at != start {
            at = next[&at];
            length += 1;
        }
        length
    }

    proptest! {
        #[test]
        fn everybody_sends_to_one_and_receives_from_one_inside(
            sizes in proptest::collection::vec(1usize..7, 1..5), seed: u64
        ) {
            let inventory = inventory(&sizes);
            prop_assume!(sizes.iter().any(|n| *n > 1));
            for draft in laid_out(&Pattern::Permutation, &site(&inventory, 3), seed) {
                prop_assert!(is_matching(&draft));
                prop_assert_eq!(draft.relations.len(), sizes.iter().filter(|n| **n > 1).sum::<usize>());
                let inside = |r: &crate::pattern::Relation| !inventory.crosses_racks(r.client, r.server);
                prop_assert!(draft.relations.iter().all(inside));
            }
        }

        #[test]
        fn without_racks_there_is_one_circle(hosts in 2usize..30, seed: u64) {
            let inventory = flat(hosts);
            for draft in laid_out(&Pattern::Permutation, &site(&inventory, 2), seed) {
                prop_assert_eq!(circle_length(&draft), hosts);
            }
        }
    }

    #[test]
    fn racks_of_one_have_no_inside() {
        let inventory = inventory(&[1, 1]);
        let error = drafts(
            &Pattern::Permutation,
            &site(&inventory, 1),
            &mut Draw::new(0, ""),
        );
        assert_eq!(error, Err(Impossible::NoRackOfTwo));
    }
}
