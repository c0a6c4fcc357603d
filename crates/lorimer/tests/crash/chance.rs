//! Randomness that can be repeated: everything random of a trial follows from one seed.

use std::time::Duration;

/// A small xorshift generator.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// The randomness of one trial.
    pub fn new(seed: u64, trial: u64) -> Self {
        let mixed = (seed ^ trial.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut chance = Self((mixed ^ (mixed >> 29)) | 1);
        // The first numbers of similar seeds are similar.
        for _ in 0..8 {
            chance.next();
        }
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 up to, not including, `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit.max(1)
    }

    /// A time of at most `most_us` microseconds.
    pub fn pause(&mut self, most_us: u64) -> Duration {
        Duration::from_micros(self.below(most_us + 1))
    }
}
