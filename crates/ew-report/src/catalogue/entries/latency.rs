//! Idle round trips longer than configured, or far longer than the peers'.

use crate::catalogue::phrases::host_list;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{IdleRoundTrip, LongRoundTrips};
use ew_model::units::format_duration_ns;

impl Entry for LongRoundTrips {
    fn headline(&self, names: &Inventory) -> Headline {
        let up_to = match self.hosts.len() {
            1 => "",
            _ => "up to ",
        };
        let against = match self.is_configured {
            true => "expected",
            false => "peers",
        };
        Headline::new(format!(
            "{}: idle RTT {up_to}{} ({against} {})",
            host_list(names, self.hosts.iter().copied()),
            format_duration_ns(self.worst_rtt_ns),
            format_duration_ns(self.expected_rtt_ns),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let of = |IdleRoundTrip { host, rtt_ns }: &IdleRoundTrip| {
            let (name, rtt) = (names.name(*host), format_duration_ns(*rtt_ns));
            proof(
                format!("{name}: median idle round trip {rtt}"),
                format!("flows.parquet: tcp-rr stages, src or dst = {name}"),
            )
        };
        self.round_trips.iter().map(of).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look at power saving (C-states), interrupt coalescing (`ethtool -c`), and the route to the host; a busy CPU shows in \
         hosts.parquet"
            .into()
    }
}
