//! Workloads on OS threads: connects flows, moves bytes, counts them inside the window.
//!
//! One [`Engine`] per agent. It owns the data listener, which hands connections that present the
//! run's token to the round that waits for them, and runs rounds: one supervisor thread per round,
//! one thread that opens connections, and a few that drive the streams. A stream is a state machine
//! that only moves bytes and increments its own counters; the supervisor reads them at the window's
//! edges. A workload is one file below `workload/`, whose first lines explain how to add one.

mod acceptor;
mod arrivals;
mod buffer;
mod clock_wait;
mod connect;
mod counters;
mod cpu;
mod data_ports;
mod drive;
mod engine;
mod error;
mod hello;
mod placement;
mod port_check;
mod refusal;
mod registry;
mod relay;
mod report;
mod round;
mod running;
mod settings;
mod shared;
mod stream;
mod stream_error;
mod tally;
mod window;
mod worker;
mod workload;

pub use engine::{Engine, EngineConfig, Totals};
pub use error::EngineError;
pub use ew_proto::round::RoundSpec;
pub use refusal::Refusal;
pub use round::AFTER_WINDOW_NS;
pub use running::{RunningRound, SentOverTcp};
pub use window::cut_ns;

/// What a round calls with its reports, once.
pub type Done = Box<dyn FnOnce(Vec<ew_proto::message::FlowReport>) + Send>;
