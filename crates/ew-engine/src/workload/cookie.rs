//! What distinguishes a stream's own packets and connections from those of others.

/// A number that nobody can guess, for one stream of one round. The error is in words.
pub(super) fn fresh() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("this host gives no random numbers: {error}"))
}
