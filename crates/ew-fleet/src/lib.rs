//! Starts agents (local, lab, ssh, Kubernetes, Slurm), hands back byte-stream links, always tears
//! down.
//!
//! A [`Launcher`] only decides *which* process gives a link to a host's agent: the agent itself
//! (local, lab) or the system's ssh client. [`launch_from`] starts that process so that it cannot
//! outlive this one, hands the binary over where the launcher asks for it, and returns a [`Link`]:
//! a reader, a writer, and the guard that ends it all.
//!
//! Where no process carries a link of its own, agents dial back ([`Slurm`]).
//!
//! Nothing is left on a host: a remote agent removes its own file at once ([`bootstrap`]), and ends
//! itself when its standard input ends. On this side the kernel kills the process when the thread
//! that launched it ends, so call [`launch_from`] from a current-thread runtime, or one whose
//! threads live as long as the fleet.

pub mod bootstrap;
mod dial;
mod entered;
mod error;
pub mod fuzzing;
mod greeting;
mod in_process;
mod jump;
mod kubernetes;
mod launcher;
mod link;
mod local;
mod payload;
mod relay;
mod root;
mod slots;
mod slurm;
mod ssh;
mod starting;
mod tail;

pub use entered::Entered;
pub use error::{LaunchError, Step, Unclean};
pub use in_process::{InProcess, InProcessLaunch, InProcessLink};
pub use kubernetes::{Kubernetes, PodLink};
pub use launcher::{AgentCommand, Launcher};
pub use link::{Link, LinkGuard, LinkReader, LinkWriter};
pub use local::Local;
pub use payload::{Payload, Payloads};
pub use relay::{Neighbour, Relay};
pub use root::{RootError, run_as_root};
pub use slots::{FanOut, LaunchSlot, LaunchSlots};
pub use slurm::{Slurm, SlurmOptions};
pub use ssh::{Ssh, SshOptions};
pub use starting::launch_from;
