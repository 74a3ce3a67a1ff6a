//! `windlass run`: one task, one agent, from the question to the answer. The answer goes to standard
//! output, everything else to standard error. Many tasks are in `batch.rs`.

use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;
use windlass_core::run::{Run, RunEnd, Task};
use windlass_runtime::{Driver, NewTask, Progress, Watch};
use windlass_spec::{ErrorCategory, RunId};

use super::Outcome;
use super::arguments::RunTask;
use super::crew::Chosen;
use super::interrupt::stop_on_interrupt;
use super::live::Live;
use super::report::Reporter;
use super::schema::unknown;
use super::terminal::{complain, put, say};
use super::{batch, crew, data};

pub(super) fn run(command: &RunTask, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(chosen) = crew::choose(&command.file, &command.crew, reporter)? else {
        return Ok(Outcome::Failed);
    };
    if let Some(tasks) = &command.tasks {
        return batch::run(command, tasks, &chosen);
    }
    let new = NewTask {
        task_id: None,
        task: task(command, &chosen)?,
        settings: command.limits.settings(),
        assembly: crew::assembly(&command.crew)?,
    };
    let crew = chosen.assemble(&command.crew)?;
    let stored = data::open(command.data.as_deref())?;
    let run = block_on(async {
        Driver::new(crew, Arc::new(stored))
            .stopped_by(stop_on_interrupt())
            .watched_by(watch(command.jsonl))
            .start(new)
            .await
    })??;
    show_end(&run, command.json || command.jsonl)
}

fn task(command: &RunTask, chosen: &Chosen) -> anyhow::Result<Task> {
    let mut description = command.task.clone().unwrap_or_default();
    if command.task.is_none() {
        let mut stdin = std::io::stdin();
        anyhow::ensure!(
            !stdin.is_terminal(),
            "there is no task\nhint: windlass run {} \"what to do\"",
            command.file.display()
        );
        stdin
            .read_to_string(&mut description)
            .context("standard input cannot be read")?;
    }
    anyhow::ensure!(
        !description.trim().is_empty(),
        "the task is empty\nhint: say what to do"
    );
    if let Some(available) = &command.available_tools {
        let known = chosen.tool_names();
        for name in available {
            let is_known = known.contains(&name.as_str());
            anyhow::ensure!(is_known, unknown("tool", name, &known, "this agent"));
        }
    }
    Ok(Task {
        description,
        available_tools: command.available_tools.clone(),
        domain: command.domain.clone(),
        ..Task::default()
    })
}

/// Waits for something that needs a runtime.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(work))
}

/// Tells what happens: as JSON Lines on standard output, or for people.
pub(super) fn watch(as_json_lines: bool) -> Watch {
    if !as_json_lines {
        let live = Live::new();
        return Arc::new(move |run: &RunId, progress: Progress<'_>| live.tell(run, progress));
    }
    Arc::new(|_: &RunId, progress: Progress<'_>| {
        // Whoever reads may go away; the run goes on.
        if let Progress::Event(event) = progress
            && let Ok(line) = serde_json::to_string(event)
        {
            let _ = put(&format!("{line}\n"));
        }
    })
}

/// Says what came of a run.
pub(super) fn show_end(run: &Run, as_json: bool) -> anyhow::Result<Outcome> {
    let response = run.response();
    if as_json {
        let told = json!({"run": run.id(), "end": run.end(), "response": response});
        put(&format!("{told}\n"))?;
    } else if let Some(end) = run.end() {
        say(response.answer.as_str())?;
        if let Some(told) = why_early(end)? {
            complain(&told)?;
        }
        complain(&format!(
            "windlass trace show {} tells how it came about",
            run.id()
        ))?;
    } else {
        complain(&format!(
            "stopped; go on with: windlass runs resume {}",
            run.id()
        ))?;
    }
    Ok(Outcome::Code(exit_code(run)))
}

/// The exit code for a run that ended, or was stopped before it did.
pub(super) fn exit_code(run: &Run) -> u8 {
    run.end().unwrap_or(&RunEnd::Cancelled).exit_code()
}

/// What a person is told of a run that did not complete.
fn why_early(end: &RunEnd) -> anyhow::Result<Option<String>> {
    Ok(match end {
        RunEnd::Completed => None,
        // Its guidance is about tools; of a model, the message says what to do.
        RunEnd::Failed {
            category: ErrorCategory::InvalidOutput,
            message,
        } => Some(format!("error: {message}")),
        RunEnd::Failed { category, message } => {
            Some(format!("error: {message}\nhint: {}", category.guidance()))
        }
        other => Some(format!(
            "the run ended early: {}",
            serde_json::to_value(other)?
        )),
    })
}
