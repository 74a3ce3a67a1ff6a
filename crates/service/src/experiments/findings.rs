//! The findings of an experiment, as values that front ends serialise and show as tables and reports.

use serde::{Serialize, Serializer};
use windlass_learn::ab::{
    Analysis, AnalysisSettings, Arm, ExperimentVerdict, Guard, Pair, Stopping, guard, judge,
    sample_ratio,
};

use super::arms::{ExperimentArm, ToolDifference};
use super::measure::{CostIn, ExperimentMetric, GuardRail, RunMeasurements};
use super::schedule::Scheduled;

/// The content of an experiment.
pub(super) struct ExperimentDescription {
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) agent: String,
    pub(super) arms: [ExperimentArm; 2],
    pub(super) differs: Vec<ToolDifference>,
    /// The ids of the tasks.
    pub(super) tasks: Vec<String>,
    pub(super) runs: u32,
    pub(super) seed: u64,
    pub(super) alpha: f64,
    pub(super) stopping: Stopping,
    /// Whether it was extended after it had started.
    pub(super) is_extended: bool,
    pub(super) metrics: Vec<ExperimentMetric>,
}

/// The outcome of a pair of runs.
#[derive(Debug, Clone, Default)]
pub(super) struct PairOutcome {
    pub(super) a: Option<RunMeasurements>,
    pub(super) b: Option<RunMeasurements>,
    pub(super) is_waiting: bool,
    pub(super) is_broken_off: bool,
    /// The planned number of repetitions when it was started.
    pub(super) planned_runs: Option<u32>,
}

impl PairOutcome {
    pub(super) fn put(&mut self, arm: Arm, measured: RunMeasurements) {
        match arm {
            Arm::A => self.a = Some(measured),
            Arm::B => self.b = Some(measured),
        }
    }

    /// Both sides, if both ended.
    pub(super) fn complete(&self) -> Option<(&RunMeasurements, &RunMeasurements)> {
        Some((self.a.as_ref()?, self.b.as_ref()?))
    }
}

/// The pairs of an experiment that count.
pub(super) struct CountedPairs<'c> {
    pub(super) schedule: &'c [Scheduled],
    pub(super) settled: &'c [Option<PairOutcome>],
    /// The number of pairs that count, if it was decided early.
    pub(super) until: Option<usize>,
}

/// How many pairs there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PairCounts {
    /// Those of the schedule.
    pub planned: usize,
    /// Those that count: both runs ended.
    pub complete: usize,
    /// Those that wait for a person.
    pub waiting: usize,
    /// Those in which a run was interrupted by a provider or a person.
    pub broken_off: usize,
    /// Those that were not started or not finished.
    pub not_done: usize,
}

/// The number of ended runs of each arm, tested against an equal split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleRatio {
    /// Runs of A.
    pub a: u64,
    /// Runs of B.
    pub b: u64,
    /// The probability of a split at least this uneven.
    pub p_value: f64,
}

/// The finding of a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricFinding {
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// How the arms compare by it.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// The finding of a guard rail: an event that should not happen more often.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardRailFinding {
    /// The guard rail.
    pub guard_rail: &'static str,
    /// How the arms compare by it.
    #[serde(flatten)]
    pub guard: Guard,
}

/// A pair of runs that counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairResult {
    /// The task.
    pub task_id: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// The arm that ran first.
    pub first: Arm,
    /// The run of A.
    pub a: RunMeasurements,
    /// The run of B.
    pub b: RunMeasurements,
}

/// The findings of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentFindings {
    /// The name of the experiment.
    pub experiment: String,
    /// The digest of its content.
    pub digest: String,
    /// The agent.
    pub agent: String,
    /// Arm A.
    pub a: ExperimentArm,
    /// Arm B.
    pub b: ExperimentArm,
    /// The tools whose implementations differ.
    pub differs: Vec<ToolDifference>,
    /// Whether both arms are the same library.
    pub is_same: bool,
    /// How many tasks.
    pub tasks: usize,
    /// How often each task is given to each arm.
    pub runs: u32,
    /// The seed of the order.
    pub seed: u64,
    /// The significance level: the probability of a verdict where there is no difference.
    pub alpha: f64,
    /// Whether its length was planned.
    #[serde(serialize_with = "stopping")]
    pub stopping: Stopping,
    /// Whether it was extended after it had started.
    pub is_extended: bool,
    /// Whether it was stopped because it was decided.
    pub is_stopped_early: bool,
    /// How many pairs there are.
    pub pairs: PairCounts,
    /// How many runs of each arm ended.
    pub sample_ratio: SampleRatio,
    /// The finding of each metric.
    pub metrics: Vec<MetricFinding>,
    /// The finding of each guard rail.
    pub guard_rails: Vec<GuardRailFinding>,
    /// Each pair that counts.
    pub results: Vec<PairResult>,
}

fn stopping<S: Serializer>(stopping: &Stopping, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match stopping {
        Stopping::Planned => "planned",
        Stopping::Optional => "optional",
    })
}

impl ExperimentFindings {
    pub(super) fn new(experiment: ExperimentDescription, counted: CountedPairs<'_>) -> Self {
        let until = counted.until.unwrap_or(counted.schedule.len());
        let within = || counted.schedule.iter().zip(counted.settled).take(until);
        let complete: Vec<(&Scheduled, &RunMeasurements, &RunMeasurements)> = within()
            .filter_map(|(pair, settled)| {
                let (a, b) = settled.as_ref()?.complete()?;
                Some((pair, a, b))
            })
            .collect();
        let all_of = |is: fn(&PairOutcome) -> bool| {
            within().filter(|(_, s)| s.as_ref().is_some_and(is)).count()
        };
        let pairs = PairCounts {
            planned: counted.schedule.len(),
            complete: complete.len(),
            waiting: all_of(|settled| settled.is_waiting),
            broken_off: all_of(|settled| settled.is_broken_off && !settled.is_waiting),
            not_done: counted.settled.iter().filter(|s| s.is_none()).count(),
        };
        let runs = [
            all_of(|settled| settled.a.is_some()) as u64,
            all_of(|settled| settled.b.is_some()) as u64,
        ];
        let is_priced = !complete.is_empty()
            && complete
                .iter()
                .all(|(_, a, b)| a.microdollars.is_some() && b.microdollars.is_some());
        let cost_in = match is_priced {
            true => CostIn::Microdollars,
            false => CostIn::Tokens,
        };
        let by = |of: &dyn Fn(&RunMeasurements) -> Option<f64>| -> Vec<Pair> {
            let pair = |(pair, a, b): &(&Scheduled, &RunMeasurements, &RunMeasurements)| {
                Some(Pair {
                    task: pair.task,
                    a: of(a)?,
                    b: of(b)?,
                })
            };
            complete.iter().filter_map(pair).collect()
        };
        let metrics = experiment
            .metrics
            .iter()
            .map(|metric| {
                let question = AnalysisSettings {
                    measure: metric.measure(),
                    alpha: experiment.alpha,
                    stopping: experiment.stopping,
                    seed: experiment.seed,
                };
                let measured = by(&|measured| metric.of(measured, cost_in));
                MetricFinding {
                    metric: metric.name(),
                    unit: unit(metric, cost_in),
                    analysis: judge(&measured, runs, &question),
                }
            })
            .collect();
        let guard_rails = GuardRail::ALL
            .into_iter()
            .map(|rail| GuardRailFinding {
                guard_rail: rail.name(),
                guard: guard(
                    &by(&|measured| Some(rail.of(measured))),
                    experiment.alpha,
                    experiment.seed,
                ),
            })
            .collect();
        let results = complete
            .iter()
            .map(|(pair, a, b)| PairResult {
                task_id: experiment.tasks.get(pair.task).cloned().unwrap_or_default(),
                repetition: pair.repetition,
                first: pair.first,
                a: (*a).clone(),
                b: (*b).clone(),
            })
            .collect();
        let [a, b] = experiment.arms;
        Self {
            is_same: a == b,
            experiment: experiment.name,
            digest: experiment.digest,
            agent: experiment.agent,
            a,
            b,
            differs: experiment.differs,
            tasks: experiment.tasks.len(),
            runs: experiment.runs,
            seed: experiment.seed,
            alpha: experiment.alpha,
            stopping: experiment.stopping,
            is_extended: experiment.is_extended,
            is_stopped_early: counted
                .until
                .is_some_and(|until| until < counted.schedule.len()),
            pairs,
            sample_ratio: SampleRatio {
                a: runs[0],
                b: runs[1],
                p_value: sample_ratio(&runs, &[1.0, 1.0]),
            },
            metrics,
            guard_rails,
            results,
        }
    }

    /// Whether the measurements do not allow a comparison.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        let mut all = self.metrics.iter();
        all.any(|by| matches!(by.analysis.verdict, ExperimentVerdict::Invalid { .. }))
    }
}

fn unit(metric: &ExperimentMetric, cost_in: CostIn) -> &'static str {
    match (metric, cost_in) {
        (ExperimentMetric::Success | ExperimentMetric::Check(_), _) => "share",
        (ExperimentMetric::Iterations, _) => "turns",
        (ExperimentMetric::Latency, _) => "milliseconds",
        (ExperimentMetric::Cost, CostIn::Tokens) => "tokens",
        (ExperimentMetric::Cost, CostIn::Microdollars) => "microdollars",
    }
}
