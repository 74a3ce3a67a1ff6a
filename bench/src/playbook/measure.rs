//! Runs the tasks in each arm, with two workers in parallel, and collects the scores.

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
use crate::world::{CAP, Chooser, TaskOutcome, World};

/// The number of workers, each with its own server.
const WORKERS: usize = 2;

/// After this many tasks a playbook in further training is rebuilt.
const TASKS_PER_REBUILD: usize = 10;

/// The score of one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The number of requests to the policy.
    pub iterations: u32,
    /// The number of calls.
    pub calls: u32,
    /// The estimated number of input tokens.
    pub tokens: u64,
    /// The fewest iterations.
    pub optimum: u32,
    /// The iterations that count if it failed.
    pub cap: u32,
    /// Whether it was solved.
    pub is_success: bool,
}

impl Score {
    fn of(task: &Task, outcome: &TaskOutcome) -> Self {
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

/// The relation of the test tasks to the training tasks. Results of different regimes are never pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// Other tasks of the same domains: each fold is tested with the others for training.
    NewTask,
    /// The tasks of the training with other values in them.
    SameTemplate,
    /// The training tasks themselves: memorisation, an upper bound.
    Identical,
}

impl Regime {
    /// All regimes.
    pub const ALL: [Self; 3] = [Self::NewTask, Self::SameTemplate, Self::Identical];

    /// The name in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewTask => "New task of the domain",
            Self::SameTemplate => "Same template, new values",
            Self::Identical => "Identical task repeated",
        }
    }
}

/// The scores of an arm, for each seed and existing task.
#[derive(Debug, Clone)]
pub struct ArmScores {
    /// The arm.
    pub arm: String,
    /// The scores by seed, then by task.
    pub scores: Vec<Vec<Option<Score>>>,
    /// The duration.
    pub seconds: f64,
    /// The false strategies, if any were added.
    pub false_strategies: Option<FalseStrategies>,
}

impl ArmScores {
    /// The scores of a range of tasks.
    pub fn for_tasks(&self, tasks: std::ops::Range<usize>) -> Self {
        let some = |scores: &Vec<Option<Score>>| scores[tasks.clone()].to_vec();
        Self {
            arm: self.arm.clone(),
            scores: self.scores.iter().map(some).collect(),
            ..*self
        }
    }
}

/// Counts of false strategies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalseStrategies {
    /// Their number, in all folds and seeds together.
    pub all: usize,
    /// How many of them were retired before the test.
    pub retired: usize,
    /// The mean lower bound of the others, from 0 to 1.
    pub mean_lower_bound: f64,
}

/// The tasks with their outcomes without advice, which all arms learn from.
pub struct Corpus {
    /// The tasks.
    pub tasks: Vec<Task>,
    outcomes: Vec<TaskOutcome>,
    scores: Vec<Score>,
    seconds: f64,
    /// The variants of the tasks with other values, by seed, then by task; `None` if there is none.
    pub variants: Vec<Vec<Option<Task>>>,
}

struct Split {
    fold: usize,
    train: Vec<usize>,
    test: Vec<usize>,
}

impl Corpus {
    /// Runs all tasks once without advice, and generates their variants.
    pub fn make(workers: &mut Workers, tasks: Vec<Task>, seeds: u64) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let no_advice = |_: &TurnContext<'_>| Vec::new();
        let jobs: Vec<Job<'_>> = tasks
            .iter()
            .map(|task| (task, &no_advice as &dyn Advice))
            .collect();
        let outcomes = workers.run(&jobs)?;
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

    /// The outcome of a task without advice.
    pub fn outcome(&self, task: usize) -> &TaskOutcome {
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

    fn test_task(&self, regime: Regime, seed: u64, task: usize) -> Option<&Task> {
        match regime {
            Regime::NewTask | Regime::Identical => Some(&self.tasks[task]),
            Regime::SameTemplate => {
                let seed = usize::try_from(seed).unwrap_or(usize::MAX);
                self.variants.get(seed)?[task].as_ref()
            }
        }
    }

    /// Measures the baseline without advice. The policy is deterministic, so unchanged tasks are run once for all
    /// seeds.
    pub fn baseline(&self, workers: &mut Workers, regime: Regime) -> anyhow::Result<ArmScores> {
        if regime == Regime::SameTemplate {
            return self.measure(workers, regime, &crate::arms::NoAdvice);
        }
        let scores: Vec<Option<Score>> = self.scores.iter().copied().map(Some).collect();
        Ok(ArmScores {
            arm: crate::arms::NoAdvice.name(),
            scores: (0..self.seeds()).map(|_| scores.clone()).collect(),
            seconds: self.seconds,
            false_strategies: None,
        })
    }

    /// Measures an arm.
    pub fn measure(
        &self,
        workers: &mut Workers,
        regime: Regime,
        arm: &dyn Arm,
    ) -> anyhow::Result<ArmScores> {
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
                    .filter_map(|&task| Some((task, self.test_task(regime, seed, task)?)))
                    .collect();
                let jobs: Vec<Job<'_>> = tested.iter().map(|(_, task)| (*task, &*advice)).collect();
                for ((index, task), outcome) in tested.iter().zip(workers.run(&jobs)?) {
                    of_seed[*index] = Some(Score::of(task, &outcome));
                }
            }
            scores.push(of_seed);
        }
        Ok(ArmScores {
            arm: arm.name(),
            scores,
            seconds: begun.elapsed().as_secs_f64(),
            false_strategies: None,
        })
    }

    /// Measures new tasks with playbooks that continue to learn: before the test, the training tasks are run `passes`
    /// more times with the playbook's advice. Optionally with false strategies among the others.
    pub fn measure_after_more_training(
        &self,
        workers: &mut Workers,
        k: usize,
        passes: usize,
        is_polluted: bool,
    ) -> anyhow::Result<ArmScores> {
        let begun = Instant::now();
        let mut scores = Vec::new();
        let (mut false_strategies, mut retired, mut bound) = (0, 0, 0.0);
        for seed in 0..self.seeds() {
            let mut of_seed = vec![None; self.tasks.len()];
            let splits = self.splits(Regime::NewTask, seed);
            let count = splits.len() * self.variants.len();
            for split in splits {
                let mut logs = book::logs(&self.training(seed, split.fold, &split.train));
                if is_polluted {
                    book::pollute(&mut logs, seed);
                }
                for tasks in (0..passes).flat_map(|_| split.train.chunks(TASKS_PER_REBUILD)) {
                    let known = book::PlaybookAdvice::new(&logs, k);
                    let tasks = tasks.iter().map(|&task| &self.tasks[task]);
                    let jobs: Vec<Job<'_>> =
                        tasks.map(|task| (task, &known as &dyn Advice)).collect();
                    let outcomes = workers.run(&jobs)?;
                    for ((task, _), outcome) in jobs.iter().zip(&outcomes) {
                        for turn in &outcome.turns {
                            known.record(&mut logs, task.domain(), &turn.run);
                        }
                    }
                }
                let (all, retired_now, mean_bound) = book::count_false_strategies(&logs);
                false_strategies += all;
                retired += retired_now;
                bound += mean_bound / count as f64;
                let known = book::PlaybookAdvice::new(&logs, k);
                let tested = split.test.iter().map(|&task| &self.tasks[task]);
                let jobs: Vec<Job<'_>> = tested.map(|task| (task, &known as &dyn Advice)).collect();
                for (&index, outcome) in split.test.iter().zip(workers.run(&jobs)?) {
                    of_seed[index] = Some(Score::of(&self.tasks[index], &outcome));
                }
            }
            scores.push(of_seed);
        }
        let arm = match is_polluted {
            false => format!("playbook, k = {k}, trained {passes} more times"),
            true => format!("the same with 20 % false strategies, trained {passes} more times"),
        };
        let false_strategies = FalseStrategies {
            all: false_strategies,
            retired,
            mean_lower_bound: bound,
        };
        Ok(ArmScores {
            arm,
            scores,
            seconds: begun.elapsed().as_secs_f64(),
            false_strategies: is_polluted.then_some(false_strategies),
        })
    }
}

type Job<'j> = (&'j Task, &'j dyn Advice);

/// The workers that run tasks. Each has its own thread and server.
pub struct Workers(Vec<(Runtime, World)>);

impl Workers {
    /// Starts the workers.
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

    /// Runs tasks and returns their outcomes in the same order.
    pub fn run(&mut self, jobs: &[Job<'_>]) -> anyhow::Result<Vec<TaskOutcome>> {
        self.distribute(jobs.len(), |runtime, world, job| {
            let (task, advice) = jobs[job];
            runtime.block_on(world.run(task, advice))
        })
    }

    /// Generates variants of tasks.
    fn variants(&mut self, tasks: &[Task], seed: u64) -> anyhow::Result<Vec<Option<Task>>> {
        self.distribute(tasks.len(), |runtime, world, task| {
            runtime.block_on(variant(world, &tasks[task], seed))
        })
    }

    /// The first worker, for sequential work.
    pub fn first(&mut self) -> anyhow::Result<&mut (Runtime, World)> {
        self.0.first_mut().context("there is no worker")
    }

    fn distribute<T: Send>(
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
                    .map_err(|_| anyhow::anyhow!("a worker panicked"))?;
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
