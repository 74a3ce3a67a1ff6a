//! Does an experiment: every task with both libraries, in pairs, in the order of the schedule. What is
//! done is found again in the store by the ids of its runs, so nothing is done twice, whenever and however
//! an earlier process ended.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use futures::StreamExt as _;
use serde_json::{Value, json};
use windlass_core::run::{Run, Task};
use windlass_learn::ab::{Arm, Evidence, Stopping};
use windlass_runtime::{Driver, NewTask, Stop};
use windlass_spec::{RunId, TaskInput, ToolName};
use windlass_store::{RunFilter, Store};

use super::arms::{self, crews, sides};
use super::findings::{Counted, Experiment, Findings, Settled};
use super::measure::{CostIn, Measured, Metric, is_outcome, measured};
use super::schedule::{Scheduled, schedule};
use super::{page, words};
use crate::Outcome;
use crate::arguments::AbRun;
use crate::crew;
use crate::data;
use crate::interrupt::stop_on_interrupt;
use crate::live::bar;
use crate::report::Reporter;
use crate::run::block_on;
use crate::tasks::Tasks;
use crate::terminal::{complain, put};

/// How much of the digest names an experiment.
const NAME_LENGTH: usize = 12;

pub(super) fn run(
    command: &AbRun,
    data: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let Some(chosen) = crew::choose(command.file(), &command.crew, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let metrics = Metric::read(&command.metric)?;
    let read = Tasks::read(command.tasks(), &chosen)?;
    let tasks = &read.tasks;
    let (sides, differs) = sides(command, &chosen, data)?;
    let crews = crews(command, &chosen, data)?;
    let digest = arms::digest(command, &chosen, tasks)?;
    let name = match &command.name {
        Some(name) => {
            anyhow::ensure!(
                !name.trim().is_empty(),
                "the name of the experiment is empty"
            );
            name.clone()
        }
        None => digest.chars().take(NAME_LENGTH).collect(),
    };
    let stored = data::open(data)?;
    let store = Arc::clone(stored.store());
    let schedule = schedule(tasks.len(), command.runs, command.seed);
    let agent = chosen.agent.name().to_string();
    let found = earlier(&store, &agent, &name, &schedule, tasks)?;
    anyhow::ensure!(
        command.resume || found.is_empty(),
        "the experiment `{name}` has {} runs already\n\
         hint: `--resume` goes on with it; another `--seed` or `--name` begins a new one",
        found.len()
    );
    let bar = bar("pairs", schedule.len());
    let [a, b] = crews.map(|crew| crew.watched(false));
    let settled = block_on(async {
        let stop = stop_on_interrupt();
        let driver = |crew| Driver::new(crew, Arc::new(stored.clone())).stopped_by(stop.clone());
        let work = Work {
            command,
            drivers: [driver(a.0), driver(b.0)],
            store: &store,
            stop: stop.clone(),
            tasks,
            metrics: &metrics,
            name: &name,
            digest: &digest,
            found,
            is_decided: AtomicBool::new(false),
        };
        let mut settled: Vec<Option<Settled>> = schedule.iter().map(|_| None).collect();
        let mut ended = futures::stream::iter(schedule.iter().enumerate())
            .map(|(index, pair)| {
                let work = &work;
                async move { (index, work.pair(pair).await) }
            })
            .buffer_unordered(command.jobs.into());
        while let Some((index, of_pair)) = ended.next().await {
            bar.inc(1);
            if let Some(place) = settled.get_mut(index) {
                *place = of_pair?;
            }
            if command.early_stop && decided(&settled, &metrics, command.alpha).is_some() {
                work.is_decided.store(true, Ordering::Relaxed);
            }
        }
        anyhow::Ok(settled)
    })??;
    bar.finish_and_clear();
    // What was looked at before it was made longer has no planned length any more.
    let is_extended = settled.iter().flatten().any(|pair| {
        pair.planned_runs
            .is_some_and(|planned| planned != command.runs)
    });
    let stopping = match command.early_stop || is_extended {
        true => Stopping::Optional,
        false => Stopping::Planned,
    };
    let counted = match command.early_stop {
        true => decided(&settled, &metrics, command.alpha),
        false => None,
    };
    let experiment = Experiment {
        name,
        digest,
        agent,
        sides,
        differs,
        tasks: tasks.iter().map(|task| task.task_id.to_string()).collect(),
        runs: command.runs,
        seed: command.seed,
        alpha: command.alpha,
        stopping,
        is_extended,
        metrics,
    };
    let findings = Findings::new(
        experiment,
        Counted {
            schedule: &schedule,
            settled: &settled,
            until: counted,
        },
    );
    Ok(read.ended(tell(command, &findings)?))
}

fn tell(command: &AbRun, findings: &Findings) -> anyhow::Result<Outcome> {
    if let Some(path) = &command.report {
        std::fs::write(path, page::of_experiment(path, findings))
            .with_context(|| format!("the report `{}` cannot be written", path.display()))?;
    }
    match command.json {
        true => put(&format!("{}\n", serde_json::to_string(findings)?))?,
        false => words::say_findings(findings)?,
    }
    let pairs = &findings.pairs;
    if pairs.waiting > 0 {
        complain(&format!(
            "{} pairs wait for a person: `windlass approvals list` shows what is asked; the same command \
             with `--resume` goes on with them",
            pairs.waiting
        ))?;
    }
    if pairs.broken_off > 0 {
        complain(&format!(
            "{} pairs were broken off; the same command with `--resume` does them again",
            pairs.broken_off
        ))?;
    }
    if pairs.not_done > 0 && !findings.is_stopped_early {
        complain("the rest was not done; the same command with `--resume` goes on with it")?;
        return Ok(Outcome::Code(INTERRUPTED));
    }
    if pairs.waiting > 0 {
        return Ok(Outcome::Code(WAITING));
    }
    Ok(Outcome::from_success(!findings.is_invalid()))
}

/// The exit code of what was stopped.
const INTERRUPTED: u8 = 130;

/// The exit code of what waits for a person.
const WAITING: u8 = 4;

/// The id of a run of an experiment, by which it is found again.
fn task_id(experiment: &str, task: &TaskInput, pair: &Scheduled, arm: Arm) -> String {
    format!(
        "{}@{experiment}/{}{}",
        task.task_id,
        pair.repetition,
        arm.as_str()
    )
}

type Found = HashMap<String, RunId>;

/// The runs of this experiment that are done or can be gone on with.
fn earlier(
    store: &Store,
    agent: &str,
    experiment: &str,
    schedule: &[Scheduled],
    tasks: &[TaskInput],
) -> anyhow::Result<Found> {
    let mut found = Found::new();
    for pair in schedule {
        let Some(task) = tasks.get(pair.task) else {
            continue;
        };
        for arm in Arm::ALL {
            let id = task_id(experiment, task, pair, arm);
            let filter = RunFilter {
                agent: Some(agent.to_owned()),
                task_id: Some(id.clone()),
                ..RunFilter::default()
            };
            let stands = store.runs(&filter)?.into_iter().find(|run| {
                let may_stand = run.end.as_ref().is_none_or(is_outcome);
                may_stand && run.purged.is_none()
            });
            if let Some(run) = stands {
                found.insert(id, run.run);
            }
        }
    }
    Ok(found)
}

/// After how many pairs of the schedule the first metric is decided, if it is. Only pairs before the first
/// that is not settled count, so that the answer does not depend on which of several was faster.
fn decided(settled: &[Option<Settled>], metrics: &[Metric], alpha: f64) -> Option<usize> {
    let metric = metrics.first()?;
    let mut evidence = Evidence::new(metric.measure().outcomes);
    for (index, pair) in settled.iter().enumerate() {
        let pair = pair.as_ref()?;
        let Some((a, b)) = pair.complete() else {
            continue;
        };
        // Prices are known of all runs or of none, and tokens are what can be counted while it goes on.
        let of = |measured: &Measured| metric.of(measured, CostIn::Tokens);
        if let (Some(a), Some(b)) = (of(a), of(b)) {
            evidence.add(a, b);
        }
        if evidence.is_enough(alpha) {
            return Some(index + 1);
        }
    }
    None
}

struct Work<'w> {
    command: &'w AbRun,
    drivers: [Driver; 2],
    store: &'w Store,
    stop: Stop,
    tasks: &'w [TaskInput],
    metrics: &'w [Metric],
    name: &'w str,
    digest: &'w str,
    found: Found,
    /// Whether nothing more needs to be done.
    is_decided: AtomicBool,
}

impl Work<'_> {
    /// Does a pair, one arm after the other. Nothing if it was not begun.
    async fn pair(&self, pair: &Scheduled) -> anyhow::Result<Option<Settled>> {
        let mut settled = Settled::default();
        let Some(task) = self.tasks.get(pair.task) else {
            return Ok(None);
        };
        for arm in pair.arms() {
            let is_stopped =
                self.stop.after_step.is_cancelled() || self.stop.at_once.is_cancelled();
            if is_stopped || self.is_decided.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let run = self.arm(pair, task, arm).await?;
            settled.planned_runs = planned(&run).or(settled.planned_runs);
            match run.end() {
                Some(end) if is_outcome(end) => {
                    let measured = measured(&run, task, self.metrics, self.store).await?;
                    settled.put(arm, measured);
                }
                Some(_) => settled.is_broken_off = true,
                None if run.standing().is_some() => settled.is_waiting = true,
                None => return Ok(None),
            }
        }
        Ok(Some(settled))
    }

    /// The run of an arm: an earlier one if there is one, else a new one.
    async fn arm(&self, pair: &Scheduled, task: &TaskInput, arm: Arm) -> anyhow::Result<Run> {
        let driver = match arm {
            Arm::A => &self.drivers[0],
            Arm::B => &self.drivers[1],
        };
        let id = task_id(self.name, task, pair, arm);
        let Some(run) = self.found.get(&id) else {
            return Ok(driver.start(self.new_task(id, pair, task, arm)?).await?);
        };
        let began = self.store.fold(run)?;
        anyhow::ensure!(
            began.task().metadata.get("experiment_digest") == Some(&json!(self.digest)),
            "the experiment `{}` was begun with another agent, library, task, seed or option\n\
             hint: give it another `--name`",
            self.name
        );
        match began.end() {
            Some(_) => Ok(began),
            None => Ok(driver.resume(run).await?),
        }
    }

    fn new_task(
        &self,
        id: String,
        pair: &Scheduled,
        task: &TaskInput,
        arm: Arm,
    ) -> anyhow::Result<NewTask> {
        let mut settings = self.command.limits.settings();
        if let Some(limit) = task.max_iterations {
            settings.max_iterations = limit.get();
        }
        let names = |names: &Vec<ToolName>| names.iter().map(ToString::to_string).collect();
        let mut metadata = task.metadata.clone();
        let about: [(&str, Value); 6] = [
            ("experiment", json!(self.name)),
            ("experiment_digest", json!(self.digest)),
            ("arm", json!(arm.as_str())),
            (
                "pair",
                json!(format!("{}/{}", task.task_id, pair.repetition)),
            ),
            ("repetition", json!(pair.repetition)),
            ("planned_runs", json!(self.command.runs)),
        ];
        for (key, value) in about {
            metadata.insert(key.to_owned(), value);
        }
        Ok(NewTask {
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
            assembly: crew::assembly(&arms::options(self.command, arm))?,
        })
    }
}

/// How often everything was to be done when a run was begun.
fn planned(run: &Run) -> Option<u32> {
    let planned = run.task().metadata.get("planned_runs")?.as_u64()?;
    u32::try_from(planned).ok()
}
