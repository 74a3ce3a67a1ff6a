//! `windlass tools call`: calls one tool directly. The call is a run like any other, with a gate and a journal,
//! of an agent that has only this tool.

use std::sync::Arc;

use anyhow::Context as _;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::model::RequestedArguments;
use windlass_core::run::{Entry, Run, RunEnd};
use windlass_runtime::{Progress, Stop, now};
use windlass_service::{Attachment, Identity, Service, ToolCallRequest};
use windlass_spec::{CallRecord, Effect, Failure, RunId, ToolResponse};

use super::find;
use super::typed::arguments;
use crate::arguments::ToolsCall;
use crate::ending::{describe_pending, exit_code};
use crate::live::{Live, notice_line};
use crate::program::Program;
use crate::report::Reporter;
use crate::run::block_on;
use crate::terminal::{Quote, eprint_line, print_json, print_result, visible_line};
use crate::{CommandOutcome, approvals, paste};

pub(crate) fn run(
    program: &Program,
    command: &ToolsCall,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    let Some(tool) = find(&service, &identity, &command.tool, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let arguments = match &command.args {
        Some(text) => RequestedArguments::Text(text.clone()),
        None => {
            let specification = tool.callable()?;
            RequestedArguments::Json(arguments(&command.arguments, specification.signature())?)
        }
    };
    let call = ToolCallRequest {
        tool,
        arguments,
        is_approved: command.yes,
    };
    let run = block_on(&service, drive(&service, &identity, call, command.json))??;
    // With `--json` too: the envelope on standard output has no place for what is said about it.
    if let Some((tool, first)) = run.notices().first() {
        let line = notice_line(tool, first, run.notices().len());
        eprint_line(&visible_line(&line))?;
    }
    if let (None, Some(standing)) = (run.end(), run.end_or_waiting()) {
        if command.json {
            for response in service.pending_responses(&identity, run.id())? {
                print_json(&format!("{}\n", response.for_operator()))?;
            }
        }
        eprint_line("the call waits for an approval or answer")?;
        eprint_line(&describe_pending(&run, &service, &identity)?)?;
        return Ok(CommandOutcome::Code(standing.exit_code()));
    }
    if run.stopped().is_some() {
        eprint_line("the call did not start")?;
        eprint_line(&describe_pending(&run, &service, &identity)?)?;
        return Ok(CommandOutcome::Code(exit_code(&run)));
    }
    show(&run, &service, command.json)
}

/// Drives the run. Prompts the user for approvals, unless the output is JSON. An interrupt cancels the call at
/// once.
async fn drive(
    service: &Service,
    identity: &Identity,
    call: ToolCallRequest,
    as_json: bool,
) -> anyhow::Result<Run> {
    let stop = Stop::default();
    let at_once = stop.at_once.clone();
    let mut interrupts = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        interrupts.recv().await;
        at_once.cancel();
    });
    let live = Arc::new(Live::attended(service, identity));
    let asker = approvals::asker(service, identity, &live);
    let attachment = Attachment {
        stop,
        watch: Some(Arc::new(move |run: &RunId, progress: Progress<'_>| {
            live.show_holds(run, progress);
        })),
        asker: asker.filter(|_| !as_json),
        ..Attachment::default()
    };
    Ok(service.call_tool(identity, call, attachment).await?)
}

/// Prints the result of the call, in the command that made it and in one that resumed it.
pub(crate) fn show(run: &Run, service: &Service, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let first = run.turns().first().and_then(|turn| turn.entries.first());
    let code = match first {
        Some(Entry::Call { record, .. }) => match record.outcome() {
            Some(outcome) => {
                let code = show_outcome(record, outcome, as_json)?;
                if let (Err(failure), false) = (outcome, as_json) {
                    eprint_line(&format!("hint: {}", failure.guidance()))?;
                }
                code
            }
            None => show_early_end(run)?,
        },
        Some(Entry::Mistake { mistake, record }) => {
            // The same message as for a model: it says what is correct.
            let failure = Failure::new(mistake.category(), Effect::None, mistake.to_string());
            show_outcome(record, Err(&failure), as_json)?
        }
        Some(Entry::Finish) | None => show_early_end(run)?,
    };
    if !as_json {
        let trace = format!("trace show {}", run.id());
        let trace = paste::command(&trace, service.given_data_directory().as_deref());
        eprint_line(&format!("details: {trace}"))?;
    }
    Ok(CommandOutcome::Code(code))
}

fn show_outcome(
    record: &CallRecord,
    outcome: Result<&Value, &Failure>,
    as_json: bool,
) -> anyhow::Result<u8> {
    if as_json {
        let at = record.ended_at().unwrap_or_else(now);
        let response = match outcome {
            Ok(value) => unfinished(value)
                .unwrap_or_else(|| ToolResponse::of_result(record.tool_name(), value, at)),
            Err(failure) => ToolResponse::error(record.tool_name(), failure.clone(), at),
        };
        print_json(&format!("{}\n", response.for_operator()))?;
    }
    match outcome {
        Ok(value) => {
            if !as_json {
                show_result(record, value)?;
            }
            Ok(0)
        }
        Err(failure) => {
            if !as_json {
                let message = Quote::of(&failure.operator_message).after_label("  ");
                eprint_line(&format!("error: {message}"))?;
            }
            let end = RunEnd::Failed {
                category: failure.category,
                message: String::new(),
            };
            Ok(end.exit_code())
        }
    }
}

/// The envelope of accepted work that continues elsewhere, which is the result of a call as a whole.
fn unfinished(value: &Value) -> Option<ToolResponse> {
    let is_unfinished =
        ["in_progress", "created", "pending"].contains(&value.get("status")?.as_str()?);
    let response = is_unfinished.then(|| serde_json::from_value(value.clone()).ok());
    response.flatten()
}

/// Prints a result: unchanged to a file or program, quoted on a terminal.
fn show_result(record: &CallRecord, value: &Value) -> anyhow::Result<()> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    let author = format!("the tool `{}` returns", record.tool_name());
    print_result(&author, &text)?;
    Ok(())
}

/// Prints why the run ended before the call did.
fn show_early_end(run: &Run) -> anyhow::Result<u8> {
    let end = run.end().context("the run has not ended")?;
    match end {
        RunEnd::Failed { category, message } => {
            let message = Quote::of(message).after_label("  ");
            eprint_line(&format!("error: {message}\nhint: {}", category.guidance()))?;
        }
        _ => eprint_line("the call was not made")?,
    }
    Ok(end.exit_code())
}
