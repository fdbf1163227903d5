//! External tools as workloads: start the server, run the client, parse its machine-readable
//! output.
//!
//! [`run_round`] mirrors the engine's. A further tool is one file that implements `ExternalTool`
//! and one line in `external`; what it can carry, its ports and what its figures mean is in
//! `ew_model::tools`. Hadoop's TestDFSIO is apart: a storage step, not a round.

mod discover;
mod figures;
mod flow_error;
pub mod fuzzing;
mod idle;
mod iperf;
mod iperf3;
mod lmbench;
mod netperf;
mod netpipe;
mod nuttcp;
mod ping;
mod process;
mod qperf;
mod registry;
mod round;
mod sockperf;
mod testdfsio;
mod tool;

pub use discover::discover;
pub use ew_proto::round::RoundSpec;
pub use round::{Done, ToolError, run_round};
pub use testdfsio::run_testdfsio;
