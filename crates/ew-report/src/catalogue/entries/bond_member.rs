//! One member of a bond carries nearly all of what a host sends or receives.

use crate::catalogue::phrases::list;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{BondMember, BusiestMember, Directions};

impl Entry for BondMember {
    fn headline(&self, names: &Inventory) -> Headline {
        let who = match self.busiest.as_slice() {
            [only] => names.name(only.host).to_owned(),
            several => plural(several.len(), "host"),
        };
        let does = match self.directions {
            Directions::Both => "sent and received",
            Directions::Tx => "sent",
            Directions::Rx => "received",
        };
        Headline::new(format!(
            "{who}: one of {} members of {} carried nearly all that was {does}",
            self.members.len(),
            self.bond,
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let carried = |busiest: &BusiestMember| {
            let BusiestMember {
                host,
                member,
                share,
            } = busiest;
            let percent = 100.0 * share;
            proof(
                format!("{}: {member} carried {percent:.0}%", names.name(*host)),
                "hosts.parquet: interface counters; HostFacts: bond",
            )
        };
        let bond = proof(configuration(self), "HostFacts: bond");
        let members = self.busiest.iter().map(carried);
        std::iter::once(bond).chain(members).collect()
    }

    /// Each end of a link chooses the member of what it sends.
    fn next_step(&self, _: &Inventory) -> String {
        let bond = &self.bond;
        let (sends, receives) = (
            self.directions != Directions::Rx,
            self.directions != Directions::Tx,
        );
        let mut steps = vec![format!(
            "check that all members are up: `cat /proc/net/bonding/{bond}`"
        )];
        if sends && !self.is_hashed_by_connection {
            steps.push(format!(
                "let the host choose a member by connection: xmit_hash_policy=layer3+4 on {bond}"
            ));
        }
        if receives {
            steps.push("let the switch choose a member by connection: its load-balancing hash of the port channel".into());
        }
        steps.join("; ")
    }
}

/// "bond0 is 802.3ad, hash policy layer2, over eth0 and eth1".
fn configuration(found: &BondMember) -> String {
    let mode = found.mode.as_deref().unwrap_or("a team");
    let policy = found.hash_policy.as_ref();
    let policy = policy.map_or(String::new(), |policy| format!(", hash policy {policy}"));
    format!(
        "{} is {mode}{policy}, over {}",
        found.bond,
        list(&found.members)
    )
}
