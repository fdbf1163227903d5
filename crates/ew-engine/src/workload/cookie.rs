//! What distinguishes a stream's own packets and connections from those of others.

/// A number that nobody can guess, for one stream of one round.
pub(super) fn fresh() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
