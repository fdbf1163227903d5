//! What a function takes in memory.

use peak_alloc::PeakAlloc;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Held while a function is measured.
static MEASURED: Mutex<()> = Mutex::new(());

/// What a target may take in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// So many times its input's length, and ...
    pub times_input: usize,
    /// ... so many bytes.
    pub base_bytes: usize,
}

impl Bound {
    /// Of most targets. 1 MiB is for buffers of a fixed length and what is made once.
    pub const USUAL: Self = Self {
        times_input: 64,
        base_bytes: 1 << 20,
    };

    /// Of targets that keep a document as a tree of values. In JSON an object of one key, 7 bytes
    /// long, takes a node of a B-tree with space for eleven, 632 bytes; in YAML a value of two
    /// bytes has its place in the file with it, 150 times its length.
    pub const DOCUMENT_TREE: Self = Self {
        times_input: 256,
        ..Self::USUAL
    };

    fn bytes(self, input_bytes: usize) -> usize {
        self.times_input
            .saturating_mul(input_bytes)
            .saturating_add(self.base_bytes)
    }
}

/// Runs a target.
///
/// # Panics
/// When the target does, or takes more memory than its bound.
pub fn check(bound: Bound, input: &[u8], target: impl FnOnce(&[u8])) {
    check_length(bound, input.len(), || target(input));
}

/// Runs a target whose input has this length.
pub(crate) fn check_length(bound: Bound, input_bytes: usize, target: impl FnOnce()) {
    let ((), peak_bytes) = peak_bytes(target);
    let most_bytes = bound.bytes(input_bytes);
    assert!(
        peak_bytes <= most_bytes,
        "{input_bytes} bytes of input took {peak_bytes} bytes of memory, at most {most_bytes} are allowed"
    );
}

/// What a function gives, and the most memory that it had at once beyond what was in use before.
pub fn peak_bytes<T>(function: impl FnOnce() -> T) -> (T, usize) {
    let _alone = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let before_bytes = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let value = function();
    let peak_bytes = ALLOCATOR.peak_usage();
    (value, peak_bytes.saturating_sub(before_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_given_back_counts() {
        let (_, peak_bytes) = peak_bytes(|| drop(vec![1_u8; 4 << 20]));
        // Other tests of this process may give something back meanwhile.
        assert!(peak_bytes >= 3 << 20, "{peak_bytes}");
    }

    #[test]
    #[should_panic(expected = "at most 1048640 are allowed")]
    fn a_target_that_takes_more_is_stopped() {
        check(Bound::USUAL, b"1", |_| drop(vec![1_u8; 2 << 20]));
    }
}
