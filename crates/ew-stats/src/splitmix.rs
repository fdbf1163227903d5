//! Random numbers that are the same in every run: SplitMix64 (Steele, Lea, Flood 2014).

/// What is added to the seed from one number to the next.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// One number from another.
#[must_use]
pub fn splitmix(seed: u64) -> u64 {
    let z = seed.wrapping_add(STEP);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One number after the other, from a seed.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next one, from 0 to below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let thrown = splitmix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        (thrown % limit as u64) as usize
    }
}
