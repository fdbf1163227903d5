//! Flows without a figure.

use crate::catalogue::phrases::{list, list_of};
use crate::catalogue::{Entry, Headline, conntrack, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{
    FlowsMissing, MissingWith, RefusingHost, StageMissing, StagesMissing,
};

impl Entry for FlowsMissing {
    fn headline(&self, names: &Inventory) -> Headline {
        let (missing, planned) = (self.missing, self.planned);
        Headline::new(match self.is_interrupted {
            true => format!(
                "the run was interrupted: {missing} of {} not measured",
                plural(planned, "flow")
            ),
            false => format!(
                "{} of {planned} could not be measured: {}",
                plural(missing, "flow"),
                named(self, names)
            ),
        })
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let barriers = self.barriers.iter();
        self.stages
            .iter()
            .map(of_stage)
            .chain(self.empty_stages.iter().map(of_empty_stages))
            .chain(self.refusing.iter().map(|host| refused(host, names)))
            .chain(barriers.map(|words| proof(words.clone(), "run.json: barriers")))
            .collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.is_interrupted {
            true => "what was measured is valid; run it to the end for the rest",
            false => {
                "the reasons are in the rows; run again when they are dealt with, the other figures are valid"
            }
        }
        .into()
    }
}

/// "r1h2 to r2h1, 12 with r2h4".
fn named(found: &FlowsMissing, names: &Inventory) -> String {
    let name = |with: &MissingWith| match with {
        MissingWith::Pair { src, dst } => format!("{} to {}", names.name(*src), names.name(*dst)),
        MissingWith::Host { host, flows } => format!("{flows} with {}", names.name(*host)),
    };
    let first: Vec<String> = found.named.iter().map(name).collect();
    list_of(&first, found.to_name)
}

fn of_stage(stage: &StageMissing) -> Evidence {
    let name = &stage.stage;
    proof(
        format!(
            "`{name}`: {} of {} missing, first: {}",
            stage.missing, stage.planned, stage.reason
        ),
        format!("flows.parquet: stage `{name}`, outcome missing"),
    )
}

fn of_empty_stages(empty: &StagesMissing) -> Evidence {
    let stages = empty.stages.iter().map(|stage| format!("`{stage}`"));
    let stages = list(&stages.collect::<Vec<_>>());
    proof(
        format!("no figure in {stages}, first: {}", empty.reason),
        "flows.parquet: outcome missing",
    )
}

fn refused(found: &RefusingHost, names: &Inventory) -> Evidence {
    let name = names.name(found.host);
    proof(
        format!(
            "{name}: conntrack dropped {} packets of new connections ({})",
            found.refused.packets,
            conntrack::reason(&found.refused)
        ),
        format!("counters.parquet: host = {name}, source = conntrack"),
    )
}
