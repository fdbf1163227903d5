//! Where a bad path is, and what it takes to accuse one place and no other.

use crate::fit::Direction;

/// Share of healthy connections that look bad for no reason.
pub(super) const SPURIOUS: f64 = 0.003;

/// A scope most of whose connections are bad is no single path.
pub(super) const OF_PATH: f64 = 0.75;

/// Bad connections, of different hosts, that a finding needs.
pub(super) const MIN_BAD: usize = 3;
pub(super) const MIN_HOSTS: usize = 2;

/// Prior odds of a bad path, and nats within which two scopes are not distinguished.
pub(super) const ODDS: f64 = 0.02;
pub(super) const EQUAL: f64 = 3.0;

/// Where a bad path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// A member of one rack's uplinks.
    Rack(usize, Direction),
    /// One of every rack's: a spine.
    Everywhere,
}
