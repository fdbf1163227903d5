//! The hosts' links are full.

use crate::catalogue::phrases::percent;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::LineRate;
use ew_model::units::format_bits_per_sec;

impl Entry for LineRate {
    fn headline(&self, _: &Inventory) -> Headline {
        let hosts = plural(self.hosts, "host");
        let rate = format_bits_per_sec(self.link_bits_per_sec);
        Headline::new(format!("{hosts}: NICs saturated at line rate ({rate})"))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "the fuller direction of {} carries {} of {} on the wire in the median",
                plural(self.hosts, "host"),
                percent(self.wire_share),
                format_bits_per_sec(self.link_bits_per_sec),
            ),
            "hosts.parquet: kind = interface, rx_bytes and tx_bytes over the capacity tests",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "nothing to do: more needs faster NICs or more of them".into()
    }
}
