//! `windlass run`: runs an agent on one task. The answer goes to standard output, everything else to standard
//! error. `batch.rs` runs many tasks.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use serde_json::json;
use windlass_core::run::{Event, Run, Settings, Task};
use windlass_runtime::{Progress, Watch, frames};
use windlass_service::{
    Attachment, DeclaredAgent, Identity, NewRun, RunOptions, Service, notices_to_json,
    stop_to_json, usage_to_json,
};
use windlass_spec::RunId;
use windlass_tools::ToolProgress;

use super::CommandOutcome;
use super::arguments::RunTask;
use super::ending::{describe_pending, early_end_message, exit_code};
use super::interrupt::stop_on_interrupt;
use super::live::Live;
use super::program::{Notices, Program};
use super::report::Reporter;
use super::signals::{Interrupts, end_on_signals};
use super::source::read_agent_file;
use super::terminal::{eprint_line, print_answer, print_json};
use super::usage::usage_line;
use super::{approvals, batch, gaps, paste};

pub(super) fn run(
    program: &Program,
    command: &RunTask,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let options = command.run.agent.run_options();
    let Some(declared) = choose(&command.file, &options, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    if let Some(tasks) = &command.tasks {
        return batch::run(program, command, tasks, &declared);
    }
    let new = NewRun {
        task: task(command, &declared)?,
        settings: command.run.limits.settings(),
        ..NewRun::default()
    };
    let notices = match command.jsonl {
        true => Notices::JsonLines,
        false => Notices::Text,
    };
    let service = program.service_for(command.run.data.as_deref(), &options, notices);
    let identity = program.identity()?;
    let bound = service.bind(&identity, &declared, &options)?;
    let is_json = command.json || command.jsonl;
    let live = Arc::new(Live::attended(&service, &identity));
    let run = block_on(&service, async {
        let attachment = attachment(&service, &identity, &live, command.jsonl, is_json);
        bound.start(&identity, new, attachment).await
    })??;
    show_end(&run, &service, &identity, &live, is_json)
}

/// Reads the file and chooses its agent. `None` if the file has errors, which are reported.
pub(super) fn choose(
    file: &Path,
    options: &RunOptions,
    reporter: &Reporter,
) -> anyhow::Result<Option<DeclaredAgent>> {
    let Some(declared) = read_agent_file(file, reporter)? else {
        return Ok(None);
    };
    let place = file.to_string_lossy();
    let chosen = DeclaredAgent::choose(declared, options.agent.as_deref(), &place)?;
    // `-` is standard input.
    Ok(Some(match place == "-" {
        true => chosen,
        false => chosen.from_path(file),
    }))
}

/// Attaches this terminal to a run: Ctrl-C stops it, its events are shown, and its questions are asked here,
/// unless the output is JSON. Must be called within a tokio runtime.
pub(super) fn attachment(
    service: &Service,
    identity: &Identity,
    live: &Arc<Live>,
    as_json_lines: bool,
    is_json: bool,
) -> Attachment {
    Attachment {
        stop: stop_on_interrupt(),
        watch: Some(watch(as_json_lines, live)),
        asker: approvals::asker(service, identity, live).filter(|_| !is_json),
        wait_policy: None,
    }
}

fn task(command: &RunTask, chosen: &DeclaredAgent) -> anyhow::Result<Task> {
    let mut description = command.task.clone().unwrap_or_default();
    if command.task.is_none() {
        let mut stdin = std::io::stdin();
        anyhow::ensure!(
            !stdin.is_terminal(),
            "no task is given\nhint: add the task: `windlass run {} \"what to do\"`",
            paste::path(&command.file)
        );
        stdin
            .read_to_string(&mut description)
            .context("cannot read standard input")?;
    }
    anyhow::ensure!(
        !description.trim().is_empty(),
        "the task is empty\nhint: describe what to do"
    );
    if let Some(available) = &command.available_tools {
        chosen.check_tools(available)?;
    }
    Ok(Task {
        description,
        available_tools: command.available_tools.clone(),
        domain: command.domain.clone(),
        ..Task::default()
    })
}

/// Runs a future that handles interrupts itself. On other signals, the servers of the service are stopped
/// before the program ends.
pub(super) fn block_on<T>(service: &Service, work: impl Future<Output = T>) -> std::io::Result<T> {
    end_on_signals(service, Interrupts::Handled)?;
    run_to_end(service, work)
}

/// Runs a future; an interrupt ends the program.
pub(super) fn block_on_until_interrupted<T>(
    service: &Service,
    work: impl Future<Output = T>,
) -> std::io::Result<T> {
    end_on_signals(service, Interrupts::EndProgram)?;
    run_to_end(service, work)
}

fn run_to_end<T>(service: &Service, work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(async {
        let done = work.await;
        service.close().await;
        done
    }))
}

/// Prints the events of a run: as JSON Lines on standard output, or as text for people.
pub(super) fn watch(as_json_lines: bool, live: &Arc<Live>) -> Watch {
    if !as_json_lines {
        let live = Arc::clone(live);
        return Arc::new(move |run: &RunId, progress: Progress<'_>| live.show(run, progress));
    }
    let settings = Mutex::new(Settings::default());
    Arc::new(move |run: &RunId, progress: Progress<'_>| {
        let mut settings = settings.lock().unwrap_or_else(PoisonError::into_inner);
        // The runs of sub-agents and tasks are named after the outermost one.
        let is_outermost = !run.as_str().contains('.');
        if let (true, Progress::Event(Event::Started { settings: own, .. })) =
            (is_outermost, progress)
        {
            settings.clone_from(own);
        }
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
            Progress::Refused(call, mistake) => Some(
                json!({
                    "event": "call_refused",
                    "call": call.id(),
                    "tool": call.tool_name(),
                    "arguments": call.arguments(),
                    "mistake": mistake.kind(),
                    "message": mistake.to_string(),
                })
                .to_string(),
            ),
            Progress::Model(_) | Progress::Done(_) => None,
        };
        let frames = match is_outermost {
            true => frames(progress, &settings),
            false => Vec::new(),
        };
        let frames = frames
            .iter()
            .filter_map(|frame| serde_json::to_string(frame).ok());
        // A closed output does not stop the run.
        for line in line.into_iter().chain(frames) {
            let _ = print_json(&format!("{line}\n"));
        }
    })
}

/// Prints the final answer of a run, unless it was shown when it arrived.
pub(super) fn print_final_answer(run: &Run, live: &Live) -> std::io::Result<()> {
    let response = run.response();
    let answer = response.answer().as_str();
    if live.has_shown(answer) {
        return Ok(());
    }
    print_answer(
        &format!("the agent `{}` answers", run.agent().name()),
        answer,
    )
}

/// Prints the result of a run.
pub(super) fn show_end(
    run: &Run,
    service: &Service,
    identity: &Identity,
    live: &Live,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let response = run.response();
    let standing = run.end_or_waiting();
    if as_json {
        let gaps = gaps::of_run(run);
        let mut object = json!({
            "run": run.id(), "end": standing, "response": response, "usage": usage_to_json(&run.usage()),
        });
        if !gaps.is_empty() {
            object["gaps"] = json!(gaps);
        }
        let notices = notices_to_json(run);
        if !notices.is_empty() {
            object["notices"] = json!(notices);
        }
        if let Some(order) = run.stopped() {
            object["stopped"] = stop_to_json(order);
        }
        if run.end().is_none() {
            // What the run waits for, in the shape of a tool that asks for it.
            object["questions"] = json!(service.pending_responses(identity, run.id())?);
        }
        print_json(&format!("{object}\n"))?;
    }
    match (run.end(), &standing) {
        (Some(end), _) if !as_json => {
            print_final_answer(run, live)?;
            if let Some(message) = early_end_message(end) {
                eprint_line(&message)?;
            }
            for call in run.unreported_outcomes() {
                eprint_line(&format!(
                    "it is unknown whether `{}` ({}) took effect: it was stopped while it ran; check it \
                     before you start the task again",
                    call.tool_name(),
                    call.id()
                ))?;
            }
            if let Some(gap) = gaps::unreported(run) {
                eprint_line(&gaps::message(&gap))?;
            }
            if let Some(usage) = usage_line(&run.usage()) {
                eprint_line(&format!("used: {usage}"))?;
            }
            let trace = format!("trace show {}", run.id());
            let trace = paste::command(&trace, service.given_data_directory().as_deref());
            eprint_line(&format!("details: {trace}"))?;
        }
        (Some(_), _) => {}
        (None, Some(_)) => {
            eprint_line("the run waits for an approval or answer")?;
            eprint_line(&describe_pending(run, service, identity)?)?;
        }
        (None, None) => {
            eprint_line("stopped")?;
            eprint_line(&describe_pending(run, service, identity)?)?;
        }
    }
    Ok(CommandOutcome::Code(exit_code(run)))
}
