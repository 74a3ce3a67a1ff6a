//! `windlass tools call`: one tool, called by hand. The call is a run like any other, with a gate and a
//! journal, of an agent that has only this tool.

use std::sync::Arc;

use anyhow::Context as _;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::model::RequestedArguments;
use windlass_core::run::{Entry, Run, RunEnd};
use windlass_runtime::{Stop, now};
use windlass_service::{Attachment, Identity, Service, ToolCall};
use windlass_spec::{CallRecord, Effect, ErrorCategory, Failure, ToolResponse};

use super::find;
use super::typed::arguments;
use crate::arguments::ToolsCall;
use crate::ending::what_it_waits_for;
use crate::live::Live;
use crate::program::Program;
use crate::report::Reporter;
use crate::run::block_on;
use crate::terminal::{complain, put, put_content, visible_block};
use crate::{Outcome, approvals};

pub(crate) fn run(
    program: &Program,
    command: &ToolsCall,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    let Some(tool) = find(&service, &identity, &command.tool, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let arguments = match &command.args {
        Some(text) => RequestedArguments::Text(text.clone()),
        None => {
            let specification = tool.callable()?;
            RequestedArguments::Json(arguments(&command.arguments, specification.signature())?)
        }
    };
    let call = ToolCall {
        tool,
        arguments,
        is_approved: command.yes,
    };
    let run = block_on(&service, drive(&service, &identity, call, command.json))??;
    if let (None, Some(standing)) = (run.end(), run.standing()) {
        complain("the call waits for a person")?;
        complain(&what_it_waits_for(&run, &service, &identity)?)?;
        return Ok(Outcome::Code(standing.exit_code()));
    }
    show(&run, command.json)
}

/// Drives the run. The user is asked here, unless a program reads the answer. Interrupted, it stops at
/// once: there is one call, and it is to end.
async fn drive(
    service: &Service,
    identity: &Identity,
    call: ToolCall,
    as_json: bool,
) -> anyhow::Result<Run> {
    let stop = Stop::default();
    let at_once = stop.at_once.clone();
    let mut interrupts = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        interrupts.recv().await;
        at_once.cancel();
    });
    let asker = approvals::asker(service, identity, &Arc::new(Live::new()));
    let attachment = Attachment {
        stop,
        asker: asker.filter(|_| !as_json),
        ..Attachment::default()
    };
    Ok(service.call_tool(identity, call, attachment).await?)
}

/// Says what came of the call.
fn show(run: &Run, as_json: bool) -> anyhow::Result<Outcome> {
    let first = run.turns().first().and_then(|turn| turn.entries.first());
    let code = match first {
        Some(Entry::Call { record, .. }) => match record.outcome() {
            Some(outcome) => {
                let code = show_outcome(record, outcome, as_json)?;
                if let (Err(failure), false) = (outcome, as_json) {
                    complain(&format!("hint: {}", failure.category.guidance()))?;
                }
                code
            }
            None => show_early_end(run)?,
        },
        Some(Entry::Mistake { mistake, record }) => {
            // Told to a person as it is told to a model: it says what would be right.
            let failure = Failure::new(mistake.category(), Effect::None, mistake.to_string());
            show_outcome(record, Err(&failure), as_json)?
        }
        Some(Entry::Finish) | None => show_early_end(run)?,
    };
    if !as_json {
        complain(&format!(
            "windlass trace show {} tells how it came about",
            run.id()
        ))?;
    }
    Ok(Outcome::Code(code))
}

fn show_outcome(
    record: &CallRecord,
    outcome: Result<&Value, &Failure>,
    as_json: bool,
) -> anyhow::Result<u8> {
    if as_json {
        let at = record.ended_at().unwrap_or_else(now);
        let response = match outcome {
            Ok(value) => ToolResponse::of_result(record.tool_name(), value, at),
            Err(failure) => ToolResponse::error(record.tool_name(), failure.clone(), at),
        };
        put(&format!("{}\n", response.for_operator()))?;
    }
    match outcome {
        Ok(value) => {
            if !as_json {
                show_result(value)?;
            }
            Ok(0)
        }
        Err(failure) => {
            if !as_json {
                let message = visible_block(&failure.operator_message);
                complain(&format!("error: {message}"))?;
            }
            let end = match failure.category {
                ErrorCategory::Cancelled => RunEnd::Cancelled,
                category => RunEnd::Failed {
                    category,
                    message: String::new(),
                },
            };
            Ok(end.exit_code())
        }
    }
}

/// A result goes to other programs as it is, and to a terminal made visible.
fn show_result(value: &Value) -> anyhow::Result<()> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    put_content(&format!("{text}\n"))?;
    Ok(())
}

/// There is no outcome: the run ended before the call did.
fn show_early_end(run: &Run) -> anyhow::Result<u8> {
    let end = run.end().context("the run was left without an end")?;
    match end {
        RunEnd::Failed { category, message } => {
            let message = visible_block(message);
            complain(&format!("error: {message}\nhint: {}", category.guidance()))?;
        }
        _ => complain("the call was not made")?,
    }
    Ok(end.exit_code())
}
