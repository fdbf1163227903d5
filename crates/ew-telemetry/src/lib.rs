//! One reader per kernel source: raw counters and host facts.
//!
//! Readers of files take the root of the tree, `/` on a real host, so that tests read recorded
//! trees. Nothing here computes a rate, and what is absent is `None` or skipped, never 0.

mod busiest;
mod byte_totals;
mod cgroup;
mod conntrack;
mod cost;
mod cpu;
mod disks;
mod facts;
mod file;
mod frequency;
pub mod fuzzing;
mod host;
mod interrupts;
mod limits;
mod lldp;
mod memory;
mod net_dev;
mod network;
mod other_work;
mod own;
mod owners;
mod paced;
mod pressure;
mod proc_stat;
mod processes;
mod protocols;
mod sample;
mod sockets;
mod traffic;
mod udp_totals;

pub use busiest::BusiestCpus;
pub use facts::{NoAddress, address_on, facts, free_bytes_beside_executable};
pub use host::HostReader;
pub use other_work::other_work;
pub use own::OwnConnections;
pub use sample::Sampler;
