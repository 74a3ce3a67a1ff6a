//! Logistic regression: from numbers to a probability. Fitted by Newton's method with a penalty on large
//! weights, which always ends at the one best fit, so the same examples give the same weights.

use super::features::{COUNT, Features};

/// How strongly large weights are penalised, per standard deviation of a number.
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

    /// The model that fits the examples best: numbers, and whether there is a gap.
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
        // Back from standard deviations to the numbers themselves.
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
        // A number that is always the same says nothing, and must not be divided by.
        deviations[index] = if variance > 1e-12 {
            variance.sqrt()
        } else {
            1.0
        };
    }
    (means, deviations)
}

/// How far to go from these weights: the inverse of the curvature times the slope.
fn newton_step(rows: &[([f64; COUNT + 1], f64)], weights: &[f64; COUNT + 1]) -> [f64; COUNT + 1] {
    let mut slope = [0.0; COUNT + 1];
    let mut curvature = [[0.0; COUNT + 1]; COUNT + 1];
    for (row, label) in rows {
        let total: f64 = row.iter().zip(weights).map(|(x, weight)| x * weight).sum();
        let probability = 1.0 / (1.0 + (-total).exp());
        let doubt = probability * (1.0 - probability);
        for (index, x) in row.iter().enumerate() {
            slope[index] += (probability - label) * x;
            for (other, y) in row.iter().enumerate() {
                curvature[index][other] += doubt * x * y;
            }
        }
    }
    for index in 0..COUNT {
        slope[index] += PENALTY * weights[index];
        curvature[index][index] += PENALTY;
    }
    // The intercept is not penalised, so that its row needs a little to be solvable.
    curvature[COUNT][COUNT] += 1e-9;
    solve(curvature, slope)
}

/// Solves a positive definite system by elimination.
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
    fn what_separates_gets_a_weight_of_its_sign() {
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
    fn the_order_of_examples_changes_nothing_that_matters() {
        let mut examples: Vec<_> = (0..30)
            .map(|index| example(f64::from(index * 7 % 30), index % 3 == 0))
            .collect();
        let one = Logistic::fit(&examples);
        examples.reverse();
        let other = Logistic::fit(&examples);
        assert!((one.weights[0] - other.weights[0]).abs() < 1e-9);
    }
}
