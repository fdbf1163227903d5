//! Where a bad path is, and what it takes to accuse one place and no other.

use crate::fit::Direction;

/// Share of healthy connections that look bad for no reason.
pub(super) const SPURIOUS: f64 = 0.003;

/// Bad connections, of different hosts, that a finding needs.
pub(super) const MIN_BAD: usize = 3;
pub(super) const MIN_HOSTS: usize = 2;

/// Where a bad path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// A member of one rack's uplinks.
    Rack(usize, Direction),
    /// One of every rack's: a spine.
    Everywhere,
}
