//! Views of storage analyses.

mod hadoop;
mod job;
mod sizing;

pub(crate) use job::{binding, fan_in_lines, hdfs_line, job_line, notes, step_text, term, verdict};
pub use job::{storage_csv, storage_json, storage_text};
pub use sizing::{sizing_bound_json, sizing_json, sizing_text};
