//! Workloads on OS threads: connects flows, moves bytes, counts them inside the window.
//!
//! One [`Engine`] per agent. It owns the data listener, which hands connections that present the run's token to the
//! round that waits for them, and runs rounds: one supervisor thread per round, one thread per stream. A stream's thread
//! only moves bytes and increments its own counters; the supervisor reads them at the window's edges. A workload is one
//! file below `workload/` and one line in `workload::driver`.

mod acceptor;
mod buffer;
mod clock_wait;
mod connect;
mod engine;
mod error;
mod hello;
mod lane;
mod port_check;
mod registry;
mod report;
mod round;
mod stream;
mod window;
mod workload;

pub use engine::{Engine, EngineConfig, Totals};
pub use error::EngineError;
pub use ew_proto::round::RoundSpec;

/// What a round calls with its reports, once.
pub type Done = Box<dyn FnOnce(Vec<ew_proto::message::FlowReport>) + Send>;
