//! Scenario x inventory x seed -> plan.

use ew_model::{Inventory, Plan, Scenario};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {}

/// Spells out a scenario.
pub fn plan(_scenario: &Scenario, _inventory: &Inventory, _seed: u64) -> Result<Plan, PlanError> {
    unimplemented!()
}
