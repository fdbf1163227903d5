//! What is reported about labs whose truth is known. A test binary of its own, since cargo runs one
//! binary after the other: no test but these takes the CPU that the labs' hosts need. They begin in
//! the order of their names: the longest, which mostly waits, is in `capped`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where something is not as it should be, and prints why it was skipped"
)]

mod accuracy;
mod capped;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "the end-to-end tests need more of it")]
mod common;
mod congestion;
mod demo;
mod faults;
mod flow_completion;
mod paths;
mod witness;
