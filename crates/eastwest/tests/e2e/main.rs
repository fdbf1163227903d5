//! The built binary, end to end: on loopback, and in labs with real sshd.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where something is not as it should be, and prints why it was skipped"
)]

mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod dfsio;
mod external_tools;
mod first_minutes;
mod hostile;
mod inventory;
mod iperf3;
mod lab_failures;
mod lab_ssh;
mod limit;
mod local;
mod metrics;
mod network;
mod racks;
mod roles;
mod sequel;
mod sharing;
mod sinks;
mod size;
mod stored;
mod sweep;
mod tools;
mod top;
mod two_hosts;
mod watch;
mod web;
mod wrong_input;
