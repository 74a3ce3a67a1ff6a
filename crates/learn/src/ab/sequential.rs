//! Anytime-valid evidence: an e-process, which may be looked at after every pair and acted on at any time.
//!
//! An e-process is a nonnegative process that starts at 1 and has an expected value of at most 1 under the null
//! hypothesis. By Ville's inequality it reaches 1 / alpha with a probability of at most alpha. So stopping as soon
//! as the e-value reaches 1 / alpha has a false positive rate of at most alpha, whenever and why ever one looks.
//!
//! Under the null hypothesis arm and outcome are independent, so the difference of a pair has a symmetric
//! distribution. For binary outcomes only pairs that differ count. The e-value is the likelihood ratio of the share
//! that B wins, mixed over all shares by a Beta(1/2, 1/2); its expected value is exactly 1. For amounts the e-value
//! of a pair is exp(l d - l² d² / 2), whose expected value is at most 1 for every symmetric d (cosh(x) <= exp(x² / 2)).
//! It is mixed over all l by normal distributions of several widths, since the size of differences is not known in
//! advance. No variance is estimated, and normality is not assumed.

use super::special::ln_beta;

/// The prior sums of squares that are mixed: from differences of a few percent to complete ones.
const WIDTHS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// What is observed of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcomes {
    /// Success or failure, 1 or 0.
    Binary,
    /// Amounts that are not negative.
    Amounts,
}

/// The evidence that arms differ, updated pair by pair.
#[derive(Debug, Clone, PartialEq)]
pub struct EProcess {
    outcomes: Outcomes,
    for_a: u64,
    for_b: u64,
    sum: f64,
    squares: f64,
    max: f64,
}

impl EProcess {
    /// No evidence: the e-value 1.
    #[must_use]
    pub fn new(outcomes: Outcomes) -> Self {
        Self {
            outcomes,
            for_a: 0,
            for_b: 0,
            sum: 0.0,
            squares: 0.0,
            max: 1.0,
        }
    }

    /// Adds a pair.
    pub fn add(&mut self, a: f64, b: f64) {
        let difference = relative_difference(a, b);
        self.for_a += u64::from(difference < 0.0);
        self.for_b += u64::from(difference > 0.0);
        self.sum += difference;
        self.squares += difference * difference;
        self.max = self.max.max(self.now());
    }

    /// The current e-value: 1 is no evidence, 20 is what an alpha of 0.05 needs.
    #[must_use]
    pub fn now(&self) -> f64 {
        match self.outcomes {
            Outcomes::Binary => {
                let (a, b) = (self.for_a as f64, self.for_b as f64);
                let mixed = ln_beta(a + 0.5, b + 0.5) - ln_beta(0.5, 0.5);
                (mixed + (a + b) * std::f64::consts::LN_2).exp()
            }
            Outcomes::Amounts => {
                let bets = WIDTHS.iter().map(|width| {
                    let all = width + self.squares;
                    0.5 * (width / all).ln() + self.sum * self.sum / (2.0 * all)
                });
                bets.map(f64::exp).sum::<f64>() / WIDTHS.len() as f64
            }
        }
    }

    /// The largest e-value so far. Any stopping rule is allowed, so this one counts.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The anytime-valid p-value.
    #[must_use]
    pub fn p_value(&self) -> f64 {
        1.0 / self.max
    }

    /// Whether the evidence is enough to stop.
    #[must_use]
    pub fn is_enough(&self, alpha: f64) -> bool {
        self.max >= 1.0 / alpha
    }
}

/// The difference of B and A, divided by their sum: between -1 and 1, independent of the unit, with the opposite
/// sign if the arms are swapped, and 0 if both are 0.
#[must_use]
pub fn relative_difference(a: f64, b: f64) -> f64 {
    let both = a + b;
    if both > 0.0 { (b - a) / both } else { 0.0 }
}
