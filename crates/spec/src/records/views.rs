//! Views of a call: its forms for other systems, each with its own keys and words. A view is derived
//! from a [`CallRecord`] and adds nothing to it. A call that was never permitted has no view except
//! the answer to its caller, because it was requested but not started.

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

/// A started call that has ended, from which most views are derived.
struct EndedCall<'a> {
    record: &'a CallRecord,
    outcome: Result<&'a Value, &'a Failure>,
    duration: Duration,
}

impl<'a> EndedCall<'a> {
    fn of(record: &'a CallRecord) -> Option<Self> {
        Some(Self {
            record,
            outcome: record.outcome()?,
            duration: record.duration()?,
        })
    }
}

/// The names of the used tools: those of calls that got a permit, each once, in the order of first
/// use.
#[must_use]
pub fn tools_used<'a>(calls: impl IntoIterator<Item = &'a CallRecord>) -> Vec<ToolName> {
    let permitted = calls.into_iter().filter(|call| call.was_permitted());
    unique(permitted.map(CallRecord::tool_name))
}

/// Each name once, in the order of first occurrence.
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

/// A result as text: a text unchanged, any other value as JSON.
pub(super) fn result_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The message of a failure for the model; never empty.
pub(super) fn model_message(failure: &Failure) -> String {
    message_or_guidance(&failure.model_message, failure)
}

/// The message of a failure for the operator; never empty.
fn operator_message(failure: &Failure) -> String {
    message_or_guidance(&failure.operator_message, failure)
}

fn message_or_guidance(message: &str, failure: &Failure) -> String {
    if message.trim().is_empty() {
        format!("{}: {}", failure.category, failure.guidance())
    } else {
        message.to_owned()
    }
}
