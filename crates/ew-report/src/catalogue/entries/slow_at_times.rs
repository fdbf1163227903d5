//! A host that is slow at times, or throttled and not slow.

use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::SlowAtTimes;
use ew_model::units::format_bits_per_sec;

impl Entry for SlowAtTimes {
    fn headline(&self, names: &Inventory) -> Headline {
        let name = names.name(self.host);
        let because = self.why.because(names);
        match &self.low {
            Some(low) => Headline::new(format!(
                "{name}: intermittently slow, lower quartile {} (peers {})",
                format_bits_per_sec(low.quartile_bits_per_sec),
                format_bits_per_sec(low.peers_bits_per_sec),
            ))
            .because(because),
            None => Headline::new(format!("{name}: not slower than peers. Limit: {because}")),
        }
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        self.why.evidence(names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        self.why.next_step(names)
    }
}
