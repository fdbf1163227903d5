//! Others' load makes flows slower.

use crate::catalogue::{Entry, Headline, congestion, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::Congestion;
use ew_model::units::format_bits_per_sec;

impl Entry for Congestion {
    fn headline(&self, _: &Inventory) -> Headline {
        Headline::new(congestion::sentence(&self.impact))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        let impact = &self.impact;
        let carried = impact.aggressors_bits_per_sec.map_or_else(
            || "the aggressors' rate is not known".to_owned(),
            |rate| {
                format!(
                    "{}: the aggressors carried {} together",
                    impact.stage,
                    format_bits_per_sec(rate.value)
                )
            },
        );
        vec![proof(
            carried,
            format!(
                "flows.parquet: stages `{}` and `{}`",
                impact.stage, impact.baseline_stage
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.is_longer_wait {
            true => {
                "shorten the queues that victims wait in: ECN marking with DCTCP, active queue management, a class of its own for \
                 short requests, or less oversubscription"
            }
            false => {
                "compare with another fabric, or with this one after a change, by `eastwest compare`"
            }
        }
        .into()
    }
}
