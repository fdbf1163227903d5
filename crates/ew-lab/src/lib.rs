//! An emulated leaf-spine cluster in network namespaces, with faults.
//!
//! One *keeper* process per lab holds every namespace by descriptor; nothing is mounted below
//! `/run/netns`, and no interface or route appears in the machine's own namespace. Others enter
//! through `/proc/KEEPER/fd`. The keeper is the first process of its own process-id namespace, so
//! that all servers of the lab end with it, however it ends.
//!
//! The keeper is the calling program started anew: `main` must call [`keeper_main_if_requested`]
//! before anything else.

mod addresses;
mod apply;
mod batch;
mod change;
mod control_group;
mod counters;
mod error;
mod fabric;
mod fault;
mod files;
pub mod fuzzing;
mod intruder;
mod keeper;
mod lab;
mod ports;
mod problem;
mod shaping;
mod spec;
mod state;
mod wiring;
mod yaml;

pub use counters::{PortCounters, PortReading};
pub use error::LabError;
pub use fault::{Background, Fault, FaultKind, Way};
pub use keeper::{KeeperCommand, keeper_main_if_requested};
pub use lab::{Lab, LabHost, LabStatus, down, exec, names, status, up};
pub use problem::Problem;
pub use spec::{CONTROLLER, LabSpec, troubles};
