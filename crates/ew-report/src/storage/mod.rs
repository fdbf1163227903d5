//! Views of storage analyses.

mod sizing;

pub use sizing::{sizing_bound_json, sizing_json, sizing_text};
