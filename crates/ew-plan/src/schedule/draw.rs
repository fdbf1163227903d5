//! Seeded random numbers whose results are part of the plan: same seed, same plan, also with
//! another version of `rand`.
//!
//! Only the ChaCha8 stream itself is taken from a library; it is fixed by its definition. Shuffles
//! and bounded numbers are made here, because libraries change theirs between releases.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw(ChaCha8Rng);

impl Draw {
    /// A stream of its own per run seed and test name, so that editing one test changes no other.
    pub(crate) fn new(seed: u64, test_name: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&fnv1a_64(test_name.as_bytes()).to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A uniform number below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        if bound <= 1 {
            return 0;
        }
        // Numbers above the last whole multiple of the bound are replaced, so that none is
        // favoured.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let value = self.0.next_u64();
            if value < limit {
                return (value % bound) as usize;
            }
        }
    }

    /// Fisher-Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// The items in random order.
    pub(crate) fn shuffled<T: Clone>(&mut self, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        self.shuffle(&mut items);
        items
    }
}

/// 64-bit FNV-1a (RFC 9923).
fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn streams_repeat_and_differ_by_name() {
        let draws = |seed, name| {
            let mut draw = Draw::new(seed, name);
            (0..20).map(|_| draw.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(7, "mesh"), draws(7, "mesh"));
        assert_ne!(draws(7, "mesh"), draws(7, "ramp"));
        assert_ne!(draws(7, "mesh"), draws(8, "mesh"));
    }

    #[test]
    fn shuffles_are_permutations_and_reach_every_position() {
        let mut draw = Draw::new(1, "x");
        let mut seen = [[false; 5]; 5];
        for _ in 0..300 {
            let order = draw.shuffled(&[0, 1, 2, 3, 4]);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
            order
                .iter()
                .enumerate()
                .for_each(|(i, v)| seen[i][*v] = true);
        }
        assert!(seen.iter().flatten().all(|s| *s));
    }
}
