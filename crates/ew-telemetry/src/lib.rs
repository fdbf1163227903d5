//! One reader per kernel source: raw counters and host facts.
//!
//! Readers of files take the root of the tree, `/` on a real host, so that tests read recorded trees. Nothing here
//! computes a rate, and what is absent is `None` or left out, never 0.

mod facts;
mod limits;
mod net_dev;
mod proc_stat;
mod sample;

pub use facts::{facts, free_bytes_beside_executable};
pub use sample::sample;
