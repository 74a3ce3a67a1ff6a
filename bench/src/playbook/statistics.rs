//! The savings of an arm compared with the baseline. Ratios are of sums, never means of ratios. Intervals come from
//! resampling tasks with replacement, each with all its seeds, because the seeds of a task are not independent.

use crate::measure::{ArmScores, Score};
use crate::random::seeded;

/// The number of bootstrap resamples.
const RESAMPLES: usize = 4_000;

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The comparison of an arm with the baseline. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The number of tasks, all seeds together.
    pub pairs: usize,
    /// How many of them both solved.
    pub both: usize,
    /// The share the arm solved.
    pub solved: f64,
    /// The difference to the share without advice.
    pub success_difference: Estimate,
    /// Iterations per task that both solve.
    pub iterations: f64,
    /// The same without advice.
    pub iterations_without: f64,
    /// The optimum for these tasks.
    pub optimum: f64,
    /// Calls per task that both solve.
    pub calls: f64,
    /// The same without advice.
    pub calls_without: f64,
    /// The share of iterations saved on tasks that both solve.
    pub saved: Estimate,
    /// The share of iterations saved on all tasks, where a failed one counts its cap.
    pub saved_of_all: Estimate,
    /// The share of the iterations above the optimum that is saved on tasks that both solve.
    pub saved_excess: Estimate,
    /// The share of tokens saved on tasks that both solve.
    pub saved_tokens: Estimate,
    /// The share of the tasks that both solve on which it takes more iterations.
    pub worse: f64,
    /// The share of all tasks on which it takes more, where a failed one counts its cap.
    pub worse_of_all: f64,
}

/// Sums over the seeds of a task, and then over tasks.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    pairs: f64,
    solved: f64,
    solved_without: f64,
    all: f64,
    all_without: f64,
    both: f64,
    iterations: f64,
    iterations_without: f64,
    optimum: f64,
    calls: f64,
    calls_without: f64,
    tokens: f64,
    tokens_without: f64,
    worse: f64,
    worse_of_all: f64,
}

impl Sums {
    fn add(&mut self, arm: Score, without: Score) {
        let counted = |score: Score| {
            f64::from(if score.is_success {
                score.iterations
            } else {
                score.cap
            })
        };
        self.pairs += 1.0;
        self.solved += f64::from(u8::from(arm.is_success));
        self.solved_without += f64::from(u8::from(without.is_success));
        self.all += counted(arm);
        self.all_without += counted(without);
        self.worse_of_all += f64::from(u8::from(counted(arm) > counted(without)));
        if arm.is_success && without.is_success {
            self.both += 1.0;
            self.iterations += f64::from(arm.iterations);
            self.iterations_without += f64::from(without.iterations);
            self.optimum += f64::from(arm.optimum);
            self.calls += f64::from(arm.calls);
            self.calls_without += f64::from(without.calls);
            self.tokens += arm.tokens as f64;
            self.tokens_without += without.tokens as f64;
            self.worse += f64::from(u8::from(arm.iterations > without.iterations));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.solved += other.solved;
        self.solved_without += other.solved_without;
        self.all += other.all;
        self.all_without += other.all_without;
        self.both += other.both;
        self.iterations += other.iterations;
        self.iterations_without += other.iterations_without;
        self.optimum += other.optimum;
        self.calls += other.calls;
        self.calls_without += other.calls_without;
        self.tokens += other.tokens;
        self.tokens_without += other.tokens_without;
        self.worse += other.worse;
        self.worse_of_all += other.worse_of_all;
    }

    fn success_difference(&self) -> f64 {
        share(self.solved - self.solved_without, self.pairs)
    }

    fn saved(&self) -> f64 {
        saved(self.iterations, self.iterations_without)
    }

    fn saved_of_all(&self) -> f64 {
        saved(self.all, self.all_without)
    }

    fn saved_excess(&self) -> f64 {
        saved(
            self.iterations - self.optimum,
            self.iterations_without - self.optimum,
        )
    }

    fn saved_tokens(&self) -> f64 {
        saved(self.tokens, self.tokens_without)
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn saved(with: f64, without: f64) -> f64 {
    share(without - with, without)
}

/// Compares an arm with the baseline, on the same tasks and seeds.
pub fn summary(arm: &ArmScores, without: &ArmScores) -> Summary {
    let tasks = arm.scores.first().map_or(0, Vec::len);
    let mut clusters = vec![Sums::default(); tasks];
    for (with, without) in arm.scores.iter().zip(&without.scores) {
        for (task, pair) in with.iter().zip(without).enumerate() {
            if let (Some(with), Some(without)) = pair {
                clusters[task].add(*with, *without);
            }
        }
    }
    clusters.retain(|sums| sums.pairs > 0.0);
    let mut total = Sums::default();
    clusters.iter().for_each(|sums| total.merge(sums));
    let draws = resample(&clusters);
    let estimate = |figure: fn(&Sums) -> f64| {
        let mut found: Vec<f64> = draws.iter().map(figure).collect();
        found.sort_by(f64::total_cmp);
        let at = |share: f64| found.get((share * found.len() as f64) as usize).copied();
        let value = figure(&total);
        Estimate {
            value,
            low: at(0.025).unwrap_or(value),
            high: at(0.975).unwrap_or(value),
        }
    };
    Summary {
        pairs: total.pairs as usize,
        both: total.both as usize,
        solved: share(total.solved, total.pairs),
        success_difference: estimate(Sums::success_difference),
        iterations: share(total.iterations, total.both),
        iterations_without: share(total.iterations_without, total.both),
        optimum: share(total.optimum, total.both),
        calls: share(total.calls, total.both),
        calls_without: share(total.calls_without, total.both),
        saved: estimate(Sums::saved),
        saved_of_all: estimate(Sums::saved_of_all),
        saved_excess: estimate(Sums::saved_excess),
        saved_tokens: estimate(Sums::saved_tokens),
        worse: share(total.worse, total.both),
        worse_of_all: share(total.worse_of_all, total.pairs),
    }
}

/// The sums of tasks resampled with replacement, many times.
fn resample(clusters: &[Sums]) -> Vec<Sums> {
    let mut random = seeded(0, "bootstrap");
    let draw = |_| {
        let mut sums = Sums::default();
        for _ in clusters {
            sums.merge(&clusters[random.below(clusters.len())]);
        }
        sums
    };
    (0..RESAMPLES).map(draw).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn score(iterations: u32, is_success: bool) -> Score {
        Score {
            iterations,
            calls: iterations,
            tokens: 10 * u64::from(iterations),
            optimum: 2,
            cap: 40,
            is_success,
        }
    }

    fn measured(scores: Vec<Vec<Score>>) -> ArmScores {
        let some = |scores: Vec<Score>| scores.into_iter().map(Some).collect();
        ArmScores {
            arm: "an arm".to_owned(),
            scores: scores.into_iter().map(some).collect(),
            seconds: 0.0,
            false_strategies: None,
        }
    }

    #[test]
    fn savings_are_a_ratio_of_sums_on_tasks_that_both_solve() {
        let without = measured(vec![vec![
            score(10, true),
            score(30, true),
            score(20, false),
        ]]);
        let arm = measured(vec![vec![score(12, true), score(8, true), score(5, true)]]);
        let found = summary(&arm, &without);
        assert_eq!((found.pairs, found.both), (3, 2));
        assert!((found.saved.value - 0.5).abs() < 1e-9);
        assert!((found.saved_excess.value - 20.0 / 36.0).abs() < 1e-9);
        assert!((found.saved_of_all.value - (1.0 - 25.0 / 80.0)).abs() < 1e-9);
        assert!((found.worse - 0.5).abs() < 1e-9);
        assert!((found.worse_of_all - 1.0 / 3.0).abs() < 1e-9);
        assert!((found.success_difference.value - 1.0 / 3.0).abs() < 1e-9);
        assert!((found.iterations_without - 20.0).abs() < 1e-9);
    }

    #[test]
    fn interval_contains_the_estimate_and_is_wider_if_tasks_differ() {
        let without = measured(vec![vec![score(20, true); 50]]);
        let mixed = (0..50).map(|task| score(if task < 25 { 5 } else { 20 }, true));
        let mixed = summary(&measured(vec![mixed.collect()]), &without).saved;
        let equal = summary(&measured(vec![vec![score(10, true); 50]]), &without).saved;
        assert!(
            mixed.low < mixed.value && mixed.value < mixed.high,
            "{mixed:?}"
        );
        assert_eq!((equal.low, equal.high), (0.5, 0.5));
    }

    #[test]
    fn more_seeds_of_the_same_tasks_do_not_narrow_the_interval() {
        let scores = |task: usize| score(if task < 13 { 4 } else { 18 }, true);
        let seeds = |count| {
            let arm = vec![(0..40).map(scores).collect::<Vec<_>>(); count];
            let without = vec![vec![score(20, true); 40]; count];
            summary(&measured(arm), &measured(without)).saved
        };
        assert_eq!(seeds(1), seeds(5));
    }

    #[test]
    fn tasks_that_only_one_arm_has_are_left_out() {
        let without = measured(vec![vec![score(10, true), score(10, true)]]);
        let mut arm = measured(vec![vec![score(5, true), score(10, true)]]);
        arm.scores[0][1] = None;
        let found = summary(&arm, &without);
        assert_eq!(found.pairs, 1);
        assert!((found.saved.value - 0.5).abs() < 1e-9);
    }
}
