//! What a TCP sender sends, a block at a time.

use std::io;

/// Where a sender's blocks come from.
pub(super) trait Blocks {
    /// Gets the next block ready; returns its length, which is below `wanted` at the end only.
    fn load(&mut self, wanted: usize) -> io::Result<usize>;

    /// Sends that part of it.
    fn send_part(&self, from: usize, count: usize) -> io::Result<usize>;
}
