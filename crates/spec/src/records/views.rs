//! Views of a call: the forms in which other systems know one, each with its own keys and words.
//! A view is made from a [`CallRecord`] and says nothing the record does not. A call that was never
//! permitted has no view but the answer to whoever asked for it: it was asked for and not made.

mod execution;
mod invocation;
mod response;
mod tool_call;
mod tool_call_record;

pub use execution::{ExecutionStatus, ToolExecutionResult};
pub use invocation::ToolInvocation;
pub use tool_call::ToolCall;
pub use tool_call_record::{ToolCallRecord, ToolCallStatus};

use std::time::Duration;

use serde_json::Value;

use super::call::CallRecord;
use crate::failure::Failure;
use crate::names::ToolName;

/// A call that was made and is over: what most views are made from.
struct MadeCall<'a> {
    record: &'a CallRecord,
    outcome: Result<&'a Value, &'a Failure>,
    duration: Duration,
}

impl<'a> MadeCall<'a> {
    fn of(record: &'a CallRecord) -> Option<Self> {
        Some(Self {
            record,
            outcome: record.outcome()?,
            duration: record.duration()?,
        })
    }
}

/// The names of the tools that were used: of calls that got a permit, each once, in the order of
/// first use.
#[must_use]
pub fn tools_used<'a>(calls: impl IntoIterator<Item = &'a CallRecord>) -> Vec<ToolName> {
    let permitted = calls.into_iter().filter(|call| call.was_permitted());
    unique(permitted.map(CallRecord::tool_name))
}

/// Each name once, where it first stands.
pub(super) fn unique<'a>(names: impl IntoIterator<Item = &'a ToolName>) -> Vec<ToolName> {
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::new();
    for name in names {
        if seen.insert(name) {
            kept.push(name.clone());
        }
    }
    kept
}

/// A result as text: a text as it is, anything else as JSON.
pub(super) fn result_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a model may be told of a failure; never empty.
pub(super) fn told_to_model(failure: &Failure) -> String {
    explained(&failure.model_message, failure)
}

/// What whoever runs this is told of a failure; never empty.
fn told_to_operator(failure: &Failure) -> String {
    explained(&failure.operator_message, failure)
}

fn explained(message: &str, failure: &Failure) -> String {
    if message.trim().is_empty() {
        format!("{}: {}", failure.category, failure.category.guidance())
    } else {
        message.to_owned()
    }
}
