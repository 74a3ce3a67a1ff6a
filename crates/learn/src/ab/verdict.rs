//! From what was measured to what can be said of it. A verdict is given only where two things agree: a
//! test whose chance of a false alarm is at most alpha, and the interval, which says how large the
//! difference is. What the data do not show is said to be not shown.

use serde::Serialize;

use super::bootstrap::{Compare, Drawn, Interval, Pair, effect, group_interval, paired_interval};
use super::exact::{mcnemar, sample_ratio, sign_flip};
use super::sequential::{Evidence, Outcomes, relative_difference};
use super::special::normal_quantile;

/// Below which probability a sample ratio is not believed to be an accident. It is strict: the check is
/// made in every experiment, and one that it stops is lost.
pub const SAMPLE_RATIO_ALARM: f64 = 0.001;

/// How likely an experiment of the length that is recommended finds the difference that was seen.
const POWER: f64 = 0.8;

/// More pairs than anybody is told to run.
const TOO_MANY: f64 = 1e6;

/// One of the two sides of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The first.
    A,
    /// The second.
    B,
}

impl Arm {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Measure {
    /// Yes or no, or amounts.
    pub outcomes: Outcomes,
    /// How arms are compared.
    pub compare: Compare,
    /// Whether more is better.
    pub more_is_better: bool,
}

impl Measure {
    /// Whether something was achieved: 1 or 0, and 1 is good.
    pub const SUCCESS: Self = Self {
        outcomes: Outcomes::Binary,
        compare: Compare::Difference,
        more_is_better: true,
    };

    /// How much something took, compared as a ratio, and less is good.
    pub const EXPENSE: Self = Self {
        outcomes: Outcomes::Amounts,
        compare: Compare::Ratio,
        more_is_better: false,
    };

    /// A share between 0 and 1, such as that of a principal's calls that succeeded, and more is good.
    pub const SHARE: Self = Self {
        outcomes: Outcomes::Amounts,
        compare: Compare::Difference,
        more_is_better: true,
    };
}

/// When it was decided how long the experiment lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stopping {
    /// Before it began.
    Planned,
    /// While it ran, by what was seen.
    Optional,
}

/// How an experiment is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// What is measured.
    pub measure: Measure,
    /// The chance of a verdict where there is no difference.
    pub alpha: f64,
    /// When its length was decided.
    pub stopping: Stopping,
    /// What the resampling follows from.
    pub seed: u64,
}

/// What can be said.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// One arm is better.
    Better {
        /// Which.
        arm: Arm,
    },
    /// The data do not show which is better, if one is.
    NoDifferenceShown {
        /// Where the difference is. Written once, with the rest of the analysis.
        #[serde(skip)]
        interval: Option<Interval>,
        /// About how many more pairs would show a difference of the size that was seen; none if there
        /// was none, or more than anybody would run.
        more_pairs: Option<u64>,
    },
    /// There are so few pairs that no outcome could have shown anything.
    NotEnoughData {
        /// About how many more pairs it takes at least.
        more_pairs: u64,
    },
    /// What was measured says nothing about the arms.
    Invalid {
        /// Why.
        because: String,
    },
}

/// What came of an experiment for one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// How many pairs, or principals of the smaller group, it rests on.
    pub pairs: u64,
    /// The mean of A; none if nothing was measured.
    pub a: Option<f64>,
    /// The mean of B.
    pub b: Option<f64>,
    /// How arms were compared.
    pub compare: Compare,
    /// What came of it; none if there was nothing to divide by.
    pub effect: Option<f64>,
    /// Where it is.
    pub interval: Option<Interval>,
    /// What the interval holds for.
    pub holds_for: Option<Drawn>,
    /// How likely so large a difference is where there is none.
    pub p_value: f64,
    /// How much evidence there is, in a form that may be looked at at any time.
    pub evidence: f64,
    /// What can be said.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Judges pairs, given in the order in which they were to be run. `runs` says how many runs of each arm
/// came to an end; half of them were meant to be of either.
#[must_use]
pub fn judge(pairs: &[Pair], runs: [u64; 2], question: &Question) -> Analysis {
    let measure = question.measure;
    let differences: Vec<f64> = pairs
        .iter()
        .map(|pair| relative_difference(pair.a, pair.b))
        .collect();
    let mut evidence = Evidence::new(measure.outcomes);
    for pair in pairs {
        evidence.add(pair.a, pair.b);
    }
    let found = paired_interval(pairs, measure.compare, 1.0 - question.alpha, question.seed);
    let p_value = match (question.stopping, measure.outcomes) {
        (Stopping::Optional, _) => evidence.p_value(),
        (Stopping::Planned, Outcomes::Binary) => {
            let count = |wanted: fn(&f64) -> bool| differences.iter().filter(|d| wanted(d)).count();
            let (for_a, for_b) = (count(|d| *d < 0.0), count(|d| *d > 0.0));
            mcnemar(for_a as u64, for_b as u64)
        }
        (Stopping::Planned, Outcomes::Amounts) => sign_flip(&differences, question.seed),
    };
    let seen = Seen {
        means: [
            mean(pairs.iter().map(|pair| pair.a)),
            mean(pairs.iter().map(|pair| pair.b)),
        ],
        effect: effect(pairs, measure.compare),
        interval: found.map(|(interval, _)| widened(interval, &differences, measure)),
        holds_for: found.map(|(_, drawn)| drawn),
        differences,
        p_value,
        evidence: evidence.most(),
    };
    seen.analysis(sample_ratio(&runs, &[1.0, 1.0]), question)
}

/// Judges two groups of principals, each given by the mean of what was measured of them, in the order in
/// which they came. The first of one group is held against the first of the other, and so on: who comes
/// when has nothing to do with the group, so the evidence may be looked at again and again. `counts` and
/// `weights` say how many came to each group of the experiment and how many were meant to.
#[must_use]
pub fn judge_groups(
    a: &[f64],
    b: &[f64],
    (counts, weights): (&[u64], &[f64]),
    question: &Question,
) -> Analysis {
    let measure = question.measure;
    let mut evidence = Evidence::new(measure.outcomes);
    let mut differences = Vec::new();
    for (a, b) in a.iter().zip(b) {
        evidence.add(*a, *b);
        differences.push(relative_difference(*a, *b));
    }
    let means = [mean(a.iter().copied()), mean(b.iter().copied())];
    let level = 1.0 - question.alpha;
    let interval = group_interval(a, b, measure.compare, level, question.seed);
    let seen = Seen {
        means,
        effect: match (means, measure.compare) {
            ([Some(a), Some(b)], Compare::Difference) => Some(b - a),
            ([Some(a), Some(b)], Compare::Ratio) => (a > 0.0).then(|| b / a - 1.0),
            _ => None,
        },
        interval: interval.map(|interval| widened(interval, &differences, measure)),
        holds_for: interval.map(|_| Drawn::Principals),
        differences,
        p_value: evidence.p_value(),
        evidence: evidence.most(),
    };
    let question = Question {
        stopping: Stopping::Optional,
        ..*question
    };
    seen.analysis(sample_ratio(counts, weights), &question)
}

struct Seen {
    means: [Option<f64>; 2],
    effect: Option<f64>,
    interval: Option<Interval>,
    holds_for: Option<Drawn>,
    differences: Vec<f64>,
    p_value: f64,
    evidence: f64,
}

impl Seen {
    fn analysis(self, ratio: f64, question: &Question) -> Analysis {
        let verdict = self.verdict(ratio, question);
        Analysis {
            pairs: self.differences.len() as u64,
            a: self.means[0],
            b: self.means[1],
            compare: question.measure.compare,
            effect: self.effect,
            interval: self.interval,
            holds_for: self.holds_for,
            p_value: self.p_value,
            evidence: self.evidence,
            verdict,
        }
    }

    fn verdict(&self, ratio: f64, question: &Question) -> Verdict {
        if ratio < SAMPLE_RATIO_ALARM {
            return Verdict::Invalid {
                because: format!(
                    "what came to an end is split otherwise than was meant (p = {ratio:.1e}), so what is \
                     missing on one side may be the reason for any difference"
                ),
            };
        }
        let least = least_pairs(question.alpha);
        let count = self.differences.len() as u64;
        let wanted = pairs_for(&self.differences, question);
        if count < least {
            let wanted = wanted.unwrap_or(least).max(least);
            return Verdict::NotEnoughData {
                more_pairs: wanted - count,
            };
        }
        let sum: f64 = self.differences.iter().sum();
        let effect = self.effect.unwrap_or(sum);
        // The test goes by pairs and the effect by sums: where they point to different arms, neither is
        // better.
        let agree = sum * effect > 0.0;
        let is_outside = question.stopping == Stopping::Optional
            || self.interval.is_some_and(|interval| !interval.holds(0.0));
        if self.p_value <= question.alpha && agree && is_outside {
            let b_is_better = (effect > 0.0) == question.measure.more_is_better;
            return Verdict::Better {
                arm: if b_is_better { Arm::B } else { Arm::A },
            };
        }
        Verdict::NoDifferenceShown {
            interval: self.interval,
            more_pairs: wanted.map(|wanted| wanted.saturating_sub(count).max(1)),
        }
    }
}

/// Where no pair differs there is nothing to resample, and yet not everything is known: of `n` that agree,
/// up to 3 / n of all may differ.
fn widened(mut interval: Interval, differences: &[f64], measure: Measure) -> Interval {
    let first = differences.first().copied().unwrap_or(0.0);
    let is_same = differences.iter().all(|d| (d - first).abs() < 1e-12);
    if measure.outcomes == Outcomes::Binary && is_same && !differences.is_empty() {
        let unseen = (-(1.0 - interval.level).ln() / differences.len() as f64).min(2.0);
        interval.low = (interval.low - unseen).max(-1.0);
        interval.high = (interval.high + unseen).min(1.0);
    }
    interval
}

/// The fewest pairs with which even the clearest outcome has a p value of at most alpha.
fn least_pairs(alpha: f64) -> u64 {
    (1.0 - alpha.log2()).ceil().max(2.0) as u64
}

/// About how many pairs it takes to show a difference like the one that was seen; none if there is none,
/// or it takes too many.
fn pairs_for(differences: &[f64], question: &Question) -> Option<u64> {
    let count = differences.len() as f64;
    let mean = mean(differences.iter().copied())?;
    let squares = differences.iter().map(|d| d * d).sum::<f64>() / count;
    let pairs = match question.stopping {
        Stopping::Planned => {
            let variance = (squares - mean * mean).max(0.0) * count / (count - 1.0).max(1.0);
            let sure = normal_quantile(1.0 - question.alpha / 2.0) + normal_quantile(POWER);
            sure * sure * variance / (mean * mean)
        }
        // The logarithm of the evidence grows by half of the square of the mean by the mean square with
        // every pair; the mixture of bets costs about a factor of twenty.
        Stopping::Optional => 2.0 * ((1.0 / question.alpha).ln() + 3.0) * squares / (mean * mean),
    };
    (pairs.is_finite() && pairs < TOO_MANY)
        .then(|| (pairs.ceil() as u64).max(least_pairs(question.alpha)))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum) = (0_u64, 0.0);
    for value in values {
        count += 1;
        sum += value;
    }
    (count > 0).then(|| sum / count as f64)
}
