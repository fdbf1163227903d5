//! N senders to one receiver. The receivers take turns, one drawn per rack and kept over the samples; which N of more
//! hosts send is drawn anew.

use super::{Draft, Impossible, Relation, Site, fan};
use crate::schedule::draw::Draw;

pub(super) fn drafts(
    site: &Site<'_>,
    senders: Option<u32>,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    fan(site, senders, draw, |receiver, sender| {
        Relation::new(sender, receiver)
    })
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{flat, inventory, laid_out, site};
    use crate::pattern::{Impossible, drafts};
    use crate::schedule::draw::Draw;
    use ew_model::Pattern;
    use std::collections::BTreeSet;

    #[test]
    fn receivers_take_turns_one_per_rack() {
        let inventory = inventory(&[3, 4]);
        let drafts = laid_out(&Pattern::Incast { senders: None }, &site(&inventory, 2), 9);
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
        let few = laid_out(
            &Pattern::Incast { senders: Some(3) },
            &site(&inventory, 1),
            9,
        );
        assert_eq!((few.len(), few[0].relations.len()), (1, 3));
        let pattern = Pattern::Incast { senders: Some(5) };
        let error = drafts(&pattern, &site(&inventory, 1), &mut Draw::new(0, ""));
        assert_eq!(
            error,
            Err(Impossible::TooManyPartners {
                asked: 5,
                others: 4
            })
        );
    }
}
