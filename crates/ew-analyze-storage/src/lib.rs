//! Storage through the network: what TestDFSIO prints and what it hides, fan-in, and sizing for a
//! deadline.
//!
//! Apart from the analysis of flows: a storage job has no window of its own and no receiver that
//! reports.

pub mod dfsio;
pub mod fan_in;
mod file_times;
pub mod fit;
pub mod fuzzing;
pub mod job;
pub mod limits;
pub mod node_times;
pub mod nodes;
pub mod sizing;
mod step;
pub mod testdfsio;
