//! `windlass run`: one task, one agent, from the question to the answer. The answer goes to standard
//! output, everything else to standard error. Many tasks are in `batch.rs`.

use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;
use windlass_core::run::{Run, Task};
use windlass_runtime::{Crew, Driver, NewTask, Progress, Stored, Watch};
use windlass_spec::RunId;
use windlass_store::Store;
use windlass_tools::ToolProgress;

use super::Outcome;
use super::arguments::RunTask;
use super::crew::Chosen;
use super::ending::{exit_code, what_it_waits_for, why_early};
use super::interrupt::stop_on_interrupt;
use super::live::Live;
use super::report::Reporter;
use super::schema::unknown;
use super::signals::{Interrupts, end_on_signals};
use super::terminal::{complain, put, say};
use super::{approvals, batch, crew, data, gaps, servers};

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
    let data = command.data.as_deref();
    let crew = chosen.assemble(&command.crew, data)?;
    let (crew, _watching) = crew.watched(command.jsonl);
    let stored = data::open(data)?;
    let is_for_programs = command.json || command.jsonl;
    let run = block_on(async {
        driver(crew, &stored, command.jsonl, is_for_programs)
            .start(new)
            .await
    })??;
    show_end(&run, stored.store(), is_for_programs)
}

/// Drives runs for a person: stops on Ctrl-C, tells what happens, and asks them what it must, unless
/// a program reads the output.
pub(super) fn driver(
    crew: Crew,
    stored: &Stored,
    as_json_lines: bool,
    is_for_programs: bool,
) -> Driver {
    let live = Arc::new(Live::new());
    let driver = Driver::new(crew, Arc::new(stored.clone()))
        .stopped_by(stop_on_interrupt())
        .watched_by(watch(as_json_lines, &live));
    match approvals::asker(stored, &live).filter(|_| !is_for_programs) {
        Some(asker) => driver.asking(asker),
        None => driver,
    }
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

/// Waits for something that needs a runtime, and sees to interrupts itself. Whatever else ends the
/// program, the servers it started end before it.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    end_on_signals(Interrupts::AreHandled)?;
    work_through(work)
}

/// The same for what an interrupt simply ends.
pub(super) fn block_on_until_interrupted<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    end_on_signals(Interrupts::End)?;
    work_through(work)
}

fn work_through<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(async {
        let done = work.await;
        servers::close().await;
        done
    }))
}

/// Tells what happens: as JSON Lines on standard output, or for people.
pub(super) fn watch(as_json_lines: bool, live: &Arc<Live>) -> Watch {
    if !as_json_lines {
        let live = Arc::clone(live);
        return Arc::new(move |run: &RunId, progress: Progress<'_>| live.tell(run, progress));
    }
    Arc::new(|_: &RunId, progress: Progress<'_>| {
        let line = match progress {
            Progress::Event(event) => serde_json::to_string(event).ok(),
            Progress::Tool(
                call,
                ToolProgress {
                    done,
                    total,
                    message,
                },
            ) => Some(
                json!({
                    "event": "tool_progress",
                    "call": call,
                    "done": done,
                    "total": total,
                    "message": message,
                })
                .to_string(),
            ),
            Progress::Warning(message) => {
                Some(json!({"event": "warning", "message": message}).to_string())
            }
            Progress::Model(_) | Progress::Done(_) => None,
        };
        // Whoever reads may go away; the run goes on.
        if let Some(line) = line {
            let _ = put(&format!("{line}\n"));
        }
    })
}

/// Says what came of a run.
pub(super) fn show_end(run: &Run, store: &Store, as_json: bool) -> anyhow::Result<Outcome> {
    let response = run.response();
    let standing = run.standing();
    if as_json {
        let gaps = gaps::of_run(run);
        let mut told = json!({"run": run.id(), "end": standing, "response": response});
        if !gaps.is_empty() {
            told["gaps"] = json!(gaps);
        }
        put(&format!("{told}\n"))?;
    }
    match (run.end(), &standing) {
        (Some(end), _) if !as_json => {
            say(response.answer.as_str())?;
            if let Some(told) = why_early(end) {
                complain(&told)?;
            }
            if let Some(gap) = gaps::untold(run) {
                complain(&gaps::told(&gap))?;
            }
            complain(&format!(
                "windlass trace show {} tells how it came about",
                run.id()
            ))?;
        }
        (Some(_), _) => {}
        (None, Some(_)) => {
            complain("the run waits for a person")?;
            complain(&what_it_waits_for(run, store)?)?;
        }
        (None, None) => {
            complain("stopped")?;
            complain(&what_it_waits_for(run, store)?)?;
        }
    }
    Ok(Outcome::Code(exit_code(run)))
}
