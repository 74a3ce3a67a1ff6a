//! Confidence intervals by bootstrap. They are bias-corrected and accelerated (BCa), because counts of turns and
//! times are skewed, which biases plain percentile intervals.
//!
//! Runs of one task are correlated. If there are enough tasks, whole tasks are resampled, and the interval holds
//! for similar tasks. If there are few tasks with many runs each, the runs of each task are resampled, and the
//! interval holds for these tasks only.

use serde::Serialize;

use super::random::Random;
use super::special::{normal_below, normal_quantile};

/// The number of bootstrap resamples.
pub const RESAMPLES: usize = 2_000;

/// From this many tasks on, tasks are resampled.
const ENOUGH_TASKS: usize = 10;

/// The least number of runs of each task for resampling runs.
const ENOUGH_REPETITIONS: usize = 5;

/// The measurements of two runs of the same task, one in each arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The number of the task; pairs of the same task share it.
    pub task: usize,
    /// The value of arm A.
    pub a: f64,
    /// The value of arm B.
    pub b: f64,
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The confidence level, such as 0.95.
    pub level: f64,
}

impl Interval {
    /// Whether a value is in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// How arms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// The mean of B minus the mean of A.
    Difference,
    /// The sum of B divided by the sum of A, minus 1. -0.2 means 20 % less.
    Ratio,
}

/// The unit that was resampled for an interval, which is also the population it holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResampledUnit {
    /// Tasks: the interval holds for similar tasks.
    Tasks,
    /// Runs of each task: the interval holds for these tasks only.
    Runs,
    /// Principals of each group: the interval holds for similar principals.
    Principals,
}

/// The sums and counts of one resampling unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    a: f64,
    b: f64,
    count_a: f64,
    count_b: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.a += other.a;
        self.b += other.b;
        self.count_a += other.count_a;
        self.count_b += other.count_b;
    }

    fn without(mut self, other: &Self) -> Self {
        self.a -= other.a;
        self.b -= other.b;
        self.count_a -= other.count_a;
        self.count_b -= other.count_b;
        self
    }

    fn compare(&self, how: Compare) -> Option<f64> {
        let mean = |sum: f64, count: f64| (count > 0.5).then(|| sum / count);
        let (a, b) = (mean(self.a, self.count_a)?, mean(self.b, self.count_b)?);
        match how {
            Compare::Difference => Some(b - a),
            // After subtracting all units a sum is not exactly zero.
            Compare::Ratio if a > 1e-12 * b.abs() => Some(b / a - 1.0),
            Compare::Ratio => (b.abs() <= f64::EPSILON).then_some(0.0),
        }
    }
}

/// Units that are resampled with replacement, as many as there are.
type Stratum = Vec<Sums>;

/// The observed effect of pairs.
#[must_use]
pub(super) fn effect(pairs: &[Pair], how: Compare) -> Option<f64> {
    let mut all = Sums::default();
    for pair in pairs {
        all.add(&sums_of_pair(pair));
    }
    all.compare(how)
}

/// The interval of the effect of pairs; `None` if there are fewer than two units, or the ratio divides by
/// zero.
#[must_use]
pub fn paired_interval(
    pairs: &[Pair],
    how: Compare,
    level: f64,
    seed: u64,
) -> Option<(Interval, ResampledUnit)> {
    let (strata, resampled) = strata(pairs);
    Some((interval(&strata, how, level, seed)?, resampled))
}

/// The interval of the effect between two independent groups.
#[must_use]
pub fn group_interval(
    a: &[f64],
    b: &[f64],
    how: Compare,
    level: f64,
    seed: u64,
) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let of_a = |value: &f64| Sums {
        a: *value,
        count_a: 1.0,
        ..Sums::default()
    };
    let of_b = |value: &f64| Sums {
        b: *value,
        count_b: 1.0,
        ..Sums::default()
    };
    let strata = [
        a.iter().map(of_a).collect::<Stratum>(),
        b.iter().map(of_b).collect::<Stratum>(),
    ];
    interval(&strata, how, level, seed)
}

fn sums_of_pair(pair: &Pair) -> Sums {
    Sums {
        a: pair.a,
        b: pair.b,
        count_a: 1.0,
        count_b: 1.0,
    }
}

fn strata(pairs: &[Pair]) -> (Vec<Stratum>, ResampledUnit) {
    let mut tasks: Vec<Stratum> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for pair in pairs {
        let place = *places.entry(pair.task).or_insert_with(|| {
            tasks.push(Stratum::new());
            tasks.len() - 1
        });
        if let Some(task) = tasks.get_mut(place) {
            task.push(sums_of_pair(pair));
        }
    }
    let is_repeated = tasks.iter().all(|task| task.len() >= ENOUGH_REPETITIONS);
    if tasks.len() < ENOUGH_TASKS && is_repeated {
        return (tasks, ResampledUnit::Runs);
    }
    let whole = |task: &Stratum| {
        let mut all = Sums::default();
        task.iter().for_each(|pair| all.add(pair));
        all
    };
    (
        vec![tasks.iter().map(whole).collect()],
        ResampledUnit::Tasks,
    )
}

fn interval(strata: &[Stratum], how: Compare, level: f64, seed: u64) -> Option<Interval> {
    let units: usize = strata.iter().map(Vec::len).sum();
    if units < 2 {
        return None;
    }
    let mut all = Sums::default();
    strata.iter().flatten().for_each(|unit| all.add(unit));
    let observed = all.compare(how)?;
    let mut random = Random::new(seed);
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut sums = Sums::default();
            for stratum in strata {
                for _ in 0..stratum.len() {
                    if let Some(unit) = stratum.get(random.below(stratum.len())) {
                        sums.add(unit);
                    }
                }
            }
            sums.compare(how)
        })
        .collect();
    // If the ratio often fails, the rest is a biased selection.
    if resampled.len() < RESAMPLES * 9 / 10 {
        return None;
    }
    resampled.sort_by(f64::total_cmp);
    let (shift, acceleration) = (shift(&resampled, observed), acceleration(strata, &all, how));
    let at = |probability: f64| {
        let quantile = normal_quantile(probability);
        let moved = shift + quantile;
        let corrected = normal_below(shift + moved / (1.0 - acceleration * moved));
        let last = resampled.len() - 1;
        let index = (corrected * resampled.len() as f64).floor() as usize;
        resampled.get(index.min(last)).copied()
    };
    let tail = (1.0 - level) / 2.0;
    Some(Interval {
        low: at(tail)?.min(observed),
        high: at(1.0 - tail)?.max(observed),
        level,
    })
}

/// The bias correction: how far the resampled effects lie to one side of the observed one, in standard
/// deviations.
fn shift(resampled: &[f64], observed: f64) -> f64 {
    let close = 1e-12 * observed.abs().max(1.0);
    let below = resampled
        .iter()
        .filter(|value| **value < observed - close)
        .count();
    let equal = resampled
        .iter()
        .filter(|value| (**value - observed).abs() <= close);
    // Ties count half: binary outcomes have many.
    let below = below as f64 + equal.count() as f64 / 2.0;
    normal_quantile((below / resampled.len() as f64).clamp(0.01, 0.99))
}

/// The acceleration, by the jackknife.
fn acceleration(strata: &[Stratum], all: &Sums, how: Compare) -> f64 {
    let left_out: Vec<f64> = strata
        .iter()
        .filter(|stratum| stratum.len() > 1)
        .flatten()
        .filter_map(|unit| all.without(unit).compare(how))
        .collect();
    let mean = left_out.iter().sum::<f64>() / left_out.len().max(1) as f64;
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in &left_out {
        let difference = mean - value;
        squares += difference * difference;
        cubes += difference * difference * difference;
    }
    if squares <= f64::MIN_POSITIVE {
        return 0.0;
    }
    (cubes / (6.0 * squares.powf(1.5))).clamp(-0.25, 0.25)
}
