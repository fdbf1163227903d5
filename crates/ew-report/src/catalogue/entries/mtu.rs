//! The MTU of a host's data interface differs from its peers'.

use crate::catalogue::phrases::host_list;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::OddMtu;

impl Entry for OddMtu {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!("{}: {}", who(self, names), self.because(names)))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        Reasoned::evidence(self, names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        Reasoned::next_step(self, names)
    }
}

impl Reasoned for OddMtu {
    fn because(&self, _: &Inventory) -> String {
        format!("MTU {} (typical {})", self.mtu_bytes, self.typical_bytes)
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "the data interface of {} reports MTU {}",
                who(self, names),
                self.mtu_bytes
            ),
            "events.jsonl: host-up, interfaces",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "set the same MTU on all hosts (`ip link set dev IF mtu N`) and on the switch ports; a larger one than the path carries \
         loses packets silently"
            .into()
    }
}

fn who(found: &OddMtu, names: &Inventory) -> String {
    host_list(names, found.hosts.iter().copied())
}
