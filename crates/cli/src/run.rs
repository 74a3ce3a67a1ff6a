//! `windlass run`: one task, one agent, from the question to the answer. The answer goes to standard
//! output, everything else to standard error. Many tasks are in `batch.rs`.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;
use windlass_core::run::{Run, Task};
use windlass_runtime::{Progress, Watch};
use windlass_service::{Attachment, DeclaredAgent, Identity, NewRun, RunOptions, Service, unknown};
use windlass_spec::RunId;
use windlass_tools::ToolProgress;

use super::Outcome;
use super::arguments::RunTask;
use super::ending::{exit_code, what_it_waits_for, why_early};
use super::interrupt::stop_on_interrupt;
use super::live::Live;
use super::program::{Notices, Program};
use super::report::Reporter;
use super::schema::read_file;
use super::signals::{Interrupts, end_on_signals};
use super::terminal::{complain, put, say};
use super::{approvals, batch, gaps};

pub(super) fn run(
    program: &Program,
    command: &RunTask,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let options = command.crew.run_options();
    let Some(declared) = choose(&command.file, &options, reporter)? else {
        return Ok(Outcome::Failed);
    };
    if let Some(tasks) = &command.tasks {
        return batch::run(program, command, tasks, &declared);
    }
    let new = NewRun {
        task_id: None,
        task: task(command, &declared)?,
        settings: command.limits.settings(),
    };
    let notices = match command.jsonl {
        true => Notices::JsonLines,
        false => Notices::Text,
    };
    let service = program.service_for(command.data.as_deref(), &options, notices);
    let identity = program.identity()?;
    let bound = service.bind(&identity, &declared, &options)?;
    let is_for_programs = command.json || command.jsonl;
    let run = block_on(&service, async {
        let attachment = attachment(&service, &identity, command.jsonl, is_for_programs);
        bound.start(&identity, new, attachment).await
    })??;
    show_end(&run, &service, &identity, is_for_programs)
}

/// Reads the file and chooses its agent. `None` if the file has mistakes, which were reported.
pub(super) fn choose(
    file: &Path,
    options: &RunOptions,
    reporter: &Reporter,
) -> anyhow::Result<Option<DeclaredAgent>> {
    let Some(declared) = read_file(file, reporter)? else {
        return Ok(None);
    };
    let place = file.to_string_lossy();
    let chosen = DeclaredAgent::choose(declared, options.agent.as_deref(), &place)?;
    Ok(Some(chosen))
}

/// How the person at this terminal takes part in a run: Ctrl-C stops it, they see what happens, and are
/// asked what it asks, unless a program reads the output. Must be called within a tokio runtime.
pub(super) fn attachment(
    service: &Service,
    identity: &Identity,
    as_json_lines: bool,
    is_for_programs: bool,
) -> Attachment {
    let live = Arc::new(Live::new());
    Attachment {
        stop: stop_on_interrupt(),
        watch: Some(watch(as_json_lines, &live)),
        asker: approvals::asker(service, identity, &live).filter(|_| !is_for_programs),
        patience: None,
    }
}

fn task(command: &RunTask, chosen: &DeclaredAgent) -> anyhow::Result<Task> {
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

/// Waits for something that needs a runtime, and handles interrupts itself. Whatever else ends the
/// program, the servers that the service started end before it.
pub(super) fn block_on<T>(service: &Service, work: impl Future<Output = T>) -> std::io::Result<T> {
    end_on_signals(service, Interrupts::AreHandled)?;
    work_through(service, work)
}

/// The same for what an interrupt simply ends.
pub(super) fn block_on_until_interrupted<T>(
    service: &Service,
    work: impl Future<Output = T>,
) -> std::io::Result<T> {
    end_on_signals(service, Interrupts::End)?;
    work_through(service, work)
}

fn work_through<T>(service: &Service, work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(async {
        let done = work.await;
        service.close().await;
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

/// Prints the result of a run.
pub(super) fn show_end(
    run: &Run,
    service: &Service,
    identity: &Identity,
    as_json: bool,
) -> anyhow::Result<Outcome> {
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
            complain(&what_it_waits_for(run, service, identity)?)?;
        }
        (None, None) => {
            complain("stopped")?;
            complain(&what_it_waits_for(run, service, identity)?)?;
        }
    }
    Ok(Outcome::Code(exit_code(run)))
}
