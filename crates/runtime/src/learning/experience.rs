//! A run that is over, as what can be learned from it. Here it is decided what strangers may have caused:
//! a call that changes something, made after something was read from outside, teaches nothing, because
//! what was read may have asked for it.

use serde_json::Value;
use windlass_core::run::{Entry, Mistake, RecalledStrategy, Run, RunEnd};
use windlass_learn::playbook::{Ended, Experience, RecalledBefore, Tried, is_subsequence};
use windlass_spec::{
    CallRecord, CallState, ErrorCategory, NonEmptyText, RiskLevel, StrategySection, Timestamp,
    ToolName,
};

/// What can be learned from a run, given what whoever can tell says about its answer; nothing if it is not
/// over, or nobody was asked in it.
#[must_use]
pub fn of(run: &Run, checked: Option<bool>, now: Timestamp) -> Option<Experience> {
    let end = run.end()?;
    if run.task().call.is_some() {
        return None;
    }
    let recalled = run.recalled().unwrap_or_default();
    Some(Experience {
        run: run.id().clone(),
        agent: run.agent().name().clone(),
        at: now,
        task: match run.task().tainted {
            true => None,
            false => NonEmptyText::new(run.task().description.trim()).ok(),
        },
        ended: ended(end),
        confidence: run.response().confidence,
        checked,
        refused_by_person: refused_by_person(run),
        iterations: u32::try_from(run.turns().len()).unwrap_or(u32::MAX),
        calls: calls(run),
        recalled: recalled
            .iter()
            .map(|recalled| RecalledBefore {
                id: recalled.id.clone(),
                section: recalled.section,
                sequence: recalled.sequence.clone(),
            })
            .collect(),
    })
}

/// The strategies that were put before the model of a run, and whether each was followed: its tools
/// succeeded in its order.
pub fn followed(run: &Run) -> impl Iterator<Item = (&RecalledStrategy, bool)> {
    let calls = calls(run);
    let recalled = run.recalled().unwrap_or_default().iter();
    recalled.map(move |recalled| {
        let succeeded = calls.iter().filter(|call| call.outcome.is_ok());
        let tools = succeeded.map(|call| &call.tool);
        let is_followed = recalled.section == StrategySection::Strategies
            && !recalled.sequence.is_empty()
            && is_subsequence(&recalled.sequence, tools);
        (recalled, is_followed)
    })
}

fn ended(end: &RunEnd) -> Ended {
    match end {
        RunEnd::Completed => Ended::Completed,
        RunEnd::IterationLimit => Ended::Short("it ran out of turns".to_owned()),
        RunEnd::Budget { budget } => {
            Ended::Short(format!("it ran out of its budget ({})", budget.as_str()))
        }
        RunEnd::Cancelled => Ended::Stopped("it was stopped".to_owned()),
        RunEnd::WaitingForPerson => Ended::Stopped("it waits for a person".to_owned()),
        // What the model or the operator is to blame for says nothing about tools.
        RunEnd::Failed { category, .. } => match category {
            ErrorCategory::InvalidArguments
            | ErrorCategory::NotFound
            | ErrorCategory::ToolFailure
            | ErrorCategory::InvalidOutput => Ended::Short(format!("it failed ({category})")),
            _ => Ended::Stopped(format!("it could not go on ({category})")),
        },
    }
}

/// The calls of the agent's own tools, in order. What is asked of people, of plans and of the search for
/// tools is not among them.
fn calls(run: &Run) -> Vec<Tried> {
    let is_own = |name: &ToolName| run.allowed_tools().any(|tool| tool.name() == name);
    let mut calls = Vec::new();
    for entry in run.turns().iter().flat_map(|turn| &turn.entries) {
        let (record, outcome) = match entry {
            Entry::Finish => continue,
            Entry::Call { record, .. } => match record.outcome() {
                None => continue,
                Some(Ok(_)) => (record, Ok(())),
                Some(Err(failure)) => (record, Err(failure.category)),
            },
            Entry::Mistake { mistake, record } => match mistake {
                Mistake::NotJson(_) | Mistake::Misfits(_) => {
                    (record, Err(ErrorCategory::InvalidArguments))
                }
                _ => continue,
            },
        };
        if !is_own(record.tool_name()) {
            continue;
        }
        let is_tainted = run
            .is_tainted_at(record.id())
            .unwrap_or_else(|_| run.is_tainted());
        let is_harmless = run.risk(record.id()) == RiskLevel::Reversible;
        let is_needed = !is_harmless || !is_in_vain(run, record);
        calls.push(Tried {
            tool: record.tool_name().clone(),
            outcome,
            teaches: (!is_tainted || is_harmless) && is_needed,
        });
    }
    calls
}

/// Whether a call only looked around: it was asked for without arguments, changed nothing, and nothing that
/// came after it used what it found.
fn is_in_vain(run: &Run, record: &CallRecord) -> bool {
    if !record.arguments().is_empty() {
        return false;
    }
    let Some(Ok(result)) = record.outcome() else {
        return false;
    };
    let mut later = run
        .calls()
        .skip_while(|call| call.id() != record.id())
        .skip(1)
        .filter(|call| call.was_permitted())
        .peekable();
    // What comes last is what was asked for.
    if later.peek().is_none() {
        return false;
    }
    let mut found = Vec::new();
    scalars(result, &mut found);
    !later.any(|call| {
        let mut used = Vec::new();
        scalars(&Value::Object(call.arguments().clone()), &mut used);
        used.iter().any(|used| found.contains(used))
    })
}

/// The texts and numbers in a value that say something.
fn scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > 2 => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| scalars(field, found)),
        Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// The tool of a call that a person refused or undid.
fn refused_by_person(run: &Run) -> Option<ToolName> {
    let refused = run.calls().find(|call| {
        let is_undone = call.state() == CallState::Cancelled && !call.was_permitted();
        let failure = call.outcome().and_then(Result::err);
        is_undone || failure.is_some_and(|failure| failure.category == ErrorCategory::Rejected)
    });
    refused.map(|call| call.tool_name().clone())
}
