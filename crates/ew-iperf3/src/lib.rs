//! iperf3's language, both roles, over OS threads and blocking sockets.
//!
//! A server ([`Server`]) serves many clients at once on one port; a client ([`run_client`]) does
//! one test. Both talk to stock iperf3. What travels is in [`wire`], pure and fuzzed; what a test
//! reports is in [`report`].

pub mod auth;
mod client;
mod control;
mod error;
pub mod fuzzing;
mod goal;
mod meter;
mod net;
pub mod report;
mod running;
pub mod server;
mod stream;
pub mod units;
pub mod wire;

pub use client::{ClientOptions, run_client};
pub use error::Error;
pub use net::Route;
pub use server::{Limits, Server};
pub use stream::EndOptions;
