//! Random numbers that repeat: a stream of their own for every part, so that a change of
//! one moves no other.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::f64::consts::TAU;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// The stream of a part, named by up to three numbers.
    #[must_use]
    pub fn new(seed: u64, part: [u64; 3]) -> Self {
        let mut key = [0; 32];
        for (bytes, number) in key
            .chunks_exact_mut(8)
            .zip([seed, part[0], part[1], part[2]])
        {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform between two values.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform below a bound; 0 when the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.unit() * bound as f64) as usize).min(bound.saturating_sub(1))
    }

    /// True with this probability. Takes no random number when it is 0.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (TAU * self.unit()).cos()
    }

    /// Student's t with four degrees of freedom: heavy tails, variance 2.
    pub fn student4(&mut self) -> f64 {
        let squares = -2.0 * ((1.0 - self.unit()).ln() + (1.0 - self.unit()).ln());
        self.normal() / (squares / 4.0).sqrt().max(1e-6)
    }

    /// Log-normal around 1.
    pub fn factor(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draws = |seed, part| {
            let mut dice = Dice::new(seed, part);
            (0..5).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, [1, 2, 3]), draws(1, [1, 2, 3]));
        assert_ne!(draws(1, [1, 2, 3]), draws(1, [1, 2, 4]));
        assert_ne!(draws(1, [1, 2, 3]), draws(2, [1, 2, 3]));
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut dice = Dice::new(7, [0; 3]);
        let mut variance = |draw: fn(&mut Dice) -> f64| {
            (0..40_000).map(|_| draw(&mut dice).powi(2)).sum::<f64>() / 40_000.0
        };
        assert!((variance(Dice::normal) - 1.0).abs() < 0.05);
        assert!((variance(Dice::student4) - 2.0).abs() < 0.4);
    }
}
