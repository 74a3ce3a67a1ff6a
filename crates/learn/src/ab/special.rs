//! The special functions that the tests need: the logarithm of the gamma function, the tails of
//! the chi-square and normal distributions, and the normal quantile.

/// The natural logarithm of the gamma function, for positive arguments. Lanczos' series with nine terms,
/// good to about fifteen digits.
pub(super) fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // The reflection formula.
        let sine = (std::f64::consts::PI * x).sin();
        return (std::f64::consts::PI / sine).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let mut sum = 0.999_999_999_999_809_9;
    for (index, term) in TERMS.iter().enumerate() {
        sum += term / (x + index as f64 + 1.0);
    }
    let shifted = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * shifted.ln() - shifted + sum.ln()
}

/// The natural logarithm of the beta function.
pub(super) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The probability that a gamma variable of this shape is above `x`: the upper regularised incomplete gamma
/// function.
pub(super) fn gamma_above(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (shape * x.ln() - x - ln_gamma(shape)).exp();
    if x < shape + 1.0 {
        // The series converges fast here.
        let (mut term, mut sum, mut at) = (1.0 / shape, 1.0 / shape, shape);
        for _ in 0..500 {
            at += 1.0;
            term *= x / at;
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    // And the continued fraction here, by Lentz' method.
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for step in 1..500 {
        let step = f64::from(step);
        let a = -step * (step - shape);
        b += 2.0;
        d = a * d + b;
        d = if d.abs() < TINY { TINY } else { d };
        c = b + a / c;
        c = if c.abs() < TINY { TINY } else { c };
        d = 1.0 / d;
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// The probability that a chi-square variable is above `x`.
pub(super) fn chi_square_above(x: f64, degrees: usize) -> f64 {
    gamma_above(degrees as f64 / 2.0, x / 2.0)
}

/// The probability that a standard normal variable is below `x`.
pub(super) fn normal_below(x: f64) -> f64 {
    let tail = 0.5 * gamma_above(0.5, x * x / 2.0);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// The quantile of the standard normal distribution, within ±8.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    // Bisection is simple, and fast enough for a few calls per analysis.
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_below(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
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
