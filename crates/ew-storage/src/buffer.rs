//! Memory as `O_DIRECT` wants it.

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
}
