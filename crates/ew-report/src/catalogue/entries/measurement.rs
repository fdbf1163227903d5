//! The rounds did not run as planned.

use crate::catalogue::phrases::percent;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::InvalidMeasurement;

impl Entry for InvalidMeasurement {
    fn headline(&self, _: &Inventory) -> Headline {
        let what = Headline::new(format!(
            "measurement invalid: {} of {} void ({} of flows late, {} missing)",
            self.void_rounds,
            plural(self.rounds, "round"),
            percent(self.late_share),
            percent(self.missing_share),
        ));
        match self.is_starved {
            true => what.because("hosts CPU-starved"),
            false => what,
        }
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "{} of {} with at least half of the hosts: over 10% of the flows missing, or started later than 10% of the window, a lone straggler's not counted; {} of these rounds CPU-starved",
                self.void_rounds,
                plural(self.rounds, "round"),
                percent(self.starved_share),
            ),
            "flows.parquet: tx_start_skew_ns, rx_start_skew_ns, tx_cpu_engine_wait_ns, tx_cpu_steal_ns",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "free CPU on the hosts (stop other work, fewer virtual machines per machine), measure fewer hosts at a time, or lengthen \
         the window (`--set duration=10s`), then run again"
            .into()
    }
}
