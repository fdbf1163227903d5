//! One sender to N receivers, the senders one after the other, one selected per rack and kept over
//! the samples; which N of more hosts receive is selected anew, spread over the racks.

use super::draft::{Draft, Impossible, Relation};
use super::fan::fan;
use super::site::Site;
use crate::schedule::draw::Draw;

pub(super) fn drafts(
    site: &Site<'_>,
    receivers: Option<u32>,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    fan(site, receivers, draw, Relation::new)
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{inventory, laid_out, site};
    use ew_model::Pattern;
    use std::collections::BTreeSet;

    #[test]
    fn one_sender_reaches_all_others() {
        let inventory = inventory(&[3, 4, 2]);
        let pattern = Pattern::Outcast { receivers: None };
        let drafts = laid_out(&pattern, &site(&inventory, 1), 9);
        assert_eq!(drafts.len(), 3);
        for draft in &drafts {
            let clients: BTreeSet<_> = draft.relations.iter().map(|r| r.client).collect();
            let servers: BTreeSet<_> = draft.relations.iter().map(|r| r.server).collect();
            assert_eq!((clients.len(), servers.len()), (1, 8));
        }
    }
}
