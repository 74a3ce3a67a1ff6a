//! Turns measurements into a verdict. An arm is called better only if two methods agree: a test with a false
//! positive rate of at most alpha, and the confidence interval of the effect. Otherwise the verdict is that no
//! difference is shown.

use serde::Serialize;

use super::bootstrap::{
    Compare, Interval, Pair, ResampledUnit, effect, group_interval, paired_interval,
};
use super::exact::{mcnemar, sample_ratio, sign_flip};
use super::sequential::{EProcess, Outcomes, relative_difference};
use super::special::normal_quantile;

/// A sample ratio with a lower p-value makes an experiment invalid. It is strict, because every experiment is
/// checked and an invalid one is lost.
pub const SAMPLE_RATIO_ALARM: f64 = 0.001;

/// The power of an experiment of the recommended length, for the observed difference.
const POWER: f64 = 0.8;

/// A larger number of pairs is not recommended.
const MAX_RECOMMENDED_PAIRS: f64 = 1e6;

windlass_spec::word_set! {
    /// One of the two sides of an experiment.
    Arm, "arm" {
        /// The first.
        A = "a",
        /// The second.
        B = "b",
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Measure {
    /// Binary outcomes or amounts.
    pub outcomes: Outcomes,
    /// How arms are compared.
    pub compare: Compare,
    /// Whether more is better.
    pub more_is_better: bool,
}

impl Measure {
    /// Success, 1 or 0; more is better.
    pub const SUCCESS: Self = Self {
        outcomes: Outcomes::Binary,
        compare: Compare::Difference,
        more_is_better: true,
    };

    /// A cost such as time or tokens, compared as a ratio; less is better.
    pub const EXPENSE: Self = Self {
        outcomes: Outcomes::Amounts,
        compare: Compare::Ratio,
        more_is_better: false,
    };

    /// A share between 0 and 1, such as the success rate of a principal's calls; more is better.
    pub const SHARE: Self = Self {
        outcomes: Outcomes::Amounts,
        compare: Compare::Difference,
        more_is_better: true,
    };
}

/// When the length of the experiment is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stopping {
    /// Before it begins.
    Planned,
    /// While it runs, from its data.
    Optional,
}

/// The settings of an analysis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnalysisSettings {
    /// What is measured.
    pub measure: Measure,
    /// The false positive rate.
    pub alpha: f64,
    /// When its length is decided.
    pub stopping: Stopping,
    /// The seed of the resampling.
    pub seed: u64,
}

/// The verdict on an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum ExperimentVerdict {
    /// One arm is better.
    Better {
        /// The better arm.
        arm: Arm,
    },
    /// The data do not show that one arm is better.
    NoDifferenceShown {
        /// The confidence interval. Serialized with the rest of the analysis, not here.
        #[serde(skip)]
        interval: Option<Interval>,
        /// About how many more pairs would show a difference of the observed size; `None` if there is no
        /// difference, or the number is too large.
        more_pairs: Option<u64>,
    },
    /// There are too few pairs for any outcome to be significant.
    NotEnoughData {
        /// About how many more pairs are needed at least.
        more_pairs: u64,
    },
    /// The data cannot be used to compare the arms.
    Invalid {
        /// The reason.
        because: String,
    },
}

/// The result of an experiment for one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The number of pairs, or of principals in the smaller group.
    pub pairs: u64,
    /// The mean of A; `None` without measurements.
    pub a: Option<f64>,
    /// The mean of B.
    pub b: Option<f64>,
    /// How arms are compared.
    pub compare: Compare,
    /// The observed effect; `None` if the ratio divides by zero.
    pub effect: Option<f64>,
    /// The confidence interval of the effect.
    pub interval: Option<Interval>,
    /// The population that the interval holds for.
    pub holds_for: Option<ResampledUnit>,
    /// The p-value.
    pub p_value: f64,
    /// The e-value, which is valid at any time.
    pub evidence: f64,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: ExperimentVerdict,
}

/// Analyses pairs, given in the order in which they were scheduled. `runs` is the number of finished runs of each
/// arm; the intended split is even.
#[must_use]
pub fn judge(pairs: &[Pair], runs: [u64; 2], settings: &AnalysisSettings) -> Analysis {
    let measure = settings.measure;
    let differences: Vec<f64> = pairs
        .iter()
        .map(|pair| relative_difference(pair.a, pair.b))
        .collect();
    let mut evidence = EProcess::new(measure.outcomes);
    for pair in pairs {
        evidence.add(pair.a, pair.b);
    }
    let found = paired_interval(pairs, measure.compare, 1.0 - settings.alpha, settings.seed);
    let p_value = match (settings.stopping, measure.outcomes) {
        (Stopping::Optional, _) => evidence.p_value(),
        (Stopping::Planned, Outcomes::Binary) => {
            let count = |wanted: fn(&f64) -> bool| differences.iter().filter(|d| wanted(d)).count();
            let (for_a, for_b) = (count(|d| *d < 0.0), count(|d| *d > 0.0));
            mcnemar(for_a as u64, for_b as u64)
        }
        (Stopping::Planned, Outcomes::Amounts) => sign_flip(&differences, settings.seed),
    };
    let observed = Observed {
        means: [
            mean(pairs.iter().map(|pair| pair.a)),
            mean(pairs.iter().map(|pair| pair.b)),
        ],
        effect: effect(pairs, measure.compare),
        interval: found.map(|(interval, _)| widen_if_constant(interval, &differences, measure)),
        holds_for: found.map(|(_, drawn)| drawn),
        differences,
        p_value,
        evidence: evidence.max(),
    };
    observed.analysis(sample_ratio(&runs, &[1.0, 1.0]), settings)
}

/// Analyses two groups of principals, each given by the mean of its measurements, in the order in which the
/// principals arrived. The first of one group is paired with the first of the other, and so on. The order of
/// arrival is independent of the group, so the evidence is anytime-valid. `counts` and `weights` are the actual
/// and the intended sizes of all groups of the experiment.
#[must_use]
pub fn judge_groups(
    a: &[f64],
    b: &[f64],
    (counts, weights): (&[u64], &[f64]),
    settings: &AnalysisSettings,
) -> Analysis {
    let measure = settings.measure;
    let mut evidence = EProcess::new(measure.outcomes);
    let mut differences = Vec::new();
    for (a, b) in a.iter().zip(b) {
        evidence.add(*a, *b);
        differences.push(relative_difference(*a, *b));
    }
    let means = [mean(a.iter().copied()), mean(b.iter().copied())];
    let level = 1.0 - settings.alpha;
    let interval = group_interval(a, b, measure.compare, level, settings.seed);
    let observed = Observed {
        means,
        effect: match (means, measure.compare) {
            ([Some(a), Some(b)], Compare::Difference) => Some(b - a),
            ([Some(a), Some(b)], Compare::Ratio) => (a > 0.0).then(|| b / a - 1.0),
            _ => None,
        },
        interval: interval.map(|interval| widen_if_constant(interval, &differences, measure)),
        holds_for: interval.map(|_| ResampledUnit::Principals),
        differences,
        p_value: evidence.p_value(),
        evidence: evidence.max(),
    };
    let settings = AnalysisSettings {
        stopping: Stopping::Optional,
        ..*settings
    };
    observed.analysis(sample_ratio(counts, weights), &settings)
}

struct Observed {
    means: [Option<f64>; 2],
    effect: Option<f64>,
    interval: Option<Interval>,
    holds_for: Option<ResampledUnit>,
    differences: Vec<f64>,
    p_value: f64,
    evidence: f64,
}

impl Observed {
    fn analysis(self, ratio: f64, settings: &AnalysisSettings) -> Analysis {
        let verdict = self.verdict(ratio, settings);
        Analysis {
            pairs: self.differences.len() as u64,
            a: self.means[0],
            b: self.means[1],
            compare: settings.measure.compare,
            effect: self.effect,
            interval: self.interval,
            holds_for: self.holds_for,
            p_value: self.p_value,
            evidence: self.evidence,
            verdict,
        }
    }

    fn verdict(&self, ratio: f64, settings: &AnalysisSettings) -> ExperimentVerdict {
        if ratio < SAMPLE_RATIO_ALARM {
            return ExperimentVerdict::Invalid {
                because: format!(
                    "the sample is not split as intended (p = {ratio:.1e}), so what is missing on one side may \
                    explain any difference"
                ),
            };
        }
        let least = least_pairs(settings.alpha);
        let count = self.differences.len() as u64;
        let wanted = pairs_for(&self.differences, settings);
        if count < least {
            let wanted = wanted.unwrap_or(least).max(least);
            return ExperimentVerdict::NotEnoughData {
                more_pairs: wanted - count,
            };
        }
        let sum: f64 = self.differences.iter().sum();
        let effect = self.effect.unwrap_or(sum);
        // The test uses pairs and the effect uses sums. If they point to different arms, neither is
        // better.
        let agree = sum * effect > 0.0;
        let is_outside = settings.stopping == Stopping::Optional
            || self
                .interval
                .is_some_and(|interval| !interval.contains(0.0));
        if self.p_value <= settings.alpha && agree && is_outside {
            let b_is_better = (effect > 0.0) == settings.measure.more_is_better;
            return ExperimentVerdict::Better {
                arm: if b_is_better { Arm::B } else { Arm::A },
            };
        }
        ExperimentVerdict::NoDifferenceShown {
            interval: self.interval,
            more_pairs: wanted.map(|wanted| wanted.saturating_sub(count).max(1)),
        }
    }
}

/// Widens the interval of binary outcomes if all pairs have the same difference. Resampling then gives no spread, but
/// after `n` equal pairs up to 3 / n of all may differ (rule of three).
fn widen_if_constant(mut interval: Interval, differences: &[f64], measure: Measure) -> Interval {
    let first = differences.first().copied().unwrap_or(0.0);
    let is_same = differences.iter().all(|d| (d - first).abs() < 1e-12);
    if measure.outcomes == Outcomes::Binary && is_same && !differences.is_empty() {
        let unseen = (-(1.0 - interval.level).ln() / differences.len() as f64).min(2.0);
        interval.low = (interval.low - unseen).max(-1.0);
        interval.high = (interval.high + unseen).min(1.0);
    }
    interval
}

/// The fewest pairs with which the clearest outcome has a p-value of at most alpha.
fn least_pairs(alpha: f64) -> u64 {
    (1.0 - alpha.log2()).ceil().max(2.0) as u64
}

/// About how many pairs are needed to show the observed difference; `None` if there is no difference, or the
/// number is too large.
fn pairs_for(differences: &[f64], settings: &AnalysisSettings) -> Option<u64> {
    let count = differences.len() as f64;
    let mean = mean(differences.iter().copied())?;
    let squares = differences.iter().map(|d| d * d).sum::<f64>() / count;
    let pairs = match settings.stopping {
        Stopping::Planned => {
            let variance = (squares - mean * mean).max(0.0) * count / (count - 1.0).max(1.0);
            let sure = normal_quantile(1.0 - settings.alpha / 2.0) + normal_quantile(POWER);
            sure * sure * variance / (mean * mean)
        }
        // The logarithm of the e-value grows by mean² / (2 · mean square) with every pair. The mixture
        // costs about a factor of twenty.
        Stopping::Optional => 2.0 * ((1.0 / settings.alpha).ln() + 3.0) * squares / (mean * mean),
    };
    (pairs.is_finite() && pairs < MAX_RECOMMENDED_PAIRS)
        .then(|| (pairs.ceil() as u64).max(least_pairs(settings.alpha)))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum) = (0_u64, 0.0);
    for value in values {
        count += 1;
        sum += value;
    }
    (count > 0).then(|| sum / count as f64)
}
