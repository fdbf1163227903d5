//! Inventory sources, scenarios, patterns, schedules and the max-min fair expectation. Pure: no clock, no socket, no
//! random source that is not a seed given by the caller.

pub mod expectation;
pub mod inventory;
pub mod pattern;
pub mod plan;
pub mod scenario;

pub use plan::{PlanError, plan};
