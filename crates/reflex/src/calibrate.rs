//! Confidence that means what it says. The weights were fitted on labelled calls so that of those
//! stated at 0.8 about 80 % are right; the evaluation prints how well that holds.

use crate::choose::Decision;
use crate::fill::Filling;

/// How likely all arguments are right.
pub(crate) fn arguments(filling: &Filling) -> f64 {
    if !filling.missing.is_empty() {
        return 0.05;
    }
    let features = features(filling);
    let total: f64 = INTERCEPT + WEIGHTS.iter().zip(features).map(|(weight, feature)| weight * feature).sum::<f64>();
    (1.0 / (1.0 + (-total).exp())).clamp(0.03, 0.97)
}

/// How likely the tool is the right one.
pub(crate) fn tool(decision: &Decision) -> f64 {
    let likeness = f64::from(decision.ranked.likeness);
    let named = f64::from(decision.ranked.named);
    (0.8 + 0.25 * likeness + 0.1 * named).clamp(0.3, 0.995)
}

const INTERCEPT: f64 = -1.0;
const WEIGHTS: [f64; 5] = [1.5, 1.0, 0.0, 0.0, 0.0];

/// The weakest score, the least lead, the mean score, and how many arguments there are.
pub(crate) fn features(filling: &Filling) -> [f64; 5] {
    let count = filling.scores.len() as f64;
    let least = |list: &[f32]| f64::from(list.iter().copied().fold(1.5, f32::min));
    let mean = filling.scores.iter().map(|score| f64::from(score.min(2.0))).sum::<f64>() / count.max(1.0);
    let weak = filling.scores.iter().filter(|score| **score < 0.7).count() as f64;
    [least(&filling.scores), least(&filling.margins), mean, weak, count]
}
