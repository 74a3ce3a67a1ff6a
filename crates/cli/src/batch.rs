//! `windlass run --tasks FILE`: runs a batch of tasks, several at a time. Prints one output per line on
//! standard output. `--resume` finds the results of an earlier batch by task id.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use windlass_core::run::Run;
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
use super::terminal::{eprint_line, eprint_progress, print_json, visible_line};
use super::{CommandOutcome, gaps};

pub(super) fn run(
    program: &Program,
    command: &RunTask,
    file: &Path,
    declared: &DeclaredAgent,
) -> anyhow::Result<CommandOutcome> {
    let read = Tasks::read(file, declared)?;
    let outcome = run_tasks(program, command, &read.tasks, declared)?;
    Ok(read.ended(outcome))
}

fn run_tasks(
    program: &Program,
    command: &RunTask,
    tasks: &[TaskInput],
    declared: &DeclaredAgent,
) -> anyhow::Result<CommandOutcome> {
    let options = command.run.agent.run_options();
    let service = program.service_for(command.run.data.as_deref(), &options, Notices::Text);
    let identity = program.identity()?;
    let bound = service.bind(&identity, declared, &options)?;
    let options = BatchOptions {
        jobs: usize::from(command.jobs),
        resume: command.resume,
        settings: command.run.limits.settings(),
        seed: command.seed,
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
                Ok(run) => report_task(task, run, &bar),
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
    let (done, unfinished) = (count(|code| code == 0), count(|code| code == INTERRUPTED));
    eprint_line(&format!("{done} of {} tasks completed", tasks.len()))?;
    let waiting = count(|code| code == WAITING);
    if waiting > 0 {
        eprint_line(&format!(
            "{waiting} wait for an approval or answer: see `windlass approvals list`, then repeat this \
             command with `--resume`"
        ))?;
    }
    if unfinished > 0 {
        eprint_line(
            "the remaining tasks did not run: repeat this command with `--resume` to continue",
        )?;
        return Ok(CommandOutcome::Code(INTERRUPTED));
    }
    if waiting > 0 && done + waiting == codes.len() {
        return Ok(CommandOutcome::Code(WAITING));
    }
    Ok(CommandOutcome::Code(u8::from(done < codes.len())))
}

/// The exit code of an interrupted command.
pub(super) const INTERRUPTED: u8 = 130;

/// The exit code of a run that waits for an approval or answer.
const WAITING: u8 = 4;

/// Prints each distinct warning once.
fn warnings(bar: &ProgressBar) -> Watch {
    let bar = bar.clone();
    let printed: Mutex<HashSet<String>> = Mutex::default();
    Arc::new(move |_: &RunId, progress: Progress<'_>| {
        let Progress::Warning(warning) = progress else {
            return;
        };
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.insert(warning.to_owned()) {
            // A closed standard error does not stop the batch.
            let _ = bar.suspend(|| eprint_line(&format!("warning: {}", visible_line(warning))));
        }
    })
}

/// Reports the outcome of a task. Returns its exit code, as if it were the only task.
fn report_task(task: &TaskInput, run: Option<&Run>, bar: &ProgressBar) -> anyhow::Result<u8> {
    let Some(run) = run else {
        return Ok(INTERRUPTED);
    };
    let end = json!(run.end_or_waiting());
    let word = end["end"].as_str().unwrap_or("stopped");
    if run.end().is_some() {
        let mut metadata = task.metadata.clone();
        metadata.insert("run".to_owned(), json!(run.id()));
        metadata.insert("end".to_owned(), end.clone());
        let output = run
            .output(task.task_id.clone())
            .map_err(|error| anyhow::anyhow!("task `{}`: {error}", task.task_id))?
            .with_metadata(metadata);
        print_json(&format!("{}\n", serde_json::to_string(&output)?))?;
    }
    bar.inc(1);
    let mut lines = vec![format!("{word}{}", reason_suffix(&end))];
    // Only the first gap: a later report may repeat it in other words.
    if let Some(gap) = gaps::of_run(run).first() {
        lines.extend(gaps::lines(gap));
    }
    for line in lines {
        let line = visible_line(&format!("{}: {line}", task.task_id));
        match bar.is_hidden() {
            true => eprint_progress(&line)?,
            false => bar.println(line),
        }
    }
    Ok(exit_code(run))
}

fn reason_suffix(end: &Value) -> String {
    match end["message"].as_str() {
        Some(message) => format!(": {message}"),
        None => String::new(),
    }
}
