//! Many tasks for one agent, some of them at the same time.

use futures::StreamExt as _;
use windlass_core::run::{Run, RunEnd, Settings, Task};
use windlass_learn::ab::Random;
use windlass_runtime::Driver;
use windlass_spec::registry::{ContextError, Environment};
use windlass_spec::{RunId, TaskInput, ToolName, read_tasks};

use crate::assembly::{BoundAgent, DeclaredAgent, NewRun};
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::options::Attachment;
use crate::runs::RunQuery;
use crate::service::Service;

/// How a batch is run.
#[derive(Debug, Clone, Default)]
pub struct BatchOptions {
    /// How many tasks run at the same time, at least 1.
    pub jobs: usize,
    /// Whether earlier runs of the same tasks are used instead of new ones, if they are done or can be
    /// resumed.
    pub resume: bool,
    /// The limits of each run.
    pub settings: Settings,
    /// Shuffles the tasks in an order that depends only on this number. Without it they keep their order.
    pub seed: Option<u64>,
}

/// The tasks of a text, one JSON object per line, that an agent can be given.
#[derive(Debug, Clone, Default)]
pub struct CheckedTasks {
    /// The valid tasks.
    pub tasks: Vec<TaskInput>,
    /// What is wrong with the others, with the number of the line, in the order of the lines.
    pub errors: Vec<(usize, String)>,
}

impl DeclaredAgent {
    /// Reads tasks for the agent. `place` is what the text is called in messages.
    #[must_use]
    pub fn read_tasks(&self, text: &str, place: &str) -> CheckedTasks {
        let read = read_tasks(text);
        let errors = read.errors.iter();
        let mut checked = CheckedTasks {
            tasks: Vec::new(),
            errors: errors
                .map(|error| (error.line, error.in_file(place.to_owned())))
                .collect(),
        };
        let known = self.tool_names();
        for (line, task) in read.tasks {
            if let Err(error) = NewRun::of_task(&task, Settings::default()).check() {
                let id = &task.task_id;
                let error = format!("{place}:{line}: task `{id}`: {error}");
                checked.errors.push((line, error));
                continue;
            }
            match task.check_tools(known.iter().copied()) {
                Ok(()) => checked.tasks.push(task),
                Err(missing) => checked.errors.extend(missing.into_iter().map(|tool| {
                    let id = &task.task_id;
                    (line, format!("{place}:{line}: task `{id}`: {tool}"))
                })),
            }
        }
        checked.errors.sort_by_key(|(line, _)| *line);
        checked
    }
}

impl NewRun {
    /// The run of a task, with the limits of the task within these.
    #[must_use]
    pub fn of_task(task: &TaskInput, mut settings: Settings) -> Self {
        if let Some(limit) = task.max_iterations {
            settings.max_iterations = limit.get();
        }
        let names = |names: &Vec<ToolName>| names.iter().map(ToString::to_string).collect();
        Self {
            task_id: Some(task.task_id.to_string()),
            task: Task {
                description: task.description.to_string(),
                domain: Some(task.domain().to_owned()),
                strategies: task.playbook_bullets.clone(),
                available_tools: task.available_tools.as_ref().map(names),
                metadata: task.metadata.clone(),
                ..Task::default()
            },
            settings,
            ..Self::default()
        }
    }

    /// Checks what the metadata of the task says about its origin.
    fn check(&self) -> Result<(), ContextError> {
        let checked = self.task.context(Environment::DEVELOPMENT, []);
        checked.map(drop)
    }
}

impl BoundAgent {
    /// Runs all tasks. Each run is passed to `done` as soon as it is over or suspended, in that order;
    /// `None` for tasks that were not started because the batch was stopped.
    ///
    /// What is learned does not depend on which task is done first: with learning, the tasks that run
    /// together recall the same strategies, and are learned from in their order before the next ones start.
    ///
    /// # Errors
    /// If the identity may not run agents or the store cannot be opened. The error of one task is passed
    /// to `done`.
    pub async fn run_batch(
        &self,
        identity: &Identity,
        tasks: &[TaskInput],
        options: &BatchOptions,
        attachment: Attachment,
        mut done: impl FnMut(&TaskInput, Result<Option<&Run>, ServiceError>),
    ) -> Result<(), ServiceError> {
        let mut tasks: Vec<&TaskInput> = tasks.iter().collect();
        if let Some(seed) = options.seed {
            Random::new(seed).shuffle(&mut tasks);
        }
        let stop = attachment.stop.clone();
        let driver = self.driver(identity, attachment)?.learning_later();
        let is_stopped = || stop.after_step.is_cancelled() || stop.at_once.is_cancelled();
        let jobs = options.jobs.max(1);
        let together = match driver.crew().learns() {
            true => jobs,
            false => tasks.len().max(1),
        };
        for round in tasks.chunks(together) {
            let mut runs: Vec<Option<Run>> = round.iter().map(|_| None).collect();
            let numbered = round.iter().copied().enumerate();
            let (driver, is_stopped) = (&driver, &is_stopped);
            let mut ending = futures::stream::iter(numbered)
                .map(|(place, task)| async move {
                    let run = match is_stopped() {
                        true => Ok(None),
                        false => self
                            .run_task(identity, driver, task, options)
                            .await
                            .map(Some),
                    };
                    (place, task, run)
                })
                .buffer_unordered(jobs);
            while let Some((place, task, run)) = ending.next().await {
                match run {
                    Ok(run) => {
                        done(task, Ok(run.as_ref()));
                        runs[place] = run;
                    }
                    Err(error) => done(task, Err(error)),
                }
            }
            drop(ending);
            for run in runs.iter().flatten() {
                driver.learn(run).await;
            }
        }
        Ok(())
    }

    /// The run of a task: an earlier one if `resume` is set and there is one, else a new one.
    async fn run_task(
        &self,
        identity: &Identity,
        driver: &Driver,
        task: &TaskInput,
        options: &BatchOptions,
    ) -> Result<Run, ServiceError> {
        let new = NewRun::of_task(task, options.settings.clone());
        let earlier = match options.resume {
            true => earlier(self.service(), identity, self.agent().name().as_str(), &new)?,
            false => None,
        };
        Ok(match earlier {
            Some(id) => driver.resume(&id).await?,
            None => driver.start(self.task(new)).await?,
        })
    }
}

/// The latest run of the same task by the same agent that is done or can be resumed.
fn earlier(
    service: &Service,
    identity: &Identity,
    agent: &str,
    wanted: &NewRun,
) -> Result<Option<RunId>, ServiceError> {
    let query = RunQuery {
        agent: Some(agent.to_owned()),
        task_id: wanted.task_id.clone(),
        ..RunQuery::default()
    };
    for found in service.list_runs(identity, &query)? {
        let found = found.summary;
        let is_usable = matches!(
            found.end,
            None | Some(RunEnd::Completed | RunEnd::IterationLimit | RunEnd::WaitingForPerson)
        );
        if !is_usable || found.purged.is_some() {
            continue;
        }
        if service.run(identity, found.run.as_str())?.task() == &wanted.task {
            return Ok(Some(found.run));
        }
    }
    Ok(None)
}
