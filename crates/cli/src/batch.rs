//! `windlass run --tasks FILE`: many tasks, some of them at the same time. One output a line on
//! standard output. What an earlier batch has done is found again by the ids of its tasks.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use windlass_core::run::{Run, RunEnd, Task};
use windlass_learn::ab::Random;
use windlass_runtime::{Driver, NewTask, Progress, Stop, Watch};
use windlass_spec::{RunId, TaskInput, ToolName};
use windlass_store::{RunFilter, Store};

use super::Outcome;
use super::arguments::RunTask;
use super::crew::Chosen;
use super::ending::exit_code;
use super::interrupt::stop_on_interrupt;
use super::live::bar;
use super::run::block_on;
use super::tasks::Tasks;
use super::terminal::{complain, put, visible};
use super::{crew, data, gaps};

pub(super) fn run(command: &RunTask, file: &Path, chosen: &Chosen) -> anyhow::Result<Outcome> {
    let mut read = Tasks::read(file, chosen)?;
    if let Some(seed) = command.seed {
        Random::new(seed).shuffle(&mut read.tasks);
    }
    let outcome = work(command, &read.tasks, chosen)?;
    Ok(read.ended(outcome))
}

fn work(command: &RunTask, tasks: &[TaskInput], chosen: &Chosen) -> anyhow::Result<Outcome> {
    let workers = chosen.assemble(&command.crew, command.data.as_deref())?;
    let (workers, _watching) = workers.watched(false);
    let stored = data::open(command.data.as_deref())?;
    let store = Arc::clone(stored.store());
    let bar = bar("tasks", tasks.len());
    let codes = block_on(async {
        let stop = stop_on_interrupt();
        let driver = Driver::new(workers, Arc::new(stored))
            .stopped_by(stop.clone())
            .watched_by(warnings(&bar))
            .learning_later();
        let batch = Batch {
            command,
            driver,
            store,
            stop,
        };
        batch.work_on_all(tasks, &bar).await
    })?;
    bar.finish_and_clear();
    let codes = codes.into_iter().collect::<anyhow::Result<Vec<u8>>>()?;
    let count = |wanted: fn(u8) -> bool| codes.iter().filter(|code| wanted(**code)).count();
    let (done, left) = (count(|code| code == 0), count(|code| code == INTERRUPTED));
    complain(&format!("{done} of {} tasks completed", tasks.len()))?;
    let waiting = count(|code| code == WAITING);
    if waiting > 0 {
        complain(&format!(
            "{waiting} wait for a person: `windlass approvals list` shows what is asked; the same \
             command with `--resume` goes on with them"
        ))?;
    }
    if left > 0 {
        complain("the rest was not done; the same command with `--resume` goes on with it")?;
        return Ok(Outcome::Code(INTERRUPTED));
    }
    if waiting > 0 && done + waiting == codes.len() {
        return Ok(Outcome::Code(WAITING));
    }
    Ok(Outcome::Code(u8::from(done < codes.len())))
}

/// The exit code of what was stopped.
const INTERRUPTED: u8 = 130;

/// The exit code of what waits for a person.
const WAITING: u8 = 4;

/// Tells what is not as it should be, each thing once.
fn warnings(bar: &ProgressBar) -> Watch {
    let bar = bar.clone();
    let told: Mutex<HashSet<String>> = Mutex::default();
    Arc::new(move |_: &RunId, progress: Progress<'_>| {
        let Progress::Warning(warning) = progress else {
            return;
        };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(warning.to_owned()) {
            // Whoever reads may go away; the batch goes on.
            let _ = bar.suspend(|| complain(&format!("warning: {warning}")));
        }
    })
}

struct Batch<'c> {
    command: &'c RunTask,
    driver: Driver,
    store: Arc<Store>,
    stop: Stop,
}

impl Batch<'_> {
    /// Works on all tasks, some at the same time. What they teach must not depend on which is done first:
    /// where something is learned, those that are worked on together all know the same, and are learned
    /// from in their order before the next begin.
    async fn work_on_all(&self, tasks: &[TaskInput], bar: &ProgressBar) -> Vec<anyhow::Result<u8>> {
        let jobs = usize::from(self.command.jobs);
        let together = match self.driver.crew().learns() {
            true => jobs,
            false => tasks.len().max(1),
        };
        let mut codes = Vec::new();
        for round in tasks.chunks(together) {
            let mut runs: Vec<Option<Run>> = round.iter().map(|_| None).collect();
            let numbered = round.iter().enumerate();
            let mut done = futures::stream::iter(numbered)
                .map(|(place, task)| async move { (place, task, self.work_on(task).await) })
                .buffer_unordered(jobs);
            while let Some((place, task, outcome)) = done.next().await {
                codes.push(outcome.and_then(|run| {
                    let code = tell(task, run.as_ref(), bar)?;
                    runs[place] = run;
                    Ok(code)
                }));
            }
            for run in runs.iter().flatten() {
                self.driver.learn(run).await;
            }
        }
        codes
    }

    /// The run of a task: an earlier one if it is wanted and there is one, else a new one. `None` if
    /// the batch was stopped before.
    async fn work_on(&self, task: &TaskInput) -> anyhow::Result<Option<Run>> {
        if self.stop.after_step.is_cancelled() || self.stop.at_once.is_cancelled() {
            return Ok(None);
        }
        let new = self.new_task(task)?;
        let earlier = match self.command.resume {
            true => self.earlier(task, &new.task)?,
            false => None,
        };
        let run = match earlier {
            Some(id) => self.driver.resume(&id).await?,
            None => self.driver.start(new).await?,
        };
        Ok(Some(run))
    }

    fn new_task(&self, task: &TaskInput) -> anyhow::Result<NewTask> {
        let mut settings = self.command.limits.settings();
        if let Some(limit) = task.max_iterations {
            settings.max_iterations = limit.get();
        }
        let names = |names: &Vec<ToolName>| names.iter().map(ToString::to_string).collect();
        Ok(NewTask {
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
            assembly: crew::assembly(&self.command.crew)?,
        })
    }

    /// The latest run of the same task by the same agent that is done or can be gone on with.
    fn earlier(&self, task: &TaskInput, wanted: &Task) -> anyhow::Result<Option<RunId>> {
        let agent = self.driver.crew().lead().agent.name();
        let filter = RunFilter {
            agent: Some(agent.to_string()),
            task_id: Some(task.task_id.to_string()),
            ..RunFilter::default()
        };
        for found in self.store.runs(&filter)? {
            let may_stand = matches!(
                found.end,
                None | Some(RunEnd::Completed | RunEnd::IterationLimit | RunEnd::WaitingForPerson)
            );
            if !may_stand || found.purged.is_some() {
                continue;
            }
            if self.store.fold(&found.run)?.task() == wanted {
                return Ok(Some(found.run));
            }
        }
        Ok(None)
    }
}

/// Says what came of a task. Its exit code, as if it had been the only one.
fn tell(task: &TaskInput, run: Option<&Run>, bar: &ProgressBar) -> anyhow::Result<u8> {
    let Some(run) = run else {
        return Ok(INTERRUPTED);
    };
    let end = json!(run.standing());
    let word = end["end"].as_str().unwrap_or("stopped");
    if run.end().is_some() {
        let mut metadata = task.metadata.clone();
        metadata.insert("run".to_owned(), json!(run.id()));
        metadata.insert("end".to_owned(), end.clone());
        let output = run
            .output(task.task_id.clone())
            .map_err(|error| anyhow::anyhow!("task `{}`: {error}", task.task_id))?
            .with_metadata(metadata);
        put(&format!("{}\n", serde_json::to_string(&output)?))?;
    }
    bar.inc(1);
    let mut told = vec![format!("{word}{}", why(&end))];
    // What showed before the run is not told again in the words of after it.
    if let Some(gap) = gaps::of_run(run).first() {
        told.extend(gaps::lines(gap));
    }
    for told in told {
        let told = format!("{}: {told}", task.task_id);
        match bar.is_hidden() {
            true => complain(&told)?,
            false => bar.println(visible(&told)),
        }
    }
    Ok(exit_code(run))
}

fn why(end: &Value) -> String {
    match end["message"].as_str() {
        Some(message) => format!(": {message}"),
        None => String::new(),
    }
}
