//! `windlass tools call`: one tool, called by hand. The call is a run like any other, with a gate and a
//! journal, of an agent that has only this tool.

use std::sync::Arc;

use anyhow::Context as _;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{Approval, PersonDecision};
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::{Entry, Run, RunEnd, Task};
use windlass_model::{ModelClient, ScriptedModel};
use windlass_runtime::{Asked, Asker, Crew, Driver, NewTask, Read, Stop, Stored, now};
use windlass_spec::{
    Agent, AgentName, CallRecord, Effect, ErrorCategory, Failure, NonEmptyText, ToolResponse,
    ToolSpecification,
};
use windlass_tools::BindingMode;

use super::known::Known;
use super::typed::arguments;
use crate::arguments::ToolsCall;
use crate::ending::what_it_waits_for;
use crate::libraries::named_in;
use crate::live::Live;
use crate::report::Reporter;
use crate::run::block_on;
use crate::terminal::{complain, put, put_content};
use crate::{Outcome, approvals, data, settings};

pub(crate) fn run(command: &ToolsCall, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(known) = Known::find(&command.tool, command.data.as_deref(), reporter)? else {
        return Ok(Outcome::Failed);
    };
    let specification = known.specification().map_err(|why| {
        anyhow::anyhow!(
            "the tool `{}` cannot be called by hand: {why}\n\
             hint: declare it in an agent file and name that with `--agent-file`",
            known.tool.name()
        )
    })?;
    let given = match &command.args {
        Some(text) => RequestedArguments::Text(text.clone()),
        None => RequestedArguments::Json(arguments(&command.arguments, specification.signature())?),
    };
    let call_of_task = RequestedCall {
        tool: specification.name().to_string(),
        arguments: given,
        // Whoever types a call means it.
        confidence: Some(1.0),
    };
    let crew = crew(&known, specification)?;
    let (configured, _) =
        settings::files_for(None, command.data.as_deref())?.read(&Read::default())?;
    // Policies may be about tools of other libraries.
    let others = named_in(&configured.policies, &configured.configuration, &[]);
    let crew = crew.knowing(others);
    crew.configure(&configured)?;
    let stored = data::open(command.data.as_deref())?;
    let new = NewTask {
        task: Task {
            description: format!("Call `{}` by hand.", known.tool.name()),
            call: Some(Box::new(call_of_task)),
            ..Task::default()
        },
        ..NewTask::default()
    };
    let run = block_on(call(driver(crew, &stored, command), new))??;
    if let (None, Some(standing)) = (run.end(), run.standing()) {
        complain("the call waits for a person")?;
        complain(&what_it_waits_for(&run, stored.store())?)?;
        return Ok(Outcome::Code(standing.exit_code()));
    }
    show(&run, command.json)
}

/// Whoever types a call is asked about it here, unless they have said yes beforehand.
fn driver(crew: Crew, stored: &Stored, command: &ToolsCall) -> Driver {
    let driver = Driver::new(crew, Arc::new(stored.clone()));
    let asker = match command.yes {
        true => Some(yes(stored)),
        false => approvals::asker(stored, &Arc::new(Live::new())).filter(|_| !command.json),
    };
    match asker {
        Some(asker) => driver.asking(asker),
        None => driver,
    }
}

/// Approves what the person who types the call is asked. What needs two people still needs another.
fn yes(stored: &Stored) -> Asker {
    let stored = stored.clone();
    Arc::new(move |question: Approval| {
        let (store, person) = (Arc::clone(stored.store()), stored.who().clone());
        Box::pin(async move {
            let decided = tokio::task::spawn_blocking(move || {
                let digest = question.digest();
                let approve = PersonDecision::Approve;
                store.decide(question.call(), Some(&digest), &person, approve, now())
            });
            match decided.await {
                Ok(Ok(decided)) if decided.still_needed() == 0 => Asked::Decided,
                _ => Asked::NotDecided,
            }
        })
    })
}

/// Drives the run. Interrupted, it stops at once: there is one call, and it is to end.
async fn call(driver: Driver, new: NewTask) -> anyhow::Result<Run> {
    let stop = Stop::default();
    let at_once = stop.at_once.clone();
    let mut interrupts = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        interrupts.recv().await;
        at_once.cancel();
    });
    Ok(driver.stopped_by(stop).start(new).await?)
}

/// An agent that has only this tool. Its model is never asked: the task is the call.
fn crew(known: &Known, specification: Arc<ToolSpecification>) -> anyhow::Result<Crew> {
    let instruction = NonEmptyText::new("Make the call that a person asks for.")?;
    let agent = Agent::new(
        AgentName::new("by_hand")?,
        "by_hand/none".parse()?,
        instruction,
    )
    .with_tool(specification)?;
    let model: Arc<dyn ModelClient> = Arc::new(ScriptedModel::answers([]));
    Ok(Crew::assemble(
        std::slice::from_ref(&agent),
        &agent,
        &known.library,
        BindingMode::Exact,
        &|_| Ok(Arc::clone(&model)),
    )?)
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
                complain(&format!("error: {}", failure.operator_message))?;
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
            complain(&format!("error: {message}\nhint: {}", category.guidance()))?;
        }
        _ => complain("the call was not made")?,
    }
    Ok(end.exit_code())
}
