//! What an experiment shows, as data: what is printed as JSON, and what tables and reports are drawn from.

use serde::{Serialize, Serializer};
use windlass_learn::ab::{
    Analysis, Arm, Guard, Pair, Question, Stopping, Verdict, guard, judge, sample_ratio,
};

use super::arms::{Differs, Side};
use super::measure::{CostIn, GuardRail, Measured, Metric};
use super::schedule::Scheduled;

/// What an experiment consists of.
pub(super) struct Experiment {
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) agent: String,
    pub(super) sides: [Side; 2],
    pub(super) differs: Vec<Differs>,
    /// The ids of the tasks.
    pub(super) tasks: Vec<String>,
    pub(super) runs: u32,
    pub(super) seed: u64,
    pub(super) alpha: f64,
    pub(super) stopping: Stopping,
    /// Whether it was made longer after it had begun.
    pub(super) is_extended: bool,
    pub(super) metrics: Vec<Metric>,
}

/// What came of a pair.
#[derive(Debug, Clone, Default)]
pub(super) struct Settled {
    pub(super) a: Option<Measured>,
    pub(super) b: Option<Measured>,
    pub(super) is_waiting: bool,
    pub(super) is_broken_off: bool,
    /// How often everything was to be done when it was begun.
    pub(super) planned_runs: Option<u32>,
}

impl Settled {
    pub(super) fn put(&mut self, arm: Arm, measured: Measured) {
        match arm {
            Arm::A => self.a = Some(measured),
            Arm::B => self.b = Some(measured),
        }
    }

    /// Both sides, if both ended.
    pub(super) fn complete(&self) -> Option<(&Measured, &Measured)> {
        Some((self.a.as_ref()?, self.b.as_ref()?))
    }
}

/// What of an experiment counts.
pub(super) struct Counted<'c> {
    pub(super) schedule: &'c [Scheduled],
    pub(super) settled: &'c [Option<Settled>],
    /// How many pairs of the schedule, if it was decided early.
    pub(super) until: Option<usize>,
}

/// How many pairs there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct PairCounts {
    pub(super) planned: usize,
    /// Those that count.
    pub(super) complete: usize,
    pub(super) waiting: usize,
    pub(super) broken_off: usize,
    pub(super) not_done: usize,
}

/// How many runs of each arm came to an end, and how likely that is if half were to be of either.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SampleRatio {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) p_value: f64,
}

/// What was found by one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ByMetric {
    pub(super) metric: String,
    pub(super) unit: &'static str,
    #[serde(flatten)]
    pub(super) analysis: Analysis,
}

/// What was found by one guard rail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ByGuardRail {
    pub(super) guard_rail: &'static str,
    #[serde(flatten)]
    pub(super) guard: Guard,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Result {
    pub(super) task_id: String,
    pub(super) repetition: u32,
    pub(super) first: Arm,
    pub(super) a: Measured,
    pub(super) b: Measured,
}

/// What an experiment shows.
#[derive(Serialize)]
pub(super) struct Findings {
    pub(super) experiment: String,
    pub(super) digest: String,
    pub(super) agent: String,
    pub(super) a: Side,
    pub(super) b: Side,
    /// The tools whose implementations differ.
    pub(super) differs: Vec<Differs>,
    /// Whether both arms are the same library.
    pub(super) is_same: bool,
    pub(super) tasks: usize,
    pub(super) runs: u32,
    pub(super) seed: u64,
    pub(super) alpha: f64,
    #[serde(serialize_with = "stopping")]
    pub(super) stopping: Stopping,
    pub(super) is_extended: bool,
    pub(super) is_stopped_early: bool,
    pub(super) pairs: PairCounts,
    pub(super) sample_ratio: SampleRatio,
    pub(super) metrics: Vec<ByMetric>,
    pub(super) guard_rails: Vec<ByGuardRail>,
    pub(super) results: Vec<Result>,
}

fn stopping<S: Serializer>(
    stopping: &Stopping,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(match stopping {
        Stopping::Planned => "planned",
        Stopping::Optional => "optional",
    })
}

impl Findings {
    pub(super) fn new(experiment: Experiment, counted: Counted<'_>) -> Self {
        let until = counted.until.unwrap_or(counted.schedule.len());
        let within = || counted.schedule.iter().zip(counted.settled).take(until);
        let complete: Vec<(&Scheduled, &Measured, &Measured)> = within()
            .filter_map(|(pair, settled)| {
                let (a, b) = settled.as_ref()?.complete()?;
                Some((pair, a, b))
            })
            .collect();
        let all_of =
            |is: fn(&Settled) -> bool| within().filter(|(_, s)| s.as_ref().is_some_and(is)).count();
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
        let by = |of: &dyn Fn(&Measured) -> Option<f64>| -> Vec<Pair> {
            let pair = |(pair, a, b): &(&Scheduled, &Measured, &Measured)| {
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
                let question = Question {
                    measure: metric.measure(),
                    alpha: experiment.alpha,
                    stopping: experiment.stopping,
                    seed: experiment.seed,
                };
                let measured = by(&|measured| metric.of(measured, cost_in));
                ByMetric {
                    metric: metric.name(),
                    unit: unit(metric, cost_in),
                    analysis: judge(&measured, runs, &question),
                }
            })
            .collect();
        let guard_rails = GuardRail::ALL
            .into_iter()
            .map(|rail| ByGuardRail {
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
            .map(|(pair, a, b)| Result {
                task_id: experiment.tasks.get(pair.task).cloned().unwrap_or_default(),
                repetition: pair.repetition,
                first: pair.first,
                a: (*a).clone(),
                b: (*b).clone(),
            })
            .collect();
        let [a, b] = experiment.sides;
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

    /// Whether what was measured says nothing about the arms.
    pub(super) fn is_invalid(&self) -> bool {
        let mut all = self.metrics.iter();
        all.any(|by| matches!(by.analysis.verdict, Verdict::Invalid { .. }))
    }
}

fn unit(metric: &Metric, cost_in: CostIn) -> &'static str {
    match (metric, cost_in) {
        (Metric::Success | Metric::Check(_), _) => "share",
        (Metric::Iterations, _) => "turns",
        (Metric::Latency, _) => "milliseconds",
        (Metric::Cost, CostIn::Tokens) => "tokens",
        (Metric::Cost, CostIn::Microdollars) => "microdollars",
    }
}
