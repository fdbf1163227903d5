//! A host that lacks CPU all along while the others have it.

use crate::catalogue::phrases::percent;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::StarvedHost;
use ew_model::units::format_bits_per_sec;

impl Entry for StarvedHost {
    fn headline(&self, names: &Inventory) -> Headline {
        let rates = match &self.slow {
            Some(slow) => format!(
                "{} of peers ({} vs {})",
                percent(slow.bits_per_sec / slow.peers_bits_per_sec),
                format_bits_per_sec(slow.bits_per_sec),
                format_bits_per_sec(slow.peers_bits_per_sec)
            ),
            None => "not slower than peers".into(),
        };
        Headline::new(format!(
            "{}: CPU-starved in {} of {} rounds, {rates}",
            names.name(self.host),
            self.starved_rounds,
            self.rounds
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: I/O threads without CPU, degree 0 to 1 by round: median {:.2} (other hosts {:.2})",
                self.degree, self.others_degree
            ),
            format!(
                "flows.parquet: src or dst = {name}, tx_cpu_engine_wait_ns, rx_cpu_engine_wait_ns, tx_cpu_steal_ns"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look at `top -1` on the host for what else runs there, at the CPU limit of the agent's control group, and at steal \
         if it is a virtual machine; its rates say little of the network until it has CPU to spare"
            .into()
    }
}
