//! From what speaks for and against single tools to the probability that none of them does. The best
//! tool decides: the task is as likely a gap as it is one for the tool that fits it best.

use super::features::{Features, NAMES};
use super::logistic::Logistic;
use super::shipped;

/// How often the best tools are chosen anew while fitting. Which tool is the best depends on the weights,
/// and the weights on which tools are held against their tasks; two rounds settle it.
const ROUNDS: usize = 3;

/// Weights, and the probability from which on there is said to be a gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibration {
    pub(super) logistic: Logistic,
    pub(super) threshold: f64,
}

impl Calibration {
    /// The one that ships.
    pub(super) const SHIPPED: Self = Self {
        logistic: Logistic {
            intercept: shipped::INTERCEPT,
            weights: shipped::WEIGHTS,
        },
        threshold: shipped::THRESHOLD,
    };

    /// The one that fits the examples best: the numbers of each tool at hand, and whether there is a gap.
    pub(super) fn fit(examples: &[(&[Features], bool)]) -> Self {
        let mut best: Vec<(Features, bool)> = examples
            .iter()
            .filter_map(|(tools, gap)| Some((*nearest(tools, plain)?, *gap)))
            .collect();
        let mut logistic = Logistic::fit(&best);
        for _ in 1..ROUNDS {
            let fit = |features: &Features| -logistic.probability(features);
            best = examples
                .iter()
                .filter_map(|(tools, gap)| Some((*nearest(tools, fit)?, *gap)))
                .collect();
            logistic = Logistic::fit(&best);
        }
        let mut fitted = Self {
            logistic,
            threshold: 0.5,
        };
        let judged = examples
            .iter()
            .map(|(tools, gap)| (fitted.probability(tools), *gap));
        fitted.threshold = threshold(judged.collect());
        fitted
    }

    /// How likely none of these tools does what is asked; without tools it is certain.
    pub(super) fn probability(&self, tools: &[Features]) -> f64 {
        let tools = tools.iter().map(|tool| self.logistic.probability(tool));
        tools.fold(1.0, f64::min)
    }

    /// The weights as the source text of `shipped.rs`.
    pub(super) fn source(&self, about: &str) -> String {
        let mut text = format!(
            "//! The calibration that ships: {about}.\n//! Made by `cargo run -p windlass-learn --example fit_gaps -- FILE...`; not to be changed by hand.\n\n\
             pub(super) const INTERCEPT: f64 = {:.4};\n\n\
             #[rustfmt::skip] // One weight a line, with what it is of.\npub(super) const WEIGHTS: [f64; {}] = [\n",
            self.logistic.intercept,
            NAMES.len()
        );
        for (weight, name) in self.logistic.weights.iter().zip(NAMES) {
            text.push_str(&format!("    {weight:.4}, // {name}\n"));
        }
        text.push_str(&format!(
            "];\n\n/// From here on there is said to be a gap.\npub(super) const THRESHOLD: f64 = {:.4};\n",
            self.threshold
        ));
        text
    }
}

/// What says best which tool is meant as long as no weights are known.
fn plain(features: &Features) -> f64 {
    features[0] + features[2] + features[5] - 0.2 * features[8]
}

fn nearest(tools: &[Features], fit: impl Fn(&Features) -> f64) -> Option<&Features> {
    tools
        .iter()
        .max_by(|one, other| fit(one).total_cmp(&fit(other)))
}

/// The probability at which gaps and others are told apart best, counted alike; of several, the middle.
fn threshold(mut judged: Vec<(f64, bool)>) -> f64 {
    judged.sort_by(|one, other| one.0.total_cmp(&other.0));
    let gaps = judged.iter().filter(|(_, gap)| *gap).count() as f64;
    let others = judged.len() as f64 - gaps;
    if gaps == 0.0 || others == 0.0 {
        return 0.5;
    }
    let (mut missed, mut passed) = (0.0, 0.0);
    let mut best: Vec<f64> = Vec::new();
    let mut most = f64::MIN;
    for (index, (probability, gap)) in judged.iter().enumerate() {
        if *gap {
            missed += 1.0;
        } else {
            passed += 1.0;
        }
        let Some((next, _)) = judged.get(index + 1) else {
            break;
        };
        if next <= probability {
            continue;
        }
        let balanced = ((gaps - missed) / gaps + passed / others) / 2.0;
        if balanced > most + 1e-12 {
            most = balanced;
            best.clear();
        }
        if (balanced - most).abs() <= 1e-12 {
            best.push(f64::midpoint(*probability, *next));
        }
    }
    best.get(best.len() / 2).copied().unwrap_or(0.5)
}
