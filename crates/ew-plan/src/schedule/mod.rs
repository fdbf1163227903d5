//! Who meets whom in which round: combinatorics over plain indices, without hosts or racks' names.

pub(crate) mod circle;
pub(crate) mod coloring;
pub(crate) mod draw;
pub(crate) mod matching;
pub mod repair;
pub(crate) mod shift;
pub(crate) mod uplink;

pub use repair::{UplinkLimits, repair_rounds};
