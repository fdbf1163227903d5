//! One of a rack's hashed paths swallows its connections.

use crate::catalogue::phrases::{path_locations, path_routers, path_via, percent};
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::BlackHole;

impl Entry for BlackHole {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!(
            "{}: {} blackholes its traffic, {} of connections never open",
            path_locations(names, &self.locations),
            path_via(&self.routers).unwrap_or_else(|| "a path".into()),
            percent(self.lost_share),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let never_began = proof(
            format!(
                "{} of {} across these racks never began; intra-rack flows did; likelihood gain {:.0} nats",
                self.failed_flows,
                plural(self.flows, "flow"),
                self.gain_nats,
            ),
            "flows.parquet: outcome missing, src_rack other than dst_rack",
        );
        let routers = (!self.routers.is_empty()).then(|| {
            let routers = path_routers(names, &self.routers);
            proof(
                format!("traces end on the path over {routers}"),
                "flows.parquet: stages of workload trace",
            )
        });
        std::iter::once(never_began).chain(routers).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "compare the packets sent by each member of these uplinks (ECMP or LAG) with what its far end received; take the member \
         that delivers nothing out of the group, then look at its transceiver, forwarding table and ACLs"
            .into()
    }
}
