//! Inventory sources, scenarios, patterns, schedules and the max-min fair expectation. Pure: no
//! clock, no socket, no random source that is not a seed given by the caller.

pub mod adapt;
pub mod estimate;
pub mod expectation;
pub mod fuzzing;
mod identify;
pub mod inventory;
mod pattern;
pub mod plan;
pub mod scenario;
pub mod schedule;
mod streams;
mod sweep;
mod traced;

pub use estimate::{PlanCost, estimate};
pub use plan::{PlanError, plan, replan};
pub use schedule::repair_rounds;
