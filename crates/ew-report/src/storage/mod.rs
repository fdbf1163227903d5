//! Views of storage analyses.

mod hadoop;
mod job;
mod sizing;

pub use job::{storage_csv, storage_json, storage_text};
pub use sizing::{sizing_bound_json, sizing_json, sizing_text};
