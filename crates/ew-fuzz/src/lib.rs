//! What fuzz targets and the tests that replay their inputs have in common: the bound on memory,
//! the committed inputs, inputs that are directories, damage done to JSON.
//!
//! A target is a function that panics when a promise is broken and returns otherwise; it is in the
//! `fuzzing` module of the crate that it tests. Whoever links this crate has its allocator, which
//! counts for the whole process: one function is measured at a time, and a test that measures is
//! the only one of its file.

mod json;
mod memory;
mod replay;
mod tree;

pub use json::damaged;
pub use memory::{Bound, check, peak_bytes};
pub use replay::{neighbours, replay};
pub use tree::check_tree;
