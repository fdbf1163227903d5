//! Memory that streams send from and receive into.

use ew_model::content::fill_incompressible;

const PAGE_BYTES: usize = 4096;

/// Page-aligned memory whose every page has been touched.
#[derive(Debug)]
pub(crate) struct PageBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl PageBuffer {
    /// Content that does not compress.
    pub(crate) fn incompressible(length: usize) -> Self {
        let mut buffer = Self::allocate(length);
        fill_incompressible(buffer.as_mut_slice());
        buffer
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }

    fn allocate(length: usize) -> Self {
        let memory = vec![0; length + PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Self {
            memory,
            start,
            length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_as_long_as_asked_for() {
        for length in [1, 7, 4096, 100_001] {
            let buffer = PageBuffer::incompressible(length);
            assert_eq!(buffer.as_slice().len(), length);
            assert_eq!(buffer.as_slice().as_ptr() as usize % PAGE_BYTES, 0);
        }
    }

    #[test]
    fn content_is_spread_over_all_byte_values() {
        let buffer = PageBuffer::incompressible(64 * 1024);
        let mut counts = [0_u32; 256];
        for byte in buffer.as_slice() {
            counts[usize::from(*byte)] += 1;
        }
        assert!(counts.iter().all(|count| (150..400).contains(count)));
    }
}
