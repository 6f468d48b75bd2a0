//! Random order from a seed that is kept with the run.

use std::hash::{BuildHasher, Hasher, RandomState};

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", ACM TOMS 42, 2016): short,
/// and good enough to shuffle a few dozen instances.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns a generator. Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        // A step of SplitMix, so that neighbouring seeds begin far apart. The state must not be 0.
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((state ^ state >> 27).max(1))
    }

    /// Returns a seed that differs from process to process.
    pub fn seed() -> u64 {
        RandomState::new().build_hasher().finish()
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Puts `items` in a random order (Fisher and Yates; Durstenfeld, CACM 7, 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = (self.next_u64() % (last as u64 + 1)) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_three_is_about_as_frequent() {
        let mut random = Random::new(1);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
