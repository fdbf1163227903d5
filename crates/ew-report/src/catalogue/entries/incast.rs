//! Many senders to one receiver.

use crate::catalogue::phrases::percent;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::Incast;
use ew_model::units::format_duration_ns;

impl Entry for Incast {
    fn headline(&self, _: &Inventory) -> Headline {
        let what = match self.has_collapsed {
            true => "goodput collapses to ",
            false => "",
        };
        let queue = self.queueing_delay_ns.map_or(String::new(), |delay_ns| {
            format!(", queueing delay {}", format_duration_ns(delay_ns))
        });
        Headline::new(format!(
            "{}, {} to 1: {what}{} of expected{queue}, fairness {:.2} (Jain)",
            self.stage,
            self.senders,
            percent(self.goodput_share),
            self.fairness,
        ))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "medians over {} receivers and rounds: sum of the senders over what receivers and uplinks allow, RTT less the connection's min RTT, (sum x)^2 / (n sum x^2), segments retransmitted {}",
                self.samples,
                percent(self.retransmitted_share),
            ),
            format!(
                "flows.parquet: stage `{}`, by dst; rtt_us, min_rtt_us",
                self.stage
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look at the buffers of the switch ports towards hosts (dynamic thresholds, discards) and at ECN: with ECN marking and DCTCP, \
         or fewer senders at a time, queues stay short and nobody waits for timeouts"
            .into()
    }
}
