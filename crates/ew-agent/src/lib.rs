//! eastwest on one host: runs flows, reads counters, holds no opinion, and never outlives its
//! controller.
//!
//! Plain threads around one inbox: `link` reads and writes the control link, `stage` walks through
//! a stage's rounds, `follow` shows how followed flows go, `sampler` reads raw host counters;
//! `claim` keeps other runs away; `dial` is the link of an agent that must dial its controller;
//! `agent` is the loop that owns the session and decides.

mod agent;
mod claim;
mod dial;
mod follow;
mod inbox;
mod limits;
mod link;
mod offer;
mod sampler;
mod stage;
mod storage;
mod syslog;

pub use agent::{AgentOptions, Ending, run};
pub use claim::{Stopped, stop_all};
pub use dial::DialBack;
