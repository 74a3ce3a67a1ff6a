//! Logistic regression: from features to a probability. Fitted by Newton's method with an L2 penalty, which has a
//! unique optimum, so the same examples give the same weights.

use super::features::{COUNT, Features};

/// The L2 penalty, per standard deviation of a feature.
const PENALTY: f64 = 3.0;
const MOST_STEPS: usize = 50;

/// A fitted model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Logistic {
    pub(super) intercept: f64,
    pub(super) weights: Features,
}

impl Logistic {
    /// The probability of a gap.
    pub(super) fn probability(&self, features: &Features) -> f64 {
        let terms = self.weights.iter().zip(features);
        let total: f64 = terms.map(|(weight, feature)| weight * feature).sum();
        1.0 / (1.0 + (-(self.intercept + total)).exp())
    }

    /// Fits a model to examples: features, and whether there is a gap.
    pub(super) fn fit(examples: &[(Features, bool)]) -> Self {
        let (means, deviations) = spread(examples);
        let rows: Vec<([f64; COUNT + 1], f64)> = examples
            .iter()
            .map(|(features, gap)| {
                let mut row = [1.0; COUNT + 1];
                for index in 0..COUNT {
                    row[index] = (features[index] - means[index]) / deviations[index];
                }
                (row, f64::from(u8::from(*gap)))
            })
            .collect();
        let mut weights = [0.0; COUNT + 1];
        for _ in 0..MOST_STEPS {
            let step = newton_step(&rows, &weights);
            for (weight, change) in weights.iter_mut().zip(step) {
                *weight -= change;
            }
            if step.iter().all(|change| change.abs() < 1e-10) {
                break;
            }
        }
        // Back from standardised features to the original ones.
        let mut fitted = Self {
            intercept: weights[COUNT],
            weights: [0.0; COUNT],
        };
        for index in 0..COUNT {
            fitted.weights[index] = weights[index] / deviations[index];
            fitted.intercept -= fitted.weights[index] * means[index];
        }
        fitted
    }
}

fn spread(examples: &[(Features, bool)]) -> (Features, Features) {
    let count = (examples.len() as f64).max(1.0);
    let mut means = [0.0; COUNT];
    let mut deviations = [0.0; COUNT];
    for index in 0..COUNT {
        let values = || examples.iter().map(|(features, _)| features[index]);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        means[index] = mean;
        // A constant feature has no information, and dividing by zero must be avoided.
        deviations[index] = if variance > 1e-12 {
            variance.sqrt()
        } else {
            1.0
        };
    }
    (means, deviations)
}

/// The Newton step: the inverse of the Hessian times the gradient.
fn newton_step(rows: &[([f64; COUNT + 1], f64)], weights: &[f64; COUNT + 1]) -> [f64; COUNT + 1] {
    let mut gradient = [0.0; COUNT + 1];
    let mut hessian = [[0.0; COUNT + 1]; COUNT + 1];
    for (row, label) in rows {
        let total: f64 = row.iter().zip(weights).map(|(x, weight)| x * weight).sum();
        let probability = 1.0 / (1.0 + (-total).exp());
        let variance = probability * (1.0 - probability);
        for (index, x) in row.iter().enumerate() {
            gradient[index] += (probability - label) * x;
            for (other, y) in row.iter().enumerate() {
                hessian[index][other] += variance * x * y;
            }
        }
    }
    for index in 0..COUNT {
        gradient[index] += PENALTY * weights[index];
        hessian[index][index] += PENALTY;
    }
    // The intercept is not penalised. A small constant keeps the system solvable.
    hessian[COUNT][COUNT] += 1e-9;
    solve(hessian, gradient)
}

/// Solves a positive definite system by Gaussian elimination.
fn solve(
    mut matrix: [[f64; COUNT + 1]; COUNT + 1],
    mut right: [f64; COUNT + 1],
) -> [f64; COUNT + 1] {
    for pivot in 0..=COUNT {
        let above = matrix[pivot];
        for row in pivot + 1..=COUNT {
            let factor = matrix[row][pivot] / above[pivot];
            for column in pivot..=COUNT {
                matrix[row][column] -= factor * above[column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..=COUNT).rev() {
        let known: f64 = (row + 1..=COUNT)
            .map(|column| matrix[row][column] * right[column])
            .sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(value: f64, gap: bool) -> (Features, bool) {
        let mut features = [0.0; COUNT];
        features[0] = value;
        (features, gap)
    }

    #[test]
    fn separating_feature_gets_a_weight_of_its_sign() {
        let examples: Vec<_> = (0..40)
            .map(|index| example(f64::from(index), index % 40 < 20))
            .collect();
        let fitted = Logistic::fit(&examples);
        assert!(fitted.weights[0] < 0.0);
        assert!(fitted.probability(&example(0.0, true).0) > 0.9);
        assert!(fitted.probability(&example(39.0, false).0) < 0.1);
        assert_eq!(fitted.weights[1], 0.0);
    }

    #[test]
    fn weights_do_not_depend_on_the_order_of_examples() {
        let mut examples: Vec<_> = (0..30)
            .map(|index| example(f64::from(index * 7 % 30), index % 3 == 0))
            .collect();
        let one = Logistic::fit(&examples);
        examples.reverse();
        let other = Logistic::fit(&examples);
        assert!((one.weights[0] - other.weights[0]).abs() < 1e-9);
    }
}
