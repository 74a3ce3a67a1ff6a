//! Tests for experiments whose length was fixed before they began. All three are exact: their chance of
//! a false alarm is at most what they state, with any number of pairs. Mid-p values would find a little
//! more with few pairs, but may go above that chance, and a verdict is a promise.

use super::random::Random;
use super::special::{chi_square_above, ln_gamma};

/// How often signs are drawn in [`sign_flip`].
const FLIPS: usize = 9_999;

/// From how many units on the sample ratio is judged by chi-square instead of exactly.
const MANY: u64 = 1_000;

/// McNemar's test, exactly: the probability that of the pairs that differ at least so many differ in one
/// and the same direction, if both directions are equally likely. Pairs that agree say nothing about
/// which is better.
#[must_use]
pub fn mcnemar(only_a: u64, only_b: u64) -> f64 {
    let count = only_a + only_b;
    if count == 0 {
        return 1.0;
    }
    let least = only_a.min(only_b);
    let tail: f64 = (0..=least).map(|k| binomial(count, k, 0.5)).sum();
    (2.0 * tail).min(1.0)
}

/// The test of signs and sizes: how likely so large a sum of differences is, either way, if each might as
/// well have had the other sign. That is so if it makes no difference which arm a run is in.
#[must_use]
pub fn sign_flip(differences: &[f64], seed: u64) -> f64 {
    let seen = differences.iter().sum::<f64>().abs();
    // Sums in another order differ in the last digits; that must not make them smaller.
    let seen = seen - 1e-9 * differences.iter().map(|value| value.abs()).sum::<f64>();
    let mut random = Random::new(seed);
    let mut as_large = 0_usize;
    for _ in 0..FLIPS {
        let mut sum = 0.0;
        let mut bits = 0_u64;
        for (index, difference) in differences.iter().enumerate() {
            if index % 64 == 0 {
                bits = random.bits();
            }
            sum += if bits & 1 == 0 {
                *difference
            } else {
                -*difference
            };
            bits >>= 1;
        }
        as_large += usize::from(sum.abs() >= seen);
    }
    (as_large + 1) as f64 / (FLIPS + 1) as f64
}

/// Whether there are as many units in each group as were meant to be, as the probability of so odd a
/// ratio or an odder one. `weights` says what was meant; only their ratio counts.
#[must_use]
pub fn sample_ratio(counts: &[u64], weights: &[f64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let weight: f64 = weights.iter().sum();
    if total == 0 || counts.len() < 2 || counts.len() != weights.len() || weight <= 0.0 {
        return 1.0;
    }
    if let (&[first, _], &[of_first, _]) = (counts, weights)
        && total < MANY
    {
        let share = of_first / weight;
        let seen = binomial(total, first, share);
        let odds = (0..=total).map(|k| binomial(total, k, share));
        return odds
            .filter(|likely| *likely <= seen * (1.0 + 1e-7))
            .sum::<f64>()
            .min(1.0);
    }
    let meant = weights.iter().map(|of_one| total as f64 * of_one / weight);
    let mut sum = 0.0;
    for (&count, meant) in counts.iter().zip(meant) {
        if meant <= 0.0 {
            if count > 0 {
                return 0.0;
            }
            continue;
        }
        sum += (count as f64 - meant).powi(2) / meant;
    }
    chi_square_above(sum, counts.len() - 1)
}

/// How likely exactly `k` of `count` are, each with this probability.
fn binomial(count: u64, k: u64, probability: f64) -> f64 {
    if probability <= 0.0 || probability >= 1.0 {
        let sure = if probability <= 0.0 { 0 } else { count };
        return if k == sure { 1.0 } else { 0.0 };
    }
    let (n, k) = (count as f64, k as f64);
    let choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    (choose + k * probability.ln() + (n - k) * (1.0 - probability).ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_is_the_sign_test_of_the_pairs_that_differ() {
        assert!((mcnemar(0, 5) - 0.0625).abs() < 1e-12);
        assert!((mcnemar(6, 0) - 0.031_25).abs() < 1e-12);
        assert!((mcnemar(3, 3) - 1.0).abs() < 1e-12);
        assert!((mcnemar(2, 8) - 0.109_375).abs() < 1e-12);
        assert!((mcnemar(0, 0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn flipping_signs_agrees_with_counting_them_where_all_are_the_same_size() {
        let differences = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0];
        assert!((sign_flip(&differences, 7) - mcnemar(2, 8)).abs() < 0.01);
        assert!((sign_flip(&[], 7) - 1.0).abs() < 1e-12);
        assert!((sign_flip(&[0.0; 5], 7) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn an_odd_sample_ratio_is_unlikely_and_the_intended_one_is_not() {
        assert!(sample_ratio(&[500, 500], &[1.0, 1.0]) > 0.9);
        assert!(sample_ratio(&[60, 20], &[1.0, 1.0]) < 0.001);
        assert!(sample_ratio(&[90, 10], &[9.0, 1.0]) > 0.9);
        assert!(sample_ratio(&[5_000, 5_400], &[1.0, 1.0]) < 0.001);
        assert!(sample_ratio(&[34, 33, 33], &[1.0, 1.0, 1.0]) > 0.9);
        assert!(sample_ratio(&[80, 10, 10], &[1.0, 1.0, 1.0]) < 0.001);
        assert!(sample_ratio(&[3, 0], &[0.0, 1.0]) < 0.001);
    }

    #[test]
    fn both_ways_to_judge_a_ratio_agree_where_they_meet() {
        let exactly = sample_ratio(&[470, 529], &[1.0, 1.0]);
        let by_chi_square = sample_ratio(&[470, 530], &[1.0, 1.0]);
        assert!(
            (exactly - by_chi_square).abs() < 0.01,
            "{exactly} {by_chi_square}"
        );
    }
}
