//! The special functions that the tests need: the logarithm of the beta function, the tails of
//! the chi-square and normal distributions, and the normal quantile.

use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::gamma_ur;

pub(super) use statrs::function::beta::ln_beta;
pub(super) use statrs::function::gamma::ln_gamma;

/// The probability that a chi-square variable is above `x`.
pub(super) fn chi_square_above(x: f64, degrees: usize) -> f64 {
    match x <= 0.0 {
        true => 1.0,
        false => gamma_ur(degrees as f64 / 2.0, x / 2.0),
    }
}

/// The probability that a standard normal variable is below `x`.
pub(super) fn normal_below(x: f64) -> f64 {
    erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

/// The quantile of the standard normal distribution, for probabilities between 0 and 1.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        let scale = expected.abs().max(1e-3);
        assert!(
            (found - expected).abs() < 1e-9 * scale.max(1.0),
            "{found} is not {expected}"
        );
    }

    #[test]
    fn functions_have_the_values_of_published_tables() {
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
        near(ln_gamma(10.0), 362_880.0_f64.ln());
        near(ln_beta(2.0, 3.0), (1.0_f64 / 12.0).ln());
        near(normal_below(0.0), 0.5);
        near(normal_below(-1.959_963_984_540_054), 0.025);
        near(normal_quantile(0.8), 0.841_621_233_572_914);
        near(chi_square_above(3.841_458_820_694_124, 1), 0.05);
        near(chi_square_above(10.827_566_170_662_733, 1), 0.001);
        near(chi_square_above(5.991_464_547_107_979, 2), 0.05);
        near(chi_square_above(0.584_374_374_155_183, 3), 0.9);
    }
}
