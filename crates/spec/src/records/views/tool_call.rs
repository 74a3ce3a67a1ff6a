//! One invocation of a tool within a reasoning trace, for learning. It may be shown to a
//! model, so its error message is the one for models.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{EndedCall, model_message};
use crate::names::{NonEmptyText, ToolName};
use crate::records::call::CallRecord;
use crate::records::{schema, units};

/// One invocation of a tool within a reasoning trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct ToolCall {
    /// The tool that was called.
    pub tool_name: ToolName,
    /// The arguments of the call.
    pub arguments: Map<String, Value>,
    /// Its result, or the reason of its failure.
    pub outcome: Result<Value, NonEmptyText>,
    /// Its duration.
    pub duration: Duration,
}

impl ToolCall {
    /// The view of a call; `None` if it was never permitted or has not ended.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let ended = EndedCall::of(call)?;
        let outcome = match ended.outcome {
            Ok(result) => Ok(result.clone()),
            Err(failure) => Err(NonEmptyText::new(model_message(failure)).ok()?),
        };
        Some(Self {
            tool_name: ended.record.tool_name().clone(),
            arguments: ended.record.arguments().clone(),
            outcome,
            duration: ended.duration,
        })
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::tool_call)]
struct Raw {
    /// The tool that was called.
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// The arguments of the call.
    arguments: Map<String, Value>,
    /// The result; null if it failed.
    #[serde(default)]
    result: Value,
    /// Whether it succeeded; false if it failed or took too long.
    success: bool,
    /// Why it failed.
    #[serde(default)]
    #[schemars(with = "Option<schema::Text>")]
    error_message: Option<NonEmptyText>,
    /// The duration in milliseconds.
    #[schemars(with = "schema::ZeroOrMore")]
    duration_ms: f64,
}

impl From<ToolCall> for Raw {
    fn from(call: ToolCall) -> Self {
        let success = call.outcome.is_ok();
        let (result, error_message) = match call.outcome {
            Ok(result) => (result, None),
            Err(message) => (Value::Null, Some(message)),
        };
        Self {
            tool_name: call.tool_name,
            arguments: call.arguments,
            result,
            success,
            error_message,
            duration_ms: units::to_milliseconds(call.duration),
        }
    }
}

impl TryFrom<Raw> for ToolCall {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let outcome = match (raw.success, raw.error_message) {
            (true, None) => Ok(raw.result),
            (true, Some(_)) => {
                return Err("a successful call must have no error_message".to_owned());
            }
            (false, None) => {
                return Err("a failed call must have an error_message".to_owned());
            }
            (false, Some(_)) if !raw.result.is_null() => {
                return Err("a failed call must have no result".to_owned());
            }
            (false, Some(message)) => Err(message),
        };
        Ok(Self {
            tool_name: raw.tool_name,
            arguments: raw.arguments,
            outcome,
            duration: units::from_milliseconds(raw.duration_ms)
                .map_err(|error| format!("duration_ms: {error}"))?,
        })
    }
}
