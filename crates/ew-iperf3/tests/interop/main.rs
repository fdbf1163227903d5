//! Both roles against the real iperf3 and against hostile peers, over loopback. What needs iperf3
//! is skipped where it is not installed, except in CI.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on shall panic, and one that is skipped shall print it"
)]

mod asking;
mod authentication;
mod common;
mod ends;
mod hostile;
mod options;
mod serving;
