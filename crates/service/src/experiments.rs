//! Experiments: run every task with two libraries, in pairs, in the order of a schedule. Also the comparison of
//! tool variants between which a library splits principals. The runs of an experiment are found in the store by
//! the ids of their tasks, so that an interrupted experiment repeats nothing.

mod arms;
mod findings;
mod measure;
mod schedule;
mod started;
mod variants;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use windlass_core::run::{Run, Settings, Task};
use windlass_learn::ab::{Arm, EProcess, Stopping};
use windlass_runtime::{Driver, NewTask, Stop};
use windlass_spec::{RunId, TaskInput, ToolName};
use windlass_store::{RunFilter, Store};

use crate::assembly::{BoundAgent, DeclaredAgent, NewRun};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::options::{Attachment, RunOptions};
use crate::service::Service;
use findings::{CountedPairs, ExperimentDescription, PairOutcome};
use measure::{CostIn, is_outcome, measure};
use schedule::{Scheduled, schedule};

pub use arms::{ExperimentArm, ToolDifference};
pub use findings::{
    ExperimentFindings, GuardRailFinding, MetricFinding, PairCounts, PairResult, SampleRatio,
};
pub use measure::{ExperimentMetric, RunMeasurements};
pub(crate) use started::StartedExperiments;
pub use started::{BegunExperiment, ExperimentState, ExperimentStatus};
pub use variants::{VariantComparison, VariantQuery, VariantSplit, VariantSummary};

/// The length of the digest's prefix that is an experiment's default name.
const NAME_LENGTH: usize = 12;

/// How often a run is looked at that another process drives.
const OWNED_PERIOD: Duration = Duration::from_millis(100);

/// The request for an experiment.
#[derive(Debug, Clone)]
pub struct ExperimentRequest {
    /// Its name; by default a digest of its content.
    pub name: Option<String>,
    /// The library of arm A.
    pub a: String,
    /// The library of arm B.
    pub b: String,
    /// The tasks.
    pub tasks: Vec<TaskInput>,
    /// How often each task is given to each arm.
    pub runs: u32,
    /// The metrics. The first is the primary one.
    pub metrics: Vec<ExperimentMetric>,
    /// The seed of the order.
    pub seed: u64,
    /// The significance level: the probability of a verdict where there is no difference.
    pub alpha: f64,
    /// Whether it continues with runs it already has.
    pub is_resumed: bool,
    /// Whether it is stopped as soon as the first metric is decided.
    pub stops_early: bool,
    /// How many pairs run at the same time.
    pub jobs: usize,
    /// The options of both arms, besides the library.
    pub options: RunOptions,
    /// The limits of each run.
    pub settings: Settings,
}

/// An experiment that can be run: the agent is bound for both arms, and the runs it has already are known.
pub struct Experiment {
    request: ExperimentRequest,
    service: Service,
    identity: Identity,
    agents: [BoundAgent; 2],
    agent: String,
    name: String,
    digest: String,
    arms: [ExperimentArm; 2],
    differs: Vec<ToolDifference>,
    schedule: Vec<Scheduled>,
    earlier: EarlierRuns,
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment")
            .field("name", &self.name)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Prepares an experiment with an agent: binds it for both arms and finds the runs it has already.
    ///
    /// # Errors
    /// If the identity may not run agents; if a metric is a command, or a library is a file that the configuration does
    /// not name, and the identity is no administrator; if the request is not valid; if the agent cannot be bound for an arm; or if the experiment has runs
    /// already and is not to be resumed.
    pub fn prepare_experiment(
        &self,
        identity: &Identity,
        declared: &DeclaredAgent,
        request: ExperimentRequest,
    ) -> Result<Experiment, ServiceError> {
        identity.require(Scope::Run)?;
        let is_command = |metric: &ExperimentMetric| matches!(metric, ExperimentMetric::Check(_));
        if request.metrics.iter().any(is_command) {
            // A check is run by a shell with the rights of this process.
            identity.require(Scope::Admin)?;
        }
        arms::require(self, identity, &request)?;
        request.check()?;
        let (arms, differs) = arms::compare(self, declared, &request)?;
        let agents = arms::bind(self, identity, declared, &request)?;
        let digest = request.digest(self, declared)?;
        let name = match &request.name {
            Some(name) => name.clone(),
            None => digest.chars().take(NAME_LENGTH).collect(),
        };
        let schedule = schedule(request.tasks.len(), request.runs, request.seed);
        let agent = declared.agent().name().to_string();
        let earlier = self.earlier_runs(identity, &agent, &name, &schedule, &request.tasks)?;
        if !request.is_resumed && !earlier.is_empty() {
            let message = format!("the experiment `{name}` has {} runs already", earlier.len());
            return Err(ServiceError::conflict("has_runs", message).with_hint(
                "`--resume` continues it; another `--seed` or `--name` starts a new one",
            ));
        }
        Ok(Experiment {
            request,
            service: self.clone(),
            identity: identity.clone(),
            agents,
            agent,
            name,
            digest,
            arms,
            differs,
            schedule,
            earlier,
        })
    }

    /// The runs of an experiment that are done or can be resumed.
    fn earlier_runs(
        &self,
        identity: &Identity,
        agent: &str,
        experiment: &str,
        schedule: &[Scheduled],
        tasks: &[TaskInput],
    ) -> Result<EarlierRuns, ServiceError> {
        let store = self.store()?;
        let mut earlier = EarlierRuns::new();
        for pair in schedule {
            let Some(task) = tasks.get(pair.task) else {
                continue;
            };
            for arm in Arm::ALL {
                let id = task_id(experiment, task, pair, arm);
                let filter = RunFilter {
                    tenant: Some(identity.tenant().to_string()),
                    agent: Some(agent.to_owned()),
                    task_id: Some(id.clone()),
                    ..RunFilter::default()
                };
                let usable = store.runs(&filter)?.into_iter().find(|run| {
                    let can_count = run.end.as_ref().is_none_or(is_outcome);
                    can_count && run.purged.is_none()
                });
                if let Some(run) = usable {
                    earlier.insert(id, run.run);
                }
            }
        }
        Ok(earlier)
    }
}

impl ExperimentRequest {
    fn check(&self) -> Result<(), ServiceError> {
        let invalid = |code, message: &str| Err(ServiceError::invalid(code, message));
        if self
            .name
            .as_ref()
            .is_some_and(|name| name.trim().is_empty())
        {
            return invalid("empty_name", "the name of the experiment is empty");
        }
        if self.tasks.is_empty() || self.runs == 0 || self.jobs == 0 {
            return invalid("nothing_to_do", "the experiment has no tasks, runs or jobs");
        }
        if self.metrics.is_empty() {
            return invalid("no_metric", "the experiment has no metric");
        }
        if !(self.alpha > 0.0 && self.alpha < 1.0) {
            return invalid("bad_alpha", "alpha is a number between 0 and 1");
        }
        Ok(())
    }
}

impl Experiment {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// How many pairs of runs it consists of.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.schedule.len()
    }

    /// Runs the remaining pairs, until `stop` is cancelled, and analyses the results. `pair_done` is called
    /// for each pair.
    ///
    /// # Errors
    /// If a run cannot be driven or measured, or earlier runs belong to another experiment.
    pub async fn run(
        &self,
        stop: &Stop,
        mut pair_done: impl FnMut(),
    ) -> Result<ExperimentFindings, ServiceError> {
        let (request, metrics) = (&self.request, &self.request.metrics);
        let store = self.service.store()?;
        let driver = |bound: &BoundAgent| {
            let attachment = Attachment {
                stop: stop.clone(),
                ..Attachment::default()
            };
            bound.driver(&self.identity, attachment)
        };
        let [a, b] = &self.agents;
        let work = ExperimentDriver {
            experiment: self,
            drivers: [driver(a)?, driver(b)?],
            store: &store,
            stop,
            is_decided: AtomicBool::new(false),
        };
        let mut settled: Vec<Option<PairOutcome>> = self.schedule.iter().map(|_| None).collect();
        let mut ended = futures::stream::iter(0..self.schedule.len())
            .map(|index| {
                let work = &work;
                async move {
                    match self.schedule.get(index) {
                        Some(pair) => (index, work.pair(pair).await),
                        None => (index, Ok(None)),
                    }
                }
            })
            .buffer_unordered(request.jobs);
        while let Some((index, of_pair)) = ended.next().await {
            pair_done();
            if let Some(place) = settled.get_mut(index) {
                *place = of_pair?;
            }
            if request.stops_early && decided(&settled, metrics, request.alpha).is_some() {
                work.is_decided.store(true, Ordering::Relaxed);
            }
        }
        Ok(self.findings(&settled))
    }

    fn findings(&self, settled: &[Option<PairOutcome>]) -> ExperimentFindings {
        let request = &self.request;
        // An experiment that was extended after its results were seen has no planned length any more.
        let is_extended = settled.iter().flatten().any(|pair| {
            pair.planned_runs
                .is_some_and(|planned| planned != request.runs)
        });
        let stopping = match request.stops_early || is_extended {
            true => Stopping::Optional,
            false => Stopping::Planned,
        };
        let until = match request.stops_early {
            true => decided(settled, &request.metrics, request.alpha),
            false => None,
        };
        let tasks = request.tasks.iter();
        let description = ExperimentDescription {
            name: self.name.clone(),
            digest: self.digest.clone(),
            agent: self.agent.clone(),
            arms: self.arms.clone(),
            differs: self.differs.clone(),
            tasks: tasks.map(|task| task.task_id.to_string()).collect(),
            runs: request.runs,
            seed: request.seed,
            alpha: request.alpha,
            stopping,
            is_extended,
            metrics: request.metrics.clone(),
        };
        let counted = CountedPairs {
            schedule: &self.schedule,
            settled,
            until,
        };
        ExperimentFindings::new(description, counted)
    }
}

/// The task id of a run, by which the run is found again.
fn task_id(experiment: &str, task: &TaskInput, pair: &Scheduled, arm: Arm) -> String {
    format!(
        "{}@{experiment}/{}{}",
        task.task_id,
        pair.repetition,
        arm.as_str()
    )
}

/// The existing runs of an experiment, by their task ids.
type EarlierRuns = HashMap<String, RunId>;

/// After how many pairs of the schedule the first metric is decided, if it is. Only pairs before the first
/// unsettled one count, so that the result does not depend on which pair was faster.
fn decided(
    settled: &[Option<PairOutcome>],
    metrics: &[ExperimentMetric],
    alpha: f64,
) -> Option<usize> {
    let metric = metrics.first()?;
    let mut evidence = EProcess::new(metric.measure().outcomes);
    for (index, pair) in settled.iter().enumerate() {
        let pair = pair.as_ref()?;
        let Some((a, b)) = pair.complete() else {
            continue;
        };
        // Prices are known for all runs or for none; tokens are known during the experiment.
        let of = |measured: &RunMeasurements| metric.of(measured, CostIn::Tokens);
        if let (Some(a), Some(b)) = (of(a), of(b)) {
            evidence.add(a, b);
        }
        if evidence.is_enough(alpha) {
            return Some(index + 1);
        }
    }
    None
}

/// A running experiment.
struct ExperimentDriver<'w> {
    experiment: &'w Experiment,
    drivers: [Driver; 2],
    store: &'w Arc<Store>,
    stop: &'w Stop,
    /// Whether the remaining pairs are not needed.
    is_decided: AtomicBool,
}

impl ExperimentDriver<'_> {
    /// Runs a pair, one arm after the other. `None` if it was not started or not finished.
    async fn pair(&self, pair: &Scheduled) -> Result<Option<PairOutcome>, ServiceError> {
        let request = &self.experiment.request;
        let mut settled = PairOutcome::default();
        let Some(task) = request.tasks.get(pair.task) else {
            return Ok(None);
        };
        for arm in pair.arms() {
            if self.is_stopped() || self.is_decided.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let run = self.arm(pair, task, arm).await?;
            settled.planned_runs = planned(&run).or(settled.planned_runs);
            match run.end() {
                Some(end) if is_outcome(end) => {
                    let service = &self.experiment.service;
                    let measured =
                        measure(&run, task, &request.metrics, service, self.store).await?;
                    settled.put(arm, measured);
                }
                Some(_) => settled.is_broken_off = true,
                None if run.end_or_waiting().is_some() => settled.is_waiting = true,
                None => return Ok(None),
            }
        }
        Ok(Some(settled))
    }

    fn is_stopped(&self) -> bool {
        self.stop.after_step.is_cancelled() || self.stop.at_once.is_cancelled()
    }

    /// A run with all its turns, which are measured. A driver returns a long one without its first turns.
    fn whole(&self, run: Run) -> Result<Run, ServiceError> {
        match run.has_released_turns() {
            true => Ok(self.store.fold(run.id())?),
            false => Ok(run),
        }
    }

    /// The run of an arm: an earlier one if there is one, else a new one.
    async fn arm(&self, pair: &Scheduled, task: &TaskInput, arm: Arm) -> Result<Run, ServiceError> {
        let experiment = self.experiment;
        let [a, b] = &self.drivers;
        let driver = match arm {
            Arm::A => a,
            Arm::B => b,
        };
        let id = task_id(&experiment.name, task, pair, arm);
        let Some(run) = experiment.earlier.get(&id) else {
            let run = driver.start(self.new_task(id, pair, task, arm)).await?;
            return self.whole(run);
        };
        let mut earlier = self.store.fold(run)?;
        if earlier.task().metadata.get("experiment_digest") != Some(&json!(experiment.digest)) {
            let message = format!(
                "the experiment `{}` was started with another agent, library, task, seed or option",
                experiment.name
            );
            return Err(ServiceError::conflict("other_experiment", message)
                .with_hint("give it another `--name`"));
        }
        loop {
            if earlier.end().is_some() {
                return Ok(earlier);
            }
            match driver.resume(run).await.map_err(ServiceError::from) {
                // A worker has resumed it: its result counts, too.
                Err(error) if error.code() == "owned_elsewhere" => {
                    if self.is_stopped() {
                        return Ok(earlier);
                    }
                    tokio::time::sleep(OWNED_PERIOD).await;
                    earlier = self.store.fold(run)?;
                }
                resumed => return self.whole(resumed?),
            }
        }
    }

    fn new_task(&self, id: String, pair: &Scheduled, task: &TaskInput, arm: Arm) -> NewTask {
        let experiment = self.experiment;
        let mut settings = experiment.request.settings.clone();
        if let Some(limit) = task.max_iterations {
            settings.max_iterations = limit.get();
        }
        let names = |names: &Vec<ToolName>| names.iter().map(ToString::to_string).collect();
        let mut metadata = task.metadata.clone();
        let about: [(&str, Value); 6] = [
            ("experiment", json!(experiment.name)),
            ("experiment_digest", json!(experiment.digest)),
            ("arm", json!(arm.as_str())),
            (
                "pair",
                json!(format!("{}/{}", task.task_id, pair.repetition)),
            ),
            ("repetition", json!(pair.repetition)),
            ("planned_runs", json!(experiment.request.runs)),
        ];
        for (key, value) in about {
            metadata.insert(key.to_owned(), value);
        }
        let [a, b] = &experiment.agents;
        let agent = match arm {
            Arm::A => a,
            Arm::B => b,
        };
        agent.task(NewRun {
            run: None,
            conversation: None,
            task_id: Some(id),
            task: Task {
                description: task.description.to_string(),
                domain: Some(task.domain().to_owned()),
                strategies: task.playbook_bullets.clone(),
                available_tools: task.available_tools.as_ref().map(names),
                metadata,
                ..Task::default()
            },
            settings,
        })
    }
}

/// The planned number of repetitions when a run was started.
fn planned(run: &Run) -> Option<u32> {
    let planned = run.task().metadata.get("planned_runs")?.as_u64()?;
    u32::try_from(planned).ok()
}

#[cfg(test)]
mod tests {
    use windlass_core::approval::Principal;
    use windlass_spec::NonEmptyText;

    use super::*;
    use crate::options::Overrides;

    const AGENT: &str = r#"[prices:Agent {
  description: "Looks up prices",
  instruction: "Look up the price that is asked for.",
  model: "OpenAI/gpt-4o-mini"
} |
  [lookUpPrice:Tool {description: "Looks up the price of an item"} |
    (item::Text)==>(::Text)
  ]
]
"#;

    fn request(metrics: &[&str]) -> ExperimentRequest {
        let metrics: Vec<String> = metrics.iter().map(|&name| name.to_owned()).collect();
        let line = r#"{"task_id": "pears", "description": "Look up the price of pears"}"#;
        let tasks = windlass_spec::read_tasks(line).tasks.into_iter();
        ExperimentRequest {
            name: None,
            a: "old.toml".to_owned(),
            b: "new.toml".to_owned(),
            tasks: tasks.map(|(_, task)| task).collect(),
            runs: 1,
            metrics: ExperimentMetric::parse_all(&metrics).unwrap(),
            seed: 1,
            alpha: 0.05,
            is_resumed: false,
            stops_early: false,
            jobs: 1,
            options: RunOptions::default(),
            settings: Settings::default(),
        }
    }

    #[test]
    fn an_experiment_needs_the_run_scope_and_a_check_command_the_admin_scope() {
        let data = tempfile::tempdir().unwrap();
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        let service = Service::open(None, overrides);
        let file = windlass_spec::read(AGENT).file.unwrap();
        let declared = DeclaredAgent::choose(file, None, "agent.gram").unwrap();
        let refused = |scope, metrics: &[&str]| {
            let tenant = NonEmptyText::new("acme").unwrap();
            let identity = Identity::new(tenant, Principal::new("ada").unwrap(), [scope]);
            let prepared = service.prepare_experiment(&identity, &declared, request(metrics));
            prepared.unwrap_err()
        };
        assert_eq!(refused(Scope::Read, &[]).code(), "scope_missing");
        assert_eq!(refused(Scope::Run, &["check:true"]).code(), "scope_missing");
        // Its libraries are files that the configuration does not name.
        assert_eq!(refused(Scope::Run, &[]).code(), "scope_missing");
        // With the scope, it fails only at the libraries, which do not exist.
        let error = refused(Scope::Admin, &["check:true"]);
        assert!(error.message().contains("old.toml"), "{error}");
    }
}
