//! A small reproducible random number generator: SplitMix64. It orders and resamples experiments. It is not
//! cryptographic.

/// A random number generator with a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator at the start of this seed's sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An integer from 0 up to but not including `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high half of the product: its bias is below one in 2^64 / limit, and it takes no division.
        let product = u128::from(self.bits()) * limit as u128;
        (product >> 64) as usize
    }

    /// A number from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random boolean.
    pub fn flip(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// Puts items into a random order; every order is as likely as any other.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
