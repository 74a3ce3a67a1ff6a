//! Chance that comes out the same for the same seed, on every machine.

pub use windlass_learn::ab::Random;

/// The numbers of a seed, for one purpose: other purposes get others.
pub fn chance(seed: u64, purpose: &str) -> Random {
    // FNV-1a.
    let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3_u64)
    });
    Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_purpose_give_the_same_order_and_others_another() {
        let order = |seed, purpose| {
            let mut things: Vec<usize> = (0..50).collect();
            chance(seed, purpose).shuffle(&mut things);
            things
        };
        assert_eq!(order(1, "folds"), order(1, "folds"));
        assert_ne!(order(1, "folds"), order(2, "folds"));
        assert_ne!(order(1, "folds"), order(1, "names"));
    }
}
