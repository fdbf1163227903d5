//! Hosts have a faster network than the measured one, and it lay idle.

use crate::catalogue::phrases::host_list;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{FasterNetwork, InterfaceRate};
use ew_model::units::format_bits_per_sec;

impl Entry for FasterNetwork {
    fn headline(&self, _: &Inventory) -> Headline {
        Headline::new(format!(
            "{} with a faster idle interface: {}, next to {}, which was measured",
            plural(self.hosts.len(), "host"),
            speed(&self.faster),
            speed(&self.measured),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "{}: {} is up and has an address; it carried less than {:.0}% of its speed",
                host_list(names, self.hosts.iter().copied()),
                self.faster.interface,
                100.0 * self.idle_share,
            ),
            "hosts.parquet: interface counters",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        let interface = &self.faster.interface;
        format!("measure it with --interface {interface}, or with --network and its subnet")
    }
}

/// "eth1 at 10.0 Gb/s".
fn speed(of: &InterfaceRate) -> String {
    format!(
        "{} at {}",
        of.interface,
        format_bits_per_sec(of.bits_per_sec)
    )
}
