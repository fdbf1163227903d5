//! The real controller and the real agents in a world that is simulated: links, clocks, hosts, the
//! network under the flows, and the user. Time is virtual and everything that is random comes from
//! one seed, so that a seed is one trace, a minute of a run takes milliseconds, and what went wrong
//! once can be looked at again.
//!
//! What is real: the plan, [`ew_controller`] with all its tasks and limits, both session machines
//! with every byte of their frames, and [`ew_agent::Agent`]. What is not: processes, sockets and
//! disks. [`draw`] makes a world from a seed, [`rehearse`] runs it, [`violations`] holds the trace
//! against what must always be true.

mod clock;
mod desk;
mod disk;
mod draw;
mod faults;
mod link;
mod machine;
mod process;
mod properties;
mod rounds;
mod run;
mod taken;
mod world;

pub use desk::Desk;
pub use draw::{Drawn, draw, draw_healthy};
pub use faults::{Fault, Kind};
pub use properties::violations;
pub use run::{Trace, rehearse};
