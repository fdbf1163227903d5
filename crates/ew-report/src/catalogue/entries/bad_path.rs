//! One of a rack's hashed paths is slow or loses packets.

use crate::catalogue::phrases::{path_locations, path_routers, path_via, percent};
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{BadPathByRouter, BadPathByShare};

impl Entry for BadPathByRouter {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!(
            "{}: {} degraded, {} of {} (others {})",
            path_locations(names, &self.locations),
            path_via(&self.routers).unwrap_or_default(),
            self.bad_connections,
            plural(self.connections, "connection"),
            percent(self.others_bad_share),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let routers = path_routers(names, &self.routers);
        vec![
            proof(
                format!("routers on the path: {routers}"),
                "flows.parquet: stages of workload trace",
            ),
            proof(
                format!(
                    "{} of {} over them slow or retransmitting, {} of all other connections of the same tests; likelihood gain {:.0} nats",
                    self.bad_connections,
                    plural(self.connections, "connection"),
                    percent(self.others_bad_share),
                    self.gain_nats,
                ),
                "flows.parquet: cross-rack flows with one connection, and at half load",
            ),
        ]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look at speed, errors and discards of the ports on both sides of this path (`ethtool -S`, the switch's interface counters), \
         and take the path out of the group (ECMP or LAG) until it is repaired"
            .into()
    }
}

impl Entry for BadPathByShare {
    fn headline(&self, names: &Inventory) -> Headline {
        let what = match self.is_narrow {
            true => format!("{} of pace", percent(self.pace_share)),
            false => format!(
                "{} of segments retransmitted",
                percent(self.retransmitted_share)
            ),
        };
        let (fewest, most) = (self.fewest_paths, self.max_paths);
        let paths = match fewest == most {
            true => format!("{fewest}"),
            false => format!("{fewest} to {most}"),
        };
        Headline::new(format!(
            "{}: one of {paths} paths degraded at half load, {what}; {} of connections affected",
            path_locations(names, &self.locations),
            percent(self.bad_share),
        ))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "{} of {} slow or retransmitting in every round of theirs, paced to half load: median {} of pace, {} of segments retransmitted; likelihood gain {:.0} nats",
                self.bad_connections,
                plural(self.connections, "connection"),
                percent(self.pace_share),
                percent(self.retransmitted_share),
                self.gain_nats,
            ),
            format!("flows.parquet: stage `{}`, by source port", self.stage),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "compare speed, errors and bytes of each member of these uplinks (ECMP or LAG) on the leaf switch, and of the spine ports \
         behind them"
            .into()
    }
}
