//! eastwest on one host: runs flows, reads counters, holds no opinion, and never outlives its
//! controller.
//!
//! `agent` owns the session and decides, without any I/O; a `machine` is what it has its host do,
//! and `real` is that of a real host: plain threads around one inbox. There `link` reads and writes
//! the control link, `stage` walks through a stage's rounds, `follow` shows how followed flows go,
//! `sampler` reads raw host counters; `claim` keeps other runs away; `dial` is the link of an agent
//! that must dial its controller.

mod agent;
mod cancel;
mod claim;
mod dial;
mod follow;
mod host;
mod inbox;
mod limits;
mod link;
mod machine;
mod offer;
mod problem;
mod real;
mod sampler;
mod stage;
mod storage;
mod syslog;

pub use agent::{Agent, Ending};
pub use claim::{StopError, Stopped, stop_all};
pub use dial::DialBack;
pub use inbox::Input;
pub use machine::{HostTotals, Machine};
pub use problem::{LimitsFileError, Problem};
pub use real::{AgentOptions, leave_directory, run};
