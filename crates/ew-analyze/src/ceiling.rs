//! What each stage reached of what its hosts' links could carry, whatever lies between them.

use ew_evidence::basis::Reference;
use ew_evidence::observations::{Observations, StageView};
use ew_model::Inventory;
use ew_model::analysis::StageCeiling;
use ew_plan::expectation::{Capacities, max_min};
use ew_stats::median;

/// Per stage; `None` where no line rate is known, and for stages without rates.
pub(crate) fn ceilings(
    observations: &Observations<'_>,
    reference: &Reference,
) -> Vec<Option<StageCeiling>> {
    let inventory = observations.inventory();
    let of_stage = |stage| ceiling(stage, inventory, reference);
    observations.stages.iter().map(of_stage).collect()
}

fn ceiling(
    stage: &StageView<'_>,
    inventory: &Inventory,
    reference: &Reference,
) -> Option<StageCeiling> {
    let link = reference.ceiling_bits_per_sec(&stage.stage.workload)?;
    let capacities = Capacities::uniform(inventory, link);
    let (mut allowed, mut reached) = (Vec::new(), Vec::new());
    for round in stage.fullest_rounds() {
        let shares = max_min(&round.flows, inventory, &capacities);
        let max: f64 = shares.iter().map(|share| share.bits_per_sec).sum();
        let measured: f64 = round.rates().map(|(_, rate)| rate).sum();
        if max > 0.0 {
            allowed.push(max);
            reached.push(measured / max);
        }
    }
    Some(StageCeiling {
        link_bits_per_sec: link,
        aggregate_bits_per_sec: median(&allowed)?,
        reached: median(&reached)?,
    })
}
