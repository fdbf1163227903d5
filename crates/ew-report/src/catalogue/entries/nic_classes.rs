//! Hosts come in classes of NIC speed.

use crate::catalogue::phrases::host_list;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{NicClass, NicClasses};
use ew_model::units::format_bits_per_sec;

impl Entry for NicClasses {
    fn headline(&self, _: &Inventory) -> Headline {
        let of = |class: &NicClass| {
            let hosts = plural(class.hosts.len(), "host");
            format!("{hosts} at {}", format_bits_per_sec(class.bits_per_sec))
        };
        let classes: Vec<String> = self.classes.iter().map(of).collect();
        Headline::new(format!(
            "{} NIC classes: {}",
            classes.len(),
            classes.join(", ")
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let classes = self.classes.iter();
        classes.map(|class| median_of(class, names)).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "nothing to do if intended; otherwise look at the negotiated speed of the slower hosts' links (`ethtool`)"
            .into()
    }
}

fn median_of(class: &NicClass, names: &Inventory) -> Evidence {
    let speeds = class.link_speeds_bits_per_sec.iter();
    let speeds: Vec<String> = speeds.map(|speed| format_bits_per_sec(*speed)).collect();
    let links = match speeds.is_empty() {
        true => String::new(),
        false => format!("; link speed reported {}", speeds.join(", ")),
    };
    proof(
        format!(
            "{}: median {} intra-rack{links}",
            host_list(names, class.hosts.iter().copied()),
            format_bits_per_sec(class.bits_per_sec),
        ),
        "flows.parquet: isolated flows",
    )
}
