//! External tools as workloads: start the server, run the client, parse its machine-readable output.
//!
//! [`run_round`] mirrors the engine's. A further tool is one file that implements `ExternalTool` and one line in
//! `external`.

mod discover;
mod iperf3;
mod process;
mod round;
mod tool;

pub use discover::discover;
pub use ew_proto::round::RoundSpec;
pub use round::{Done, ToolError, run_round};
