//! Memory as `O_DIRECT` wants it, and buffers that a store may keep for a while.

use bytes::Bytes;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Alignment of memory, offsets and lengths that every disk's logical block divides.
pub(crate) const ALIGNMENT: usize = 4096;

/// Bytes whose first one lies on a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    pub(crate) fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self {
            memory,
            start,
            length,
        }
    }

    pub(crate) fn bytes(&mut self, length: usize) -> &mut [u8] {
        let length = length.min(self.length);
        &mut self.memory[self.start..self.start + length]
    }
}

/// Buffers of one worker. A store may keep what it is handed until a server has acknowledged it;
/// a buffer comes back when the store lets go of it, so that nothing is copied and, after the
/// first few, nothing allocated.
#[derive(Debug)]
pub(crate) struct BufferPool {
    length: usize,
    returned: Receiver<AlignedBuffer>,
    back: Sender<AlignedBuffer>,
}

/// A buffer in a store's hands.
struct Lent {
    buffer: AlignedBuffer,
    length: usize,
    back: Sender<AlignedBuffer>,
}

impl BufferPool {
    /// Of buffers of `length` bytes.
    pub(crate) fn new(length: usize) -> Self {
        let (back, returned) = channel();
        Self {
            length,
            returned,
            back,
        }
    }

    /// A buffer that nobody has, with whatever was in it.
    pub(crate) fn take(&self) -> AlignedBuffer {
        let returned = self.returned.try_recv();
        returned.unwrap_or_else(|_| AlignedBuffer::new(self.length))
    }

    /// The first `length` bytes, for a store to keep as long as it needs them.
    pub(crate) fn lend(&self, buffer: AlignedBuffer, length: usize) -> Bytes {
        Bytes::from_owner(Lent {
            length: length.min(buffer.length),
            buffer,
            back: self.back.clone(),
        })
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer.memory[self.buffer.start..self.buffer.start + self.length]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let empty = AlignedBuffer {
            memory: Vec::new(),
            start: 0,
            length: 0,
        };
        // The worker may be gone, and its buffers with it.
        let _ = self.back.send(std::mem::replace(&mut self.buffer, empty));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned() {
        for length in [1, 4096, 1_000_000] {
            let mut buffer = AlignedBuffer::new(length);
            let bytes = buffer.bytes(length);
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes.as_ptr().addr() % ALIGNMENT, 0);
        }
    }

    #[test]
    fn a_buffer_comes_back_when_its_last_part_is_dropped() {
        let pool = BufferPool::new(8192);
        let mut first = pool.take();
        first.bytes(8192).fill(7);
        let address = first.bytes(1).as_ptr();
        let lent = pool.lend(first, 5000);
        let part = lent.slice(4000..);
        drop(lent);
        assert_ne!(pool.take().bytes(1).as_ptr(), address, "it is still held");
        assert_eq!(part, vec![7; 1000]);
        assert_eq!(part.as_ptr().addr() % ALIGNMENT, 4000);
        drop(part);
        assert_eq!(pool.take().bytes(1).as_ptr(), address);
    }
}
