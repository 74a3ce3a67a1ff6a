//! `windlass run --tasks FILE`: many tasks, some of them at the same time. One output a line on
//! standard output. What an earlier batch has done is found again by the ids of its tasks.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use windlass_core::run::Run;
use windlass_learn::ab::Random;
use windlass_runtime::{Progress, Watch};
use windlass_service::{Attachment, BatchOptions, DeclaredAgent, ServiceError};
use windlass_spec::{RunId, TaskInput};

use super::arguments::RunTask;
use super::ending::exit_code;
use super::interrupt::stop_on_interrupt;
use super::live::bar;
use super::program::{Notices, Program};
use super::run::block_on;
use super::tasks::Tasks;
use super::terminal::{complain, put, tell_progress, visible_line};
use super::{Outcome, gaps};

pub(super) fn run(
    program: &Program,
    command: &RunTask,
    file: &Path,
    declared: &DeclaredAgent,
) -> anyhow::Result<Outcome> {
    let mut read = Tasks::read(file, declared)?;
    if let Some(seed) = command.seed {
        Random::new(seed).shuffle(&mut read.tasks);
    }
    let outcome = work(program, command, &read.tasks, declared)?;
    Ok(read.ended(outcome))
}

fn work(
    program: &Program,
    command: &RunTask,
    tasks: &[TaskInput],
    declared: &DeclaredAgent,
) -> anyhow::Result<Outcome> {
    let options = command.crew.run_options();
    let service = program.service_for(command.data.as_deref(), &options, Notices::Text);
    let identity = program.identity()?;
    let bound = service.bind(&identity, declared, &options)?;
    let options = BatchOptions {
        jobs: usize::from(command.jobs),
        resume: command.resume,
        settings: command.limits.settings(),
    };
    let bar = bar("tasks", tasks.len());
    let mut codes: Vec<anyhow::Result<u8>> = Vec::new();
    block_on(&service, async {
        let attachment = Attachment {
            stop: stop_on_interrupt(),
            watch: Some(warnings(&bar)),
            ..Attachment::default()
        };
        let done = |task: &TaskInput, run: Result<Option<&Run>, ServiceError>| {
            codes.push(match run {
                Ok(run) => tell(task, run, &bar),
                Err(error) => Err(error.into()),
            });
        };
        bound
            .run_batch(&identity, tasks, &options, attachment, done)
            .await
    })??;
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
            let _ = bar.suspend(|| complain(&format!("warning: {}", visible_line(warning))));
        }
    })
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
        let told = visible_line(&format!("{}: {told}", task.task_id));
        match bar.is_hidden() {
            true => tell_progress(&told)?,
            false => bar.println(told),
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
