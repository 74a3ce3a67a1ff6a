//! Evidence that may be looked at after every pair, as often as one likes, and acted on at any moment.
//! It is an e-process: money that a gambler would have who began with 1 and bet, pair by pair, that the
//! arms differ, in a game that is fair if they do not. Who plays a fair game multiplies their money by
//! twenty, ever, with a chance of at most one in twenty (Ville's inequality), so stopping as soon as the
//! evidence reaches 1 / alpha errs in at most alpha of all experiments without a difference, whenever and
//! why ever one looks.
//!
//! The game is fair if arm and outcome have nothing to do with each other: then the difference of a pair
//! might as well have had the other sign. For yes or no (success) only pairs that differ count, and the
//! bet is on the share of those that B wins, spread over all shares by a Beta(1/2, 1/2); that is a fair
//! game exactly. For sizes the bet is exp(l d - l² d² / 2), which wins nothing on average for any d that is
//! as likely as -d, however its sizes are distributed (cosh(x) <= exp(x² / 2)); it is spread over all l by
//! normal distributions of several widths, since how large differences are is not known before. No
//! variance is estimated and nothing is assumed to be normal.

use super::special::ln_beta;

/// The prior sums of squares whose bets are mixed: from differences of a few percent to whole ones.
const WIDTHS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// What is observed of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcomes {
    /// Yes or no.
    Binary,
    /// Amounts that are not negative.
    Amounts,
}

/// Evidence that arms differ, pair by pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    outcomes: Outcomes,
    for_a: u64,
    for_b: u64,
    sum: f64,
    squares: f64,
    most: f64,
}

impl Evidence {
    /// None yet.
    #[must_use]
    pub fn new(outcomes: Outcomes) -> Self {
        Self {
            outcomes,
            for_a: 0,
            for_b: 0,
            sum: 0.0,
            squares: 0.0,
            most: 1.0,
        }
    }

    /// Takes in one more pair.
    pub fn add(&mut self, a: f64, b: f64) {
        let difference = relative_difference(a, b);
        self.for_a += u64::from(difference < 0.0);
        self.for_b += u64::from(difference > 0.0);
        self.sum += difference;
        self.squares += difference * difference;
        self.most = self.most.max(self.now());
    }

    /// How much there is now: 1 is none, 20 is what an alpha of 0.05 asks for.
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

    /// How much there ever was. A gambler may stop when they like, so this is what counts.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.most
    }

    /// The p value that holds whenever it is looked at.
    #[must_use]
    pub fn p_value(&self) -> f64 {
        1.0 / self.most
    }

    /// Whether it is enough to stop.
    #[must_use]
    pub fn is_enough(&self, alpha: f64) -> bool {
        self.most >= 1.0 / alpha
    }
}

/// By how much B is above A, as a share of both together: between -1 and 1, the same in whatever unit is
/// measured, of the opposite sign if the arms are swapped, and nothing if both are nothing.
#[must_use]
pub fn relative_difference(a: f64, b: f64) -> f64 {
    let both = a + b;
    if both > 0.0 { (b - a) / both } else { 0.0 }
}
