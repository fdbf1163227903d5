//! Where a bad path is.

use crate::Direction;

/// Where a bad path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A member of one rack's uplinks.
    Rack(usize, Direction),
    /// One of every rack's: a spine.
    Everywhere,
}
