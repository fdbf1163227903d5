//! eastwest on one host: runs flows, reads counters, holds no opinion, and never outlives its controller.
//!
//! Plain threads around one inbox: `link` reads and writes the control link, `stage` walks through a stage's
//! rounds, `follow` tells how followed flows go, `sampler` reads raw host counters; `agent` is the loop that owns the session and decides.

mod agent;
mod follow;
mod inbox;
mod link;
mod offer;
mod sampler;
mod stage;
mod storage;

pub use agent::{AgentOptions, Ending, run};
