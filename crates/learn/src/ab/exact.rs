//! Tests for experiments whose length was fixed before they began. All three are exact: their false positive
//! rate is at most the stated one, with any number of pairs. Mid-p values have a little more power with few
//! pairs, but may exceed that rate.

use super::random::Random;
use super::special::{chi_square_above, ln_gamma};

/// The number of random sign assignments in [`sign_flip`].
const FLIPS: usize = 9_999;

/// From this many units on, the sample ratio is tested by chi-square instead of exactly.
const CHI_SQUARE_FROM: u64 = 1_000;

/// The two-sided p-value of McNemar's exact test: of the pairs that differ, the probability that at least this many
/// differ in one direction if both directions are equally likely. Pairs that agree do not count.
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

/// The two-sided p-value of the sign-flip permutation test: the probability of such a large sum of differences if
/// the sign of each is random. Under the null hypothesis the arm of a run makes no difference, so the signs
/// are random.
#[must_use]
pub fn sign_flip(differences: &[f64], seed: u64) -> f64 {
    let observed = differences.iter().sum::<f64>().abs();
    // Sums in another order differ by rounding, which must not make them smaller.
    let observed = observed - 1e-9 * differences.iter().map(|value| value.abs()).sum::<f64>();
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
        as_large += usize::from(sum.abs() >= observed);
    }
    (as_large + 1) as f64 / (FLIPS + 1) as f64
}

/// The p-value of the sample ratio test: the probability of a ratio at least as far from the intended one. `weights`
/// are the intended shares; only their ratio counts.
#[must_use]
pub fn sample_ratio(counts: &[u64], weights: &[f64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let weight: f64 = weights.iter().sum();
    if total == 0 || counts.len() < 2 || counts.len() != weights.len() || weight <= 0.0 {
        return 1.0;
    }
    if let (&[first, _], &[of_first, _]) = (counts, weights)
        && total < CHI_SQUARE_FROM
    {
        let share = of_first / weight;
        let observed = binomial(total, first, share);
        let odds = (0..=total).map(|k| binomial(total, k, share));
        return odds
            .filter(|likely| *likely <= observed * (1.0 + 1e-7))
            .sum::<f64>()
            .min(1.0);
    }
    let expected = weights.iter().map(|of_one| total as f64 * of_one / weight);
    let mut sum = 0.0;
    for (&count, expected) in counts.iter().zip(expected) {
        if expected <= 0.0 {
            if count > 0 {
                return 0.0;
            }
            continue;
        }
        sum += (count as f64 - expected).powi(2) / expected;
    }
    chi_square_above(sum, counts.len() - 1)
}

/// The binomial probability of exactly `k` of `count`.
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
    fn sign_flip_agrees_with_mcnemar_if_all_differences_have_the_same_size() {
        let differences = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0];
        assert!((sign_flip(&differences, 7) - mcnemar(2, 8)).abs() < 0.01);
        assert!((sign_flip(&[], 7) - 1.0).abs() < 1e-12);
        assert!((sign_flip(&[0.0; 5], 7) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn sample_ratio_rejects_an_unintended_split_and_accepts_the_intended_one() {
        assert!(sample_ratio(&[500, 500], &[1.0, 1.0]) > 0.9);
        assert!(sample_ratio(&[60, 20], &[1.0, 1.0]) < 0.001);
        assert!(sample_ratio(&[90, 10], &[9.0, 1.0]) > 0.9);
        assert!(sample_ratio(&[5_000, 5_400], &[1.0, 1.0]) < 0.001);
        assert!(sample_ratio(&[34, 33, 33], &[1.0, 1.0, 1.0]) > 0.9);
        assert!(sample_ratio(&[80, 10, 10], &[1.0, 1.0, 1.0]) < 0.001);
        assert!(sample_ratio(&[3, 0], &[0.0, 1.0]) < 0.001);
    }

    #[test]
    fn exact_and_chi_square_sample_ratio_agree_at_the_switch() {
        let exactly = sample_ratio(&[470, 529], &[1.0, 1.0]);
        let by_chi_square = sample_ratio(&[470, 530], &[1.0, 1.0]);
        assert!(
            (exactly - by_chi_square).abs() < 0.01,
            "{exactly} {by_chi_square}"
        );
    }
}
