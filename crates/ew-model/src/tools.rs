//! The tools people trust: what they are called, what they can carry, where their servers listen.

mod carry;
mod install;
mod packages;
mod servers;

pub use carry::Refusal;
pub use install::{Installation, installation};
pub use packages::{Distribution, Package};
pub use servers::ServerPorts;
