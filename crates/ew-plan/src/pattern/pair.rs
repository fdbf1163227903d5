//! Hosts two by two in the order given. Of an odd number, which a plan of named hosts refuses, the
//! last one is skipped: its partner may not have come up.

use super::draft::{Draft, Relation};
use super::site::Site;
use ew_model::inventory::HostId;

pub(super) fn drafts(site: &Site<'_>) -> Vec<Draft> {
    let hosts: Vec<HostId> = site.inventory.host_ids().collect();
    let relations: Vec<Relation> = hosts
        .chunks_exact(2)
        .map(|two| Relation::new(two[0], two[1]))
        .collect();
    (0..site.samples)
        .map(|sample| Draft::new(sample, relations.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{flat, laid_out, site};
    use ew_model::Pattern;

    #[test]
    fn hosts_are_taken_in_order() {
        let inventory = flat(5);
        let drafts = laid_out(&Pattern::Pair, &site(&inventory, 2), 1);
        assert_eq!(drafts.len(), 2);
        let ids: Vec<_> = drafts[1]
            .relations
            .iter()
            .map(|r| (r.client.0, r.server.0))
            .collect();
        assert_eq!(ids, [(0, 1), (2, 3)]);
    }
}
