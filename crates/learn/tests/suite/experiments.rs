//! Analyses of simulated experiments whose true effect is known.

use proptest::prelude::*;
use windlass_learn::ab::{
    AnalysisSettings, Arm, Compare, EProcess, ExperimentVerdict, GuardStatus, Measure, Outcomes,
    Pair, Random, Stopping, guard, judge, judge_groups, paired_interval,
};

const ALPHA: f64 = 0.05;

fn settings(measure: Measure, stopping: Stopping) -> AnalysisSettings {
    AnalysisSettings {
        measure,
        alpha: ALPHA,
        stopping,
        seed: 1,
    }
}

fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

fn bernoulli(random: &mut Random, probability: f64) -> f64 {
    f64::from(u8::from(random.unit() < probability))
}

/// The turns of a run: two, and each further one with a probability of 0.4, which is skewed.
fn turns(random: &mut Random) -> f64 {
    let mut turns = 2.0;
    while random.unit() < 0.4 {
        turns += 1.0;
    }
    turns
}

fn seconds(random: &mut Random) -> f64 {
    (0.8 * normal(random)).exp()
}

/// How many of 2,000 experiments ever reach enough evidence, with a look after each of 200 pairs.
fn count_stopped(
    outcomes: Outcomes,
    seed: u64,
    mut draw: impl FnMut(&mut Random) -> (f64, f64),
) -> usize {
    let mut random = Random::new(seed);
    let mut one = || {
        let mut evidence = EProcess::new(outcomes);
        (0..200).any(|_| {
            let (a, b) = draw(&mut random);
            evidence.add(a, b);
            evidence.is_enough(ALPHA)
        })
    };
    (0..2_000).filter(|_| one()).count()
}

#[test]
fn e_process_keeps_its_error_rate_with_a_look_after_every_pair() {
    let at_half = count_stopped(Outcomes::Binary, 1, |r| {
        (bernoulli(r, 0.5), bernoulli(r, 0.5))
    });
    let at_nine_tenths = count_stopped(Outcomes::Binary, 2, |r| {
        (bernoulli(r, 0.9), bernoulli(r, 0.9))
    });
    let iterations = count_stopped(Outcomes::Amounts, 3, |r| (turns(r), turns(r)));
    let latency = count_stopped(Outcomes::Amounts, 4, |r| (seconds(r), seconds(r)));
    let found = [at_half, at_nine_tenths, iterations, latency];
    println!("winners of 2000 without a difference: {found:?}");
    assert!(found.iter().all(|winners| *winners <= 100), "{found:?}");
}

#[test]
fn different_task_difficulty_does_not_raise_the_error_rate() {
    let mut number = 0_u64;
    let found = count_stopped(Outcomes::Binary, 5, |r| {
        number += 1;
        let hard = if number.is_multiple_of(2) { 0.1 } else { 0.95 };
        (bernoulli(r, hard), bernoulli(r, hard))
    });
    assert!(found <= 100, "{found}");
}

#[test]
fn true_difference_is_found_within_300_pairs() {
    let mut random = Random::new(6);
    let mut one = |outcomes, draw: &dyn Fn(&mut Random) -> (f64, f64)| {
        let mut evidence = EProcess::new(outcomes);
        (1..=300).find(|_| {
            let (a, b) = draw(&mut random);
            evidence.add(a, b);
            evidence.is_enough(ALPHA)
        })
    };
    let mut share = |outcomes, draw: &dyn Fn(&mut Random) -> (f64, f64)| {
        let mut lengths: Vec<usize> = (0..500).filter_map(|_| one(outcomes, draw)).collect();
        lengths.sort_unstable();
        let middle = lengths.get(250).copied();
        println!(
            "found in {} of 500, half of them by pair {middle:?}",
            lengths.len()
        );
        lengths.len()
    };
    let success = share(Outcomes::Binary, &|r| {
        (bernoulli(r, 0.6), bernoulli(r, 0.8))
    });
    let latency = share(Outcomes::Amounts, &|r| (seconds(r), 0.7 * seconds(r)));
    assert!(success >= 400, "{success}");
    assert!(latency >= 400, "{latency}");
}

/// In how many of 400 simulated experiments of 40 pairs the interval contains the true value.
fn count_covered(how: Compare, truth: f64, draw: &dyn Fn(&mut Random) -> (f64, f64)) -> usize {
    let mut random = Random::new(7);
    let is_covered = |seed| {
        let pairs: Vec<Pair> = (0..40)
            .map(|task| {
                let (a, b) = draw(&mut random);
                Pair { task, a, b }
            })
            .collect();
        let (interval, _) = paired_interval(&pairs, how, 0.95, seed).unwrap();
        interval.contains(truth)
    };
    (0..400).map(is_covered).filter(|covered| *covered).count()
}

#[test]
fn interval_coverage_is_near_its_level() {
    let success = count_covered(Compare::Difference, 0.2, &|r| {
        (bernoulli(r, 0.6), bernoulli(r, 0.8))
    });
    let iterations = count_covered(Compare::Ratio, 0.0, &|r| (turns(r), turns(r)));
    let latency = count_covered(Compare::Ratio, -0.3, &|r| {
        // The duration of a task is correlated between arms.
        let task = (0.3 * normal(r)).exp();
        (
            task * (0.3 * normal(r)).exp(),
            0.7 * task * (0.3 * normal(r)).exp(),
        )
    });
    let found = [success, iterations, latency].map(|count| count as f64 / 400.0);
    println!("coverage: {found:?}");
    assert!(found.iter().all(|share| *share >= 0.92), "{found:?}");
}

/// How many of 300 planned experiments with `count` pairs find a better arm.
fn winners(measure: Measure, count: usize, draw: &dyn Fn(&mut Random) -> (f64, f64)) -> usize {
    let mut random = Random::new(8);
    let mut one = |seed| {
        let pairs: Vec<Pair> = (0..count)
            .map(|task| {
                let (a, b) = draw(&mut random);
                Pair { task, a, b }
            })
            .collect();
        let settings = AnalysisSettings {
            seed,
            ..settings(measure, Stopping::Planned)
        };
        let runs = [count as u64; 2];
        matches!(
            judge(&pairs, runs, &settings).verdict,
            ExperimentVerdict::Better { .. }
        )
    };
    (0..300).filter(|seed| one(*seed)).count()
}

#[test]
fn planned_test_keeps_its_error_rate_with_few_pairs() {
    let success = winners(Measure::SUCCESS, 12, &|r| {
        (bernoulli(r, 0.5), bernoulli(r, 0.5))
    });
    let latency = winners(Measure::EXPENSE, 12, &|r| (seconds(r), seconds(r)));
    // 5 % of 300 are 15. More than 28 occur with a probability of 1 in 2,000.
    assert!(success <= 28 && latency <= 28, "{success} {latency}");
}

fn equal_pairs(count: usize, a: f64, b: f64) -> Vec<Pair> {
    (0..count).map(|task| Pair { task, a, b }).collect()
}

#[test]
fn too_few_pairs_give_not_enough_data() {
    let settings = settings(Measure::SUCCESS, Stopping::Planned);
    let verdict = judge(&equal_pairs(4, 0.0, 1.0), [4, 4], &settings).verdict;
    assert_eq!(verdict, ExperimentVerdict::NotEnoughData { more_pairs: 2 });
    let verdict = judge(&[], [0, 0], &settings).verdict;
    assert_eq!(verdict, ExperimentVerdict::NotEnoughData { more_pairs: 6 });
    let verdict = judge(&equal_pairs(6, 0.0, 1.0), [6, 6], &settings).verdict;
    assert_eq!(verdict, ExperimentVerdict::Better { arm: Arm::B });
}

#[test]
fn lower_expense_is_better() {
    let settings = settings(Measure::EXPENSE, Stopping::Planned);
    let found = judge(&equal_pairs(20, 4.0, 3.0), [20, 20], &settings);
    assert_eq!(found.verdict, ExperimentVerdict::Better { arm: Arm::B });
    assert!((found.effect.unwrap() + 0.25).abs() < 1e-12);
}

#[test]
fn uneven_sample_ratio_makes_an_experiment_invalid() {
    let settings = settings(Measure::SUCCESS, Stopping::Planned);
    let found = judge(&equal_pairs(20, 0.0, 1.0), [60, 20], &settings);
    assert!(
        matches!(found.verdict, ExperimentVerdict::Invalid { .. }),
        "{found:?}"
    );
}

#[test]
fn interval_without_observed_differences_is_not_empty() {
    let settings = settings(Measure::SUCCESS, Stopping::Planned);
    let found = judge(&equal_pairs(30, 1.0, 1.0), [30, 30], &settings);
    let interval = found.interval.unwrap();
    assert!((interval.high - 0.0999).abs() < 1e-3, "{interval:?}");
    assert!(
        matches!(
            found.verdict,
            ExperimentVerdict::NoDifferenceShown {
                more_pairs: None,
                ..
            }
        ),
        "{found:?}"
    );
}

#[test]
fn guard_rail_is_not_worse_only_if_the_data_show_it() {
    assert_eq!(
        guard(&equal_pairs(10, 0.0, 0.0), ALPHA, 1).status,
        GuardStatus::Open
    );
    assert_eq!(
        guard(&equal_pairs(40, 0.0, 0.0), ALPHA, 1).status,
        GuardStatus::NotWorse
    );
    assert_eq!(
        guard(&equal_pairs(40, 0.0, 1.0), ALPHA, 1).status,
        GuardStatus::Worse
    );
    let mut some = equal_pairs(40, 0.0, 0.0);
    some.iter_mut().take(3).for_each(|pair| pair.b = 1.0);
    assert_eq!(guard(&some, ALPHA, 1).status, GuardStatus::Open);
}

#[test]
fn recommended_number_of_pairs_has_the_intended_power() {
    let mut random = Random::new(9);
    let mut draw = |count: usize| -> Vec<Pair> {
        (0..count)
            .map(|task| {
                let (a, b) = (bernoulli(&mut random, 0.6), bernoulli(&mut random, 0.8));
                Pair { task, a, b }
            })
            .collect()
    };
    let settings = settings(Measure::SUCCESS, Stopping::Planned);
    // From a large sample, whose recommendation is near the true value: about 85 pairs for a power of 0.8.
    let large = draw(20_000);
    let differences: Vec<f64> = large.iter().map(|pair| pair.b - pair.a).collect();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let squares = differences.iter().map(|d| d * d).sum::<f64>() / differences.len() as f64;
    let expected = 7.849 * (squares - mean * mean) / (mean * mean);
    // 30 pairs with the same proportions, which show no difference.
    let mut few = equal_pairs(30, 1.0, 1.0);
    few.iter_mut().take(9).for_each(|pair| pair.a = 0.0);
    few.iter_mut().skip(9).take(3).for_each(|pair| pair.b = 0.0);
    let verdict = judge(&few, [30, 30], &settings).verdict;
    let ExperimentVerdict::NoDifferenceShown {
        more_pairs: Some(more),
        ..
    } = verdict
    else {
        panic!("{verdict:?}");
    };
    let recommended = (more + 30) as f64;
    assert!(
        (0.6..1.6).contains(&(recommended / expected)),
        "{recommended} {expected}"
    );
    let found = (0..200)
        .filter(|_| {
            let pairs = draw(recommended as usize);
            let runs = [recommended as u64; 2];
            matches!(
                judge(&pairs, runs, &settings).verdict,
                ExperimentVerdict::Better { arm: Arm::B }
            )
        })
        .count();
    assert!(found >= 130, "{found}");
}

#[test]
fn groups_are_analysed_by_principals_in_the_order_of_arrival() {
    let settings = settings(Measure::SHARE, Stopping::Optional);
    let (a, b) = (vec![0.5; 40], vec![0.9; 40]);
    let found = judge_groups(&a, &b, (&[40, 40], &[1.0, 1.0]), &settings);
    assert_eq!(found.verdict, ExperimentVerdict::Better { arm: Arm::B });
    let found = judge_groups(&a[..1], &[], (&[1, 0], &[1.0, 1.0]), &settings);
    assert!(
        matches!(found.verdict, ExperimentVerdict::NotEnoughData { .. }),
        "{found:?}"
    );
    let found = judge_groups(&a, &b, (&[40, 40], &[9.0, 1.0]), &settings);
    assert!(
        matches!(found.verdict, ExperimentVerdict::Invalid { .. }),
        "{found:?}"
    );
}

fn any_pairs() -> impl Strategy<Value = Vec<Pair>> {
    proptest::collection::vec((0_usize..12, 0_u8..6, 0_u8..6), 0..40).prop_map(|drawn| {
        let pair = |(task, a, b): (usize, u8, u8)| Pair {
            task,
            a: f64::from(a),
            b: f64::from(b),
        };
        drawn.into_iter().map(pair).collect()
    })
}

fn swapped(pairs: &[Pair]) -> Vec<Pair> {
    let swap = |pair: &Pair| Pair {
        task: pair.task,
        a: pair.b,
        b: pair.a,
    };
    pairs.iter().map(swap).collect()
}

fn any_settings() -> impl Strategy<Value = AnalysisSettings> {
    let measure = prop_oneof![Just(Measure::EXPENSE), Just(Measure::SHARE)];
    let stopping = prop_oneof![Just(Stopping::Planned), Just(Stopping::Optional)];
    (measure, stopping).prop_map(|(measure, stopping)| settings(measure, stopping))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn swapping_the_arms_swaps_the_test(pairs in any_pairs(), settings in any_settings()) {
        let runs = [pairs.len() as u64; 2];
        let one = judge(&pairs, runs, &settings);
        let other = judge(&swapped(&pairs), runs, &settings);
        prop_assert!((one.p_value - other.p_value).abs() < 1e-9);
        prop_assert!((one.evidence - other.evidence).abs() < 1e-9 * one.evidence);
        if let (ExperimentVerdict::Better { arm: one }, ExperimentVerdict::Better { arm: other }) =
            (one.verdict, other.verdict)
        {
            prop_assert_ne!(one, other);
        }
    }

    #[test]
    fn ratios_do_not_depend_on_the_unit(pairs in any_pairs(), unit in 0.01_f64..100.0) {
        let settings = settings(Measure::EXPENSE, Stopping::Planned);
        let scaled: Vec<Pair> = pairs
            .iter()
            .map(|pair| Pair { task: pair.task, a: pair.a * unit, b: pair.b * unit })
            .collect();
        let runs = [pairs.len() as u64; 2];
        let (one, other) = (judge(&pairs, runs, &settings), judge(&scaled, runs, &settings));
        prop_assert!((one.p_value - other.p_value).abs() < 1e-3);
        prop_assert_eq!(one.effect.is_some(), other.effect.is_some());
        if let (Some(one), Some(other)) = (one.effect, other.effect) {
            prop_assert!((one - other).abs() < 1e-9 * (1.0 + one.abs()));
        }
    }

    #[test]
    fn verdict_agrees_with_its_interval(pairs in any_pairs(), settings in any_settings()) {
        let found = judge(&pairs, [pairs.len() as u64; 2], &settings);
        if let Some(interval) = found.interval {
            prop_assert!(interval.low <= interval.high);
            let effect = found.effect.unwrap();
            prop_assert!(interval.contains(effect));
        }
        if let (ExperimentVerdict::Better { arm }, Some(effect)) = (found.verdict, found.effect) {
            let b_is_better = (effect > 0.0) == settings.measure.more_is_better;
            prop_assert_eq!(arm == Arm::B, b_is_better);
        }
    }
}
