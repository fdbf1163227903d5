//! The largest sets that are worked with.

/// The largest set that is worked with; more is an error rather than exhausted memory.
/// A fuzzer is to find what is wrong, not to wait for a million names.
pub const MAX_NODES: usize = if cfg!(fuzzing) { 10_000 } else { 1_000_000 };

/// Numbers of all names that are worked with at a time: a name may have several.
pub(super) const MAX_INDEXES: usize = 8 * MAX_NODES;
