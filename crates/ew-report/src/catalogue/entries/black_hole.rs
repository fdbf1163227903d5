//! One of a rack's hashed paths swallows its connections.

use crate::catalogue::phrases::{count, path_locations, percent};
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::BlackHole;

impl Entry for BlackHole {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!(
            "{}: a path blackholes its traffic, {} of connections never open",
            path_locations(names, &self.locations),
            percent(self.lost_share),
        ))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "{} of {} across these racks never began; intra-rack flows did; likelihood gain {:.0} nats",
                self.failed_flows,
                count(self.flows, "flow"),
                self.gain_nats,
            ),
            "flows.parquet: outcome missing, src_rack other than dst_rack",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "compare the packets sent by each member of these uplinks (ECMP or LAG) with what its far end received; take the member \
         that delivers nothing out of the group, then look at its transceiver, forwarding table and ACLs"
            .into()
    }
}
