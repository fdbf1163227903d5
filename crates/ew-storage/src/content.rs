//! The content of files: a function of seed, file and position.
//!
//! A file is a sequence of 64-bit little-endian words; word `i` of file `f` is
//! `mix(key(seed, f) + i * GOLDEN)`: the `i`-th output of SplitMix64 (Steele, Lea, Flood: Fast
//! Splittable Pseudorandom Number Generators, OOPSLA 2014) from a key of the file's own. It does
//! not compress, no two offsets are alike, and it can be inverted: wrong bytes show where they
//! belong.

/// The increment of SplitMix64: 2^64 over the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Its inverse modulo 2^64.
const GOLDEN_INVERSE: u64 = inverse(GOLDEN);
const FIRST_FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND_FACTOR: u64 = 0x94d0_49bb_1331_11eb;
/// Bytes of a word.
const WORD: usize = 8;
/// Files that wrong bytes are searched in.
const FILES_LOOKED_UP: u32 = 20_000;

/// Content of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    seed: u64,
    file: u32,
    key: u64,
}

/// The first wrong byte, and what was there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// In the file.
    pub offset: u64,
    /// In words.
    pub found: String,
}

impl Content {
    /// Of a file of a job with this seed.
    #[must_use]
    pub fn new(seed: u64, file: u32) -> Self {
        Self {
            seed,
            file,
            key: key(seed, file),
        }
    }

    /// Fills `bytes` with the file's content from `offset` on.
    pub fn fill(&self, offset: u64, bytes: &mut [u8]) {
        let (head, body) = split_mut(offset, bytes);
        self.fill_part(offset, head);
        let first = (offset + head.len() as u64) / WORD as u64;
        let mut state = self.state(first);
        let mut words = body.chunks_exact_mut(WORD);
        for word in &mut words {
            word.copy_from_slice(&mix(state).to_le_bytes());
            state = state.wrapping_add(GOLDEN);
        }
        let tail = words.into_remainder();
        tail.copy_from_slice(&mix(state).to_le_bytes()[..tail.len()]);
    }

    /// Compares `bytes`, read at `offset`, with the file's expected content.
    ///
    /// # Errors
    /// The first wrong byte, and what was there instead.
    pub fn check(&self, offset: u64, bytes: &[u8]) -> Result<(), Mismatch> {
        let head = head_len(offset, bytes.len());
        let first = (offset + head as u64) / WORD as u64;
        let mut state = self.state(first);
        let mut wrong = u64::from(self.differs(offset, &bytes[..head]));
        let words = bytes[head..].chunks_exact(WORD);
        let tail = words.remainder();
        for word in words {
            // One test after the loop is faster than one in each turn.
            wrong |= word_of(word) ^ mix(state);
            state = state.wrapping_add(GOLDEN);
        }
        let end = offset + (bytes.len() - tail.len()) as u64;
        if wrong == 0 && !self.differs(end, tail) {
            return Ok(());
        }
        Err(self.explain(offset, bytes))
    }

    fn state(&self, word: u64) -> u64 {
        self.key.wrapping_add(word.wrapping_mul(GOLDEN))
    }

    /// A piece that lies within one word.
    fn fill_part(&self, offset: u64, bytes: &mut [u8]) {
        let word = mix(self.state(offset / WORD as u64)).to_le_bytes();
        let start = (offset % WORD as u64) as usize;
        bytes.copy_from_slice(&word[start..start + bytes.len()]);
    }

    fn differs(&self, offset: u64, part: &[u8]) -> bool {
        let mut right = [0; WORD];
        self.fill_part(offset, &mut right[..part.len()]);
        right[..part.len()] != *part
    }

    fn explain(&self, offset: u64, bytes: &[u8]) -> Mismatch {
        let mut right = vec![0; bytes.len()];
        self.fill(offset, &mut right);
        let differing = |at: &usize| bytes[*at] != right[*at];
        let first = (0..bytes.len()).find(differing).unwrap_or(0);
        let wrong = (0..bytes.len()).filter(differing).count();
        let at = offset + first as u64;
        let found = self.describe(at, &bytes[first..], &right[first..], wrong);
        Mismatch { offset: at, found }
    }

    fn describe(&self, at: u64, bytes: &[u8], right: &[u8], wrong: usize) -> String {
        if wrong == 1 {
            return format!(
                "1 byte differs: 0x{:02x}, written was 0x{:02x}",
                bytes[0], right[0]
            );
        }
        let counted = format!("{wrong} of {} bytes differ", bytes.len());
        if bytes.iter().take(64).all(|byte| *byte == 0) {
            return format!("{counted}: zeros");
        }
        // The first whole word in or behind the wrong bytes shows where it belongs.
        let head = head_len(at, bytes.len());
        let words = bytes[head..].chunks_exact(WORD).take(2);
        let belongs = words.enumerate().find_map(|(number, word)| {
            let expected_offset = at + (head + number * WORD) as u64;
            self.origin(word_of(word), expected_offset)
        });
        match belongs {
            Some(words) => format!("{counted}: {words}"),
            None => format!("{counted}: neither of this file nor of another one of this seed"),
        }
    }

    /// Where a word of this seed belongs. `None`: nowhere, or right where it was found.
    fn origin(&self, word: u64, expected_offset: u64) -> Option<String> {
        let state = unmix(word);
        let files = std::iter::once(self.file).chain(0..FILES_LOOKED_UP);
        files.into_iter().find_map(|file| {
            let distance = state.wrapping_sub(key(self.seed, file));
            let offset = distance
                .wrapping_mul(GOLDEN_INVERSE)
                .checked_mul(WORD as u64)?;
            let is_near = offset < 1 << 44;
            let is_here = file == self.file && offset == expected_offset;
            (is_near && !is_here).then(|| match file == self.file {
                true => format!("the bytes of offset {offset} of the same file"),
                false => format!("the bytes of offset {offset} of file {file}"),
            })
        })
    }
}

fn key(seed: u64, file: u32) -> u64 {
    mix(mix(seed.wrapping_add(GOLDEN)) ^ (u64::from(file) << 32 | 0x5eed))
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(FIRST_FACTOR);
    z = (z ^ (z >> 27)).wrapping_mul(SECOND_FACTOR);
    z ^ (z >> 31)
}

fn unmix(mut z: u64) -> u64 {
    z = unshift(z, 31).wrapping_mul(inverse(SECOND_FACTOR));
    z = unshift(z, 27).wrapping_mul(inverse(FIRST_FACTOR));
    unshift(z, 30)
}

/// Inverts `z ^ (z >> by)`.
fn unshift(z: u64, by: u32) -> u64 {
    let mut out = z;
    let mut shift = by;
    while shift < 64 {
        out ^= z >> shift;
        shift += by;
    }
    out
}

/// Of an odd number modulo 2^64, by Newton's iteration: each turn doubles the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut turn = 0;
    while turn < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        turn += 1;
    }
    x
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Bytes before the first whole word.
fn head_len(offset: u64, length: usize) -> usize {
    ((WORD - (offset % WORD as u64) as usize) % WORD).min(length)
}

fn split_mut(offset: u64, bytes: &mut [u8]) -> (&mut [u8], &mut [u8]) {
    let head = head_len(offset, bytes.len());
    bytes.split_at_mut(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(content: &Content, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        content.fill(offset, &mut bytes);
        bytes
    }

    #[test]
    fn mixing_is_inverted() {
        for word in [0, 1, u64::MAX, GOLDEN, 0x0123_4567_89ab_cdef] {
            assert_eq!(unmix(mix(word)), word);
        }
        assert_eq!(GOLDEN.wrapping_mul(GOLDEN_INVERSE), 1);
    }

    #[test]
    fn a_flipped_byte_is_named() {
        let content = Content::new(7, 3);
        let mut bytes = filled(&content, 4096, 4096);
        bytes[1000] ^= 0x10;
        let mismatch = content.check(4096, &bytes).unwrap_err();
        assert_eq!(mismatch.offset, 5096);
        assert!(mismatch.found.starts_with("1 byte differs"), "{mismatch:?}");
    }

    #[test]
    fn wrong_bytes_say_where_they_belong() {
        let content = Content::new(7, 3);
        let found = |bytes: &[u8]| content.check(8192, bytes).unwrap_err().found;
        let swapped = found(&filled(&content, 4096, 4096));
        assert!(
            swapped.ends_with("offset 4096 of the same file"),
            "{swapped}"
        );
        let foreign = found(&filled(&Content::new(7, 12), 8192, 4096));
        assert!(foreign.ends_with("offset 8192 of file 12"), "{foreign}");
        let hole = found(&[0; 4096]);
        assert!(hole.ends_with("zeros"), "{hole}");
        let unknown = found(&filled(&Content::new(8, 3), 8192, 4096));
        assert!(unknown.contains("neither"), "{unknown}");
    }

    proptest! {
        #[test]
        fn pieces_make_the_whole(seed: u64, file in 0u32..10_000, start in 0u64..5000, cuts in prop::collection::vec(0usize..300, 0..9)) {
            let content = Content::new(seed, file);
            let mut offset = start;
            let mut pieces = Vec::new();
            for cut in cuts {
                let piece = filled(&content, offset, cut);
                prop_assert_eq!(content.check(offset, &piece), Ok(()));
                offset += cut as u64;
                pieces.extend(piece);
            }
            prop_assert_eq!(&pieces, &filled(&content, start, pieces.len()));
        }

        #[test]
        fn any_changed_byte_is_found(offset in 0u64..100, length in 1usize..200, at: prop::sample::Index, change in 1u8..) {
            let content = Content::new(1, 2);
            let mut bytes = filled(&content, offset, length);
            let at = at.index(length);
            bytes[at] ^= change;
            let mismatch = content.check(offset, &bytes).unwrap_err();
            prop_assert_eq!(mismatch.offset, offset + at as u64);
        }
    }
}
