//! Intervals by resampling: how far the difference between arms would move if the experiment were done
//! again. They are bias-corrected and accelerated (BCa), because counts of turns and times are skewed and
//! plain percentiles would sit too far to one side.
//!
//! What is drawn anew is what was drawn in the first place. Runs of one task are more alike than runs of
//! two, so whole tasks are drawn where there are enough of them, and the interval holds for tasks like
//! these. A few tasks that are repeated often are taken as they are and their runs are drawn, and the
//! interval holds for these tasks only.

use serde::Serialize;

use super::random::Random;
use super::special::{normal_below, normal_quantile};

/// How often is drawn.
pub const RESAMPLES: usize = 2_000;

/// From how many tasks on they stand for others like them.
const ENOUGH_TASKS: usize = 10;

/// From how many runs of each task on those stand for others.
const ENOUGH_REPETITIONS: usize = 5;

/// What two runs of the same task gave, one in each arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Which task, as a number that pairs of the same task share.
    pub task: usize,
    /// What was measured with A.
    pub a: f64,
    /// What was measured with B.
    pub b: f64,
}

/// An interval that holds the true value in a stated share of experiments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The share, such as 0.95.
    pub level: f64,
}

impl Interval {
    /// Whether a value is in it.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// How arms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// The mean of B less the mean of A.
    Difference,
    /// The sum of B by the sum of A, less 1: -0.2 is a fifth less.
    Ratio,
}

/// What was drawn anew to find an interval, and so what it holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drawn {
    /// Tasks: it holds for tasks like these.
    Tasks,
    /// Runs of each task: it holds for these tasks.
    Runs,
    /// Principals of each group: it holds for principals like these.
    Principals,
}

/// The sums of what is drawn together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    a: f64,
    b: f64,
    of_a: f64,
    of_b: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.a += other.a;
        self.b += other.b;
        self.of_a += other.of_a;
        self.of_b += other.of_b;
    }

    fn without(mut self, other: &Self) -> Self {
        self.a -= other.a;
        self.b -= other.b;
        self.of_a -= other.of_a;
        self.of_b -= other.of_b;
        self
    }

    fn compared(&self, how: Compare) -> Option<f64> {
        let mean = |sum: f64, count: f64| (count > 0.5).then(|| sum / count);
        let (a, b) = (mean(self.a, self.of_a)?, mean(self.b, self.of_b)?);
        match how {
            Compare::Difference => Some(b - a),
            // What is left of a sum of which everything was taken away is not quite nothing.
            Compare::Ratio if a > 1e-12 * b.abs() => Some(b / a - 1.0),
            Compare::Ratio => (b.abs() <= f64::EPSILON).then_some(0.0),
        }
    }
}

/// Units from which as many are drawn as there are.
type Stratum = Vec<Sums>;

/// What a comparison of pairs gives.
#[must_use]
pub(super) fn effect(pairs: &[Pair], how: Compare) -> Option<f64> {
    let mut all = Sums::default();
    for pair in pairs {
        all.add(&of_pair(pair));
    }
    all.compared(how)
}

/// The interval of a comparison of pairs; none if there are fewer than two to draw from, or nothing to
/// divide by.
#[must_use]
pub fn paired_interval(
    pairs: &[Pair],
    how: Compare,
    level: f64,
    seed: u64,
) -> Option<(Interval, Drawn)> {
    let (strata, drawn) = strata(pairs);
    Some((interval(&strata, how, level, seed)?, drawn))
}

/// The interval of a comparison of two groups that have nothing to do with each other.
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
        of_a: 1.0,
        ..Sums::default()
    };
    let of_b = |value: &f64| Sums {
        b: *value,
        of_b: 1.0,
        ..Sums::default()
    };
    let strata = [
        a.iter().map(of_a).collect::<Stratum>(),
        b.iter().map(of_b).collect::<Stratum>(),
    ];
    interval(&strata, how, level, seed)
}

fn of_pair(pair: &Pair) -> Sums {
    Sums {
        a: pair.a,
        b: pair.b,
        of_a: 1.0,
        of_b: 1.0,
    }
}

fn strata(pairs: &[Pair]) -> (Vec<Stratum>, Drawn) {
    let mut tasks: Vec<Stratum> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for pair in pairs {
        let place = *places.entry(pair.task).or_insert_with(|| {
            tasks.push(Stratum::new());
            tasks.len() - 1
        });
        if let Some(task) = tasks.get_mut(place) {
            task.push(of_pair(pair));
        }
    }
    let is_repeated = tasks.iter().all(|task| task.len() >= ENOUGH_REPETITIONS);
    if tasks.len() < ENOUGH_TASKS && is_repeated {
        return (tasks, Drawn::Runs);
    }
    let whole = |task: &Stratum| {
        let mut all = Sums::default();
        task.iter().for_each(|pair| all.add(pair));
        all
    };
    (vec![tasks.iter().map(whole).collect()], Drawn::Tasks)
}

fn interval(strata: &[Stratum], how: Compare, level: f64, seed: u64) -> Option<Interval> {
    let units: usize = strata.iter().map(Vec::len).sum();
    if units < 2 {
        return None;
    }
    let mut all = Sums::default();
    strata.iter().flatten().for_each(|unit| all.add(unit));
    let seen = all.compared(how)?;
    let mut random = Random::new(seed);
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut sums = Sums::default();
            for stratum in strata {
                for _ in 0..stratum.len() {
                    if let Some(unit) = stratum.get(random.below(stratum.len())) {
                        sums.add(unit);
                    }
                }
            }
            sums.compared(how)
        })
        .collect();
    // Where dividing often fails, what is left is a choice.
    if drawn.len() < RESAMPLES * 9 / 10 {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    let (shift, acceleration) = (shift(&drawn, seen), acceleration(strata, &all, how));
    let at = |probability: f64| {
        let quantile = normal_quantile(probability);
        let moved = shift + quantile;
        let corrected = normal_below(shift + moved / (1.0 - acceleration * moved));
        let last = drawn.len() - 1;
        let index = (corrected * drawn.len() as f64).floor() as usize;
        drawn.get(index.min(last)).copied()
    };
    let tail = (1.0 - level) / 2.0;
    Some(Interval {
        low: at(tail)?.min(seen),
        high: at(1.0 - tail)?.max(seen),
        level,
    })
}

/// By how much what was drawn lies to one side of what was seen, in standard deviations.
fn shift(drawn: &[f64], seen: f64) -> f64 {
    let close = 1e-12 * seen.abs().max(1.0);
    let below = drawn.iter().filter(|value| **value < seen - close).count();
    let equal = drawn.iter().filter(|value| (**value - seen).abs() <= close);
    // Of what is equal, half counts: yes and no give many ties.
    let below = below as f64 + equal.count() as f64 / 2.0;
    normal_quantile((below / drawn.len() as f64).clamp(0.01, 0.99))
}

/// How the spread changes with the value, by leaving out one unit after the other.
fn acceleration(strata: &[Stratum], all: &Sums, how: Compare) -> f64 {
    let left_out: Vec<f64> = strata
        .iter()
        .filter(|stratum| stratum.len() > 1)
        .flatten()
        .filter_map(|unit| all.without(unit).compared(how))
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
