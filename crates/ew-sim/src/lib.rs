//! A network that exists only as numbers: topology, plan, seed and noise go in, a run comes out, as
//! if it had been measured.
//!
//! Pure: no clock, no socket, no file. The same input gives the same run. Each round is a fluid
//! network: every stream takes the members that a hash of its 5-tuple picks at each tier, and the
//! streams share what they meet by weighted max-min. The noise ([`Noise`]) is that of real hosts
//! and TCP, and is not the model of the analysis: whoever judges the analysis by these runs must
//! not have generated them from its own assumptions.

mod acks;
mod dice;
mod ends;
mod families;
mod family;
mod hosts;
mod judge;
mod network;
mod noise;
mod paths;
mod round;
mod round_run;
mod run;
mod sharing;
mod tcp;
mod truth;

pub use dice::Dice;
pub use ew_model::bounds::clopper_pearson;
pub use families::{Case, draw, draw_any_shape};
pub use family::Family;
pub use judge::{Judgement, judge};
pub use noise::{Drift, Noise, Starvation};
pub use run::{facts, inventory, record, simulate, simulate_round};
pub use truth::{Fault, LinkDirection, MemberFault, RackRatio, Truth, UniformCause};
