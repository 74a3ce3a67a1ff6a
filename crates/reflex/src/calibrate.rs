//! Calibrated confidence. The weights were fitted on labelled calls, so that about 80 % of the calls with a
//! confidence of 0.8 are correct. The evaluation prints the calibration error.

use crate::choose::Decision;
use crate::fill::Filling;

/// The probability that all arguments are correct.
pub(crate) fn arguments(filling: &Filling) -> f64 {
    if !filling.missing.is_empty() {
        return 0.05;
    }
    let features = features(filling);
    let total: f64 = INTERCEPT
        + WEIGHTS
            .iter()
            .zip(features)
            .map(|(weight, feature)| weight * feature)
            .sum::<f64>();
    (1.0 / (1.0 + (-total).exp())).clamp(0.03, 0.97)
}

/// The probability that the tool is correct.
pub(crate) fn tool(decision: &Decision) -> f64 {
    let near = f64::from(decision.ranked.similarity + 0.3 * decision.ranked.named);
    let lead = f64::from(decision.lead).clamp(0.0, 0.15) / 0.15;
    ((0.7 + 0.5 * near) * (0.9 + 0.1 * lead)).clamp(0.3, 0.99)
}

const INTERCEPT: f64 = 0.29;
const WEIGHTS: [f64; 5] = [1.09, 0.47, -1.25, -0.41, -0.05];

/// The lowest score, the smallest margin, the unused values, the weak arguments, and all arguments.
pub(crate) fn features(filling: &Filling) -> [f64; 5] {
    let count = filling.scores.len() as f64;
    let least = |list: &[f32]| f64::from(list.iter().copied().fold(1.5, f32::min));
    let weak = filling.scores.iter().filter(|score| **score < 0.7).count() as f64;
    [
        least(&filling.scores),
        least(&filling.margins).min(1.0),
        filling.unused.min(4) as f64,
        weak,
        count,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filling(scores: &[f32], unused: usize) -> Filling {
        Filling {
            scores: scores.to_vec(),
            margins: scores.iter().map(|score| score / 2.0).collect(),
            unused,
            ..Filling::default()
        }
    }

    #[test]
    fn weaker_evidence_lowers_the_confidence() {
        let strong = arguments(&filling(&[1.4, 1.2], 0));
        assert!(strong > arguments(&filling(&[1.4, 0.4], 0)));
        assert!(strong > arguments(&filling(&[1.4, 1.2], 1)));
        let missing = Filling {
            missing: vec!["city".to_owned()],
            ..filling(&[1.4], 0)
        };
        assert!(arguments(&missing) < 0.1);
    }
}
