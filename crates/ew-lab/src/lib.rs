//! An emulated leaf-spine cluster in network namespaces, with faults.
//!
//! One *keeper* process per lab holds every namespace by descriptor; nothing is mounted below `/run/netns`, and no
//! interface or route appears in the machine's own namespace. Others enter through `/proc/KEEPER/fd`. The keeper is the
//! first process of its own process-id namespace, so that all servers of the lab end with it, however it ends.
//!
//! The keeper is the calling program started anew: `main` must call [`keeper_main_if_requested`] before anything else.

mod control_group;
mod error;
mod fault;
mod files;
mod intruder;
mod keeper;
mod lab;
mod spec;
mod state;
mod wiring;
mod yaml;

pub use error::LabError;
pub use fault::{Fault, FaultKind};
pub use keeper::{KeeperCommand, keeper_main_if_requested};
pub use lab::{Lab, LabHost, LabStatus, down, exec, names, status, up};
pub use spec::{CONTROLLER, HostSpec, LabSpec, Queue, RackSpec};
