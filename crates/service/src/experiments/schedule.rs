//! The order of the pairs of an experiment. It depends only on the seed, and a longer experiment starts with the
//! pairs of a shorter one, so that runs can be added.

use windlass_learn::ab::{Arm, Random};

/// One pair of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// The index of the task.
    pub(super) task: usize,
    /// The repetition, from 1.
    pub(super) repetition: u32,
    /// The arm that runs first.
    pub(super) first: Arm,
}

impl Scheduled {
    /// The arms in the order they run.
    pub(super) fn arms(&self) -> [Arm; 2] {
        match self.first {
            Arm::A => [Arm::A, Arm::B],
            Arm::B => [Arm::B, Arm::A],
        }
    }
}

/// All pairs: in each round, every task once, in random order.
pub(super) fn schedule(tasks: usize, repetitions: u32, seed: u64) -> Vec<Scheduled> {
    let mut rounds = Random::new(seed);
    let mut all = Vec::new();
    for repetition in 1..=repetitions {
        let mut random = Random::new(rounds.bits());
        let mut order: Vec<usize> = (0..tasks).collect();
        random.shuffle(&mut order);
        for task in order {
            let first = if random.flip() { Arm::B } else { Arm::A };
            all.push(Scheduled {
                task,
                repetition,
                first,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_scheduled_once_per_round_with_either_arm_first() {
        let all = schedule(20, 3, 7);
        assert_eq!(all.len(), 60);
        for round in all.chunks(20) {
            let mut tasks: Vec<usize> = round.iter().map(|pair| pair.task).collect();
            assert!(!tasks.is_sorted(), "{tasks:?}");
            tasks.sort_unstable();
            assert_eq!(tasks, (0..20).collect::<Vec<_>>());
        }
        let b_first = all.iter().filter(|pair| pair.first == Arm::B).count();
        assert!((15..=45).contains(&b_first), "{b_first}");
    }

    #[test]
    fn a_longer_schedule_starts_with_the_shorter_one() {
        assert_eq!(schedule(5, 2, 7)[..], schedule(5, 4, 7)[..10]);
        assert_ne!(schedule(5, 2, 7), schedule(5, 2, 8));
    }
}
