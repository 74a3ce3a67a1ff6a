//! Has tasks worked on in each arm, by two workers at once, and keeps the scores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use tokio::runtime::Runtime;

use crate::arms::{Advice, Arm, Training, TrainingTurn, TurnContext};
use crate::book;
use crate::tasks::{FOLDS, Task, folds};
use crate::variant::variant;
use crate::world::{CAP, Chooser, Outcome, World};

/// How many tasks are worked on at once, each by a server of its own.
const WORKERS: usize = 2;

/// After how many tasks a playbook that is lived with is read again.
const TOGETHER: usize = 10;

/// What became of one task, in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// How often the policy was asked.
    pub iterations: u32,
    /// How many calls were made.
    pub calls: u32,
    /// How many tokens it was shown, roughly.
    pub tokens: u64,
    /// The fewest iterations.
    pub optimum: u32,
    /// What it counts as if it failed.
    pub cap: u32,
    /// Whether it was solved.
    pub is_success: bool,
}

impl Score {
    fn of(task: &Task, outcome: &Outcome) -> Self {
        let turns = &outcome.turns;
        Self {
            iterations: turns.iter().map(|turn| turn.iterations).sum(),
            calls: turns.iter().map(|turn| turn.calls).sum(),
            tokens: turns.iter().map(|turn| turn.tokens).sum(),
            optimum: task.optimum(),
            cap: CAP * u32::try_from(task.turns.len()).unwrap_or(u32::MAX),
            is_success: outcome.is_success,
        }
    }
}

/// How the tasks of the test stand to those of the training. Never pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// Other tasks of the same kind: each fold is tested with the others for training.
    NewTask,
    /// The tasks of the training with other values in them.
    SameTemplate,
    /// The tasks of the training themselves: memory, and an upper bound.
    Identical,
}

impl Regime {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NewTask, Self::SameTemplate, Self::Identical];

    /// What it is called in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewTask => "New task of the domain",
            Self::SameTemplate => "Same template, new values",
            Self::Identical => "Identical task repeated",
        }
    }
}

/// What an arm came to: a score for each seed and task, where there is such a task.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The arm.
    pub arm: String,
    /// By seed, then by task.
    pub scores: Vec<Vec<Option<Score>>>,
    /// How long it took.
    pub seconds: f64,
    /// What became of false strategies, where there were any.
    pub false_ones: Option<FalseOnes>,
}

impl Measured {
    /// The same of some of the tasks.
    pub fn of(&self, tasks: std::ops::Range<usize>) -> Self {
        let some = |scores: &Vec<Option<Score>>| scores[tasks.clone()].to_vec();
        Self {
            arm: self.arm.clone(),
            scores: self.scores.iter().map(some).collect(),
            ..*self
        }
    }
}

/// What became of false strategies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalseOnes {
    /// How many there were, in all folds and seeds together.
    pub all: usize,
    /// How many of them were retired before the test.
    pub retired: usize,
    /// How far the others are relied on, from 0 to 1, on average.
    pub relied_on: f64,
}

/// The tasks, with what became of them when nothing was said: what all arms learn from.
pub struct Corpus {
    /// The tasks.
    pub tasks: Vec<Task>,
    outcomes: Vec<Outcome>,
    scores: Vec<Score>,
    seconds: f64,
    /// By seed, then by task: the same with other values, where that is possible.
    pub variants: Vec<Vec<Option<Task>>>,
}

struct Split {
    fold: usize,
    train: Vec<usize>,
    test: Vec<usize>,
}

impl Corpus {
    /// Works on all tasks once, with nothing said, and makes variants of them.
    pub fn make(workers: &mut Workers, tasks: Vec<Task>, seeds: u64) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let silent = |_: &TurnContext<'_>| Vec::new();
        let jobs: Vec<Job<'_>> = tasks
            .iter()
            .map(|task| (task, &silent as &dyn Advice))
            .collect();
        let outcomes = workers.work(&jobs)?;
        let seconds = begun.elapsed().as_secs_f64();
        let scores = tasks.iter().zip(&outcomes);
        let scores = scores
            .map(|(task, outcome)| Score::of(task, outcome))
            .collect();
        let variants = (0..seeds).map(|seed| workers.variants(&tasks, seed));
        Ok(Self {
            variants: variants.collect::<anyhow::Result<_>>()?,
            tasks,
            outcomes,
            scores,
            seconds,
        })
    }

    /// What became of a task when nothing was said.
    pub fn outcome(&self, task: usize) -> &Outcome {
        &self.outcomes[task]
    }

    fn seeds(&self) -> u64 {
        self.variants.len() as u64
    }

    fn splits(&self, regime: Regime, seed: u64) -> Vec<Split> {
        let all: Vec<usize> = (0..self.tasks.len()).collect();
        if regime != Regime::NewTask {
            let whole = Split {
                fold: 0,
                train: all.clone(),
                test: all,
            };
            return vec![whole];
        }
        let fold_of = folds(self.tasks.len(), seed);
        let split = |fold| {
            let (test, train) = all.iter().partition(|&&task| fold_of[task] == fold);
            Split { fold, train, test }
        };
        (0..FOLDS).map(split).collect()
    }

    fn training(&self, seed: u64, fold: usize, tasks: &[usize]) -> Training<'_> {
        let turns = tasks.iter().flat_map(|&task| {
            let outcome = &self.outcomes[task];
            outcome
                .turns
                .iter()
                .enumerate()
                .map(move |(turn, done)| TrainingTurn {
                    task: &self.tasks[task],
                    turn,
                    run: &done.run,
                    is_success: outcome.is_success,
                })
        });
        Training {
            seed,
            fold,
            turns: turns.collect(),
        }
    }

    fn tested(&self, regime: Regime, seed: u64, task: usize) -> Option<&Task> {
        match regime {
            Regime::NewTask | Regime::Identical => Some(&self.tasks[task]),
            Regime::SameTemplate => {
                let seed = usize::try_from(seed).unwrap_or(usize::MAX);
                self.variants.get(seed)?[task].as_ref()
            }
        }
    }

    /// What comes of saying nothing. The policy is deterministic, so tasks that stay the same are worked on
    /// once for all seeds.
    pub fn silence(&self, workers: &mut Workers, regime: Regime) -> anyhow::Result<Measured> {
        if regime == Regime::SameTemplate {
            return self.measure(workers, regime, &crate::arms::Nothing);
        }
        let scores: Vec<Option<Score>> = self.scores.iter().copied().map(Some).collect();
        Ok(Measured {
            arm: crate::arms::Nothing.name(),
            scores: (0..self.seeds()).map(|_| scores.clone()).collect(),
            seconds: self.seconds,
            false_ones: None,
        })
    }

    /// Measures an arm.
    pub fn measure(
        &self,
        workers: &mut Workers,
        regime: Regime,
        arm: &dyn Arm,
    ) -> anyhow::Result<Measured> {
        let begun = Instant::now();
        let mut scores = Vec::new();
        for seed in 0..self.seeds() {
            let mut of_seed = vec![None; self.tasks.len()];
            for split in self.splits(regime, seed) {
                let mut learned_from = split.train.clone();
                if arm.leaks() {
                    learned_from.extend(&split.test);
                }
                let advice = arm.learn(&self.training(seed, split.fold, &learned_from));
                let tested: Vec<(usize, &Task)> = split
                    .test
                    .iter()
                    .filter_map(|&task| Some((task, self.tested(regime, seed, task)?)))
                    .collect();
                let jobs: Vec<Job<'_>> = tested.iter().map(|(_, task)| (*task, &*advice)).collect();
                for ((index, task), outcome) in tested.iter().zip(workers.work(&jobs)?) {
                    of_seed[*index] = Some(Score::of(task, &outcome));
                }
            }
            scores.push(of_seed);
        }
        Ok(Measured {
            arm: arm.name(),
            scores,
            seconds: begun.elapsed().as_secs_f64(),
            false_ones: None,
        })
    }

    /// Measures new tasks with playbooks that go on learning: the training is lived through again with what the
    /// playbook says, `passes` times, before the test. With false strategies among the others or without.
    pub fn measure_after_living(
        &self,
        workers: &mut Workers,
        k: usize,
        passes: usize,
        is_polluted: bool,
    ) -> anyhow::Result<Measured> {
        let begun = Instant::now();
        let mut scores = Vec::new();
        let (mut false_ones, mut retired, mut bound) = (0, 0, 0.0);
        for seed in 0..self.seeds() {
            let mut of_seed = vec![None; self.tasks.len()];
            let splits = self.splits(Regime::NewTask, seed);
            let count = splits.len() * self.variants.len();
            for split in splits {
                let mut logs = book::logs(&self.training(seed, split.fold, &split.train));
                if is_polluted {
                    book::pollute(&mut logs, seed);
                }
                for tasks in (0..passes).flat_map(|_| split.train.chunks(TOGETHER)) {
                    let known = book::Searched::of(&logs, k);
                    let tasks = tasks.iter().map(|&task| &self.tasks[task]);
                    let jobs: Vec<Job<'_>> =
                        tasks.map(|task| (task, &known as &dyn Advice)).collect();
                    let outcomes = workers.work(&jobs)?;
                    for ((task, _), outcome) in jobs.iter().zip(&outcomes) {
                        for turn in &outcome.turns {
                            known.note(&mut logs, task.domain(), &turn.run);
                        }
                    }
                }
                let (all, gone, left) = book::false_ones(&logs);
                false_ones += all;
                retired += gone;
                bound += left / count as f64;
                let known = book::Searched::of(&logs, k);
                let tested = split.test.iter().map(|&task| &self.tasks[task]);
                let jobs: Vec<Job<'_>> = tested.map(|task| (task, &known as &dyn Advice)).collect();
                for (&index, outcome) in split.test.iter().zip(workers.work(&jobs)?) {
                    of_seed[index] = Some(Score::of(&self.tasks[index], &outcome));
                }
            }
            scores.push(of_seed);
        }
        let arm = match is_polluted {
            false => format!("playbook, k = {k}, lived with {passes} times"),
            true => format!("the same with 20 % false strategies, lived with {passes} times"),
        };
        let false_ones = FalseOnes {
            all: false_ones,
            retired,
            relied_on: bound,
        };
        Ok(Measured {
            arm,
            scores,
            seconds: begun.elapsed().as_secs_f64(),
            false_ones: is_polluted.then_some(false_ones),
        })
    }
}

type Job<'j> = (&'j Task, &'j dyn Advice);

/// Those who work on tasks. Each has a thread, and a server of its own.
pub struct Workers(Vec<(Runtime, World)>);

impl Workers {
    /// Starts them.
    pub fn start(
        python: &Path,
        server: &Path,
        chooser: fn() -> Arc<dyn Chooser>,
    ) -> anyhow::Result<Self> {
        let start = |_| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let world = runtime.block_on(World::start(python, server, chooser()))?;
            Ok((runtime, world))
        };
        (0..WORKERS)
            .map(start)
            .collect::<anyhow::Result<_>>()
            .map(Self)
    }

    /// Works on tasks; what became of them is in their order.
    pub fn work(&mut self, jobs: &[Job<'_>]) -> anyhow::Result<Vec<Outcome>> {
        self.share(jobs.len(), |runtime, world, job| {
            let (task, advice) = jobs[job];
            runtime.block_on(world.work(task, advice))
        })
    }

    /// Makes variants of tasks.
    fn variants(&mut self, tasks: &[Task], seed: u64) -> anyhow::Result<Vec<Option<Task>>> {
        self.share(tasks.len(), |runtime, world, task| {
            runtime.block_on(variant(world, &tasks[task], seed))
        })
    }

    /// The first of them, for what is done one after the other.
    pub fn first(&mut self) -> anyhow::Result<&mut (Runtime, World)> {
        self.0.first_mut().context("nobody works")
    }

    fn share<T: Send>(
        &mut self,
        count: usize,
        work: impl Fn(&Runtime, &mut World, usize) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        let next = AtomicUsize::new(0);
        let (next, work) = (&next, &work);
        let mut done = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .0
                .iter_mut()
                .map(|(runtime, world)| {
                    scope.spawn(move || {
                        let mut done = Vec::new();
                        loop {
                            let job = next.fetch_add(1, Ordering::Relaxed);
                            if job >= count {
                                return anyhow::Ok(done);
                            }
                            done.push((job, work(runtime, world, job)?));
                        }
                    })
                })
                .collect();
            let mut all = Vec::new();
            for thread in threads {
                let done = thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("a worker broke down"))?;
                all.extend(done?);
            }
            anyhow::Ok(all)
        })?;
        done.sort_by_key(|(job, _)| *job);
        Ok(done.into_iter().map(|(_, what)| what).collect())
    }

    /// Ends the servers.
    pub fn close(self) {
        for (runtime, world) in self.0 {
            runtime.block_on(world.close());
        }
    }
}
