//! A small generator of random numbers that everyone who knows the seed can run again: SplitMix64. It
//! orders experiments and resamples them; nothing secret is made with it.

/// Random numbers that follow from a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed, from the first.
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

    /// A whole number from 0 up to but not including `limit`; 0 if there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high half of the product: its bias is below one in 2^64 / limit, and it takes no division.
        let product = u128::from(self.bits()) * limit as u128;
        (product >> 64) as usize
    }

    /// A number from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Heads or tails.
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
