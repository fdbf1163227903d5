//! Where a bad path is, and what it takes to accuse one place and no other.

use crate::fit::Direction;

/// Where a bad path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// A member of one rack's uplinks.
    Rack(usize, Direction),
    /// One of every rack's: a spine.
    Everywhere,
}
