//! Hosts do less than the NIC rate that was configured.

use crate::catalogue::phrases::host_list;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::BelowConfiguredNic;
use ew_model::units::format_bits_per_sec;

impl Entry for BelowConfiguredNic {
    fn headline(&self, names: &Inventory) -> Headline {
        let what = Headline::new(format!(
            "{} below the expected NIC rate: {} of goodput ({} gives {})",
            who_stays(self, names),
            format_bits_per_sec(self.bits_per_sec),
            format_bits_per_sec(self.configured_bits_per_sec),
            format_bits_per_sec(self.goodput_bits_per_sec),
        ));
        match &self.limit {
            Some(limit) => what.because(limit.because(names)),
            None => what,
        }
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let own = proof(
            format!(
                "median of the slower direction of {}: {}; compared with {} (configured)",
                plural(self.hosts.len(), "host"),
                format_bits_per_sec(self.bits_per_sec),
                format_bits_per_sec(self.configured_bits_per_sec),
            ),
            "flows.parquet: isolated flows that no path between racks limits",
        );
        let of_limit = self.limit.iter().flat_map(|limit| limit.evidence(names));
        std::iter::once(own).chain(of_limit).collect()
    }

    fn next_step(&self, names: &Inventory) -> String {
        match &self.limit {
            Some(limit) => limit.next_step(names),
            None => "check the configured rate, the negotiated link speed (`ethtool`), and whether one TCP stream can fill the \
                     link (`--set streams=4`)"
                .into(),
        }
    }
}

/// "all 8 hosts stay", "r1h1 stays", "r1h1 and r1h2 stay".
fn who_stays(found: &BelowConfiguredNic, names: &Inventory) -> String {
    let hosts = &found.hosts;
    if hosts.len() == names.hosts.len() {
        return format!("all {} hosts stay", hosts.len());
    }
    let listed = host_list(names, hosts.iter().copied());
    match hosts.len() {
        1 => format!("{listed} stays"),
        _ => format!("{listed} stay"),
    }
}
