//! The calls listed in an [`AgentResponse`](crate::AgentResponse).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EndedCall;
use crate::names::ToolName;
use crate::records::call::CallRecord;
use crate::records::state::CallState;
use crate::records::{schema, units};
use crate::words::words;

words! {
    /// The outcome of a call, as one of three words. Written in lower case.
    ToolCallStatus, "status" {
        /// It has a result.
        Success = "success",
        /// It failed, was cancelled, or its end is unknown.
        Failed = "failed",
        /// It took too long.
        Timeout = "timeout",
    }
}

/// One call of an answer: the tool, the arguments and the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw")]
#[schemars(with = "Raw")]
pub struct ToolCallRecord {
    tool_name: ToolName,
    parameters: Map<String, Value>,
    result: Option<Value>,
    duration_ms: u64,
    status: ToolCallStatus,
}

impl ToolCallRecord {
    /// The view of a call; `None` if it was never permitted or has not ended.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let ended = EndedCall::of(call)?;
        Some(Self {
            tool_name: ended.record.tool_name().clone(),
            parameters: ended.record.arguments().clone(),
            result: ended.outcome.ok().cloned().filter(|value| !value.is_null()),
            duration_ms: units::to_whole_milliseconds(ended.duration),
            status: match ended.record.state() {
                CallState::Success => ToolCallStatus::Success,
                CallState::Timeout => ToolCallStatus::Timeout,
                _ => ToolCallStatus::Failed,
            },
        })
    }

    /// The tool that was called.
    #[must_use]
    pub fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// The arguments of the call.
    #[must_use]
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// The result; `None` if it failed, took too long, or returned null.
    #[must_use]
    pub fn result(&self) -> Option<&Value> {
        self.result.as_ref()
    }

    /// The duration, to the millisecond.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }

    /// The outcome.
    #[must_use]
    pub fn status(&self) -> ToolCallStatus {
        self.status
    }
}

/// The JSON form of a call, before validation.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolCallRecord", transform = schema::tool_call_record)]
struct Raw {
    /// The tool that was called.
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// The arguments of the call.
    parameters: Map<String, Value>,
    /// The result; null if it failed or took too long.
    #[serde(default)]
    #[schemars(with = "Value")]
    result: Option<Value>,
    /// The duration in milliseconds.
    duration_ms: u64,
    /// The outcome. Read in any case, written in lower case.
    #[schemars(with = "schema::StatusInAnyCase")]
    status: ToolCallStatus,
}

impl TryFrom<Raw> for ToolCallRecord {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        if raw.status != ToolCallStatus::Success && raw.result.is_some() {
            return Err(format!("a call that is {} must have no result", raw.status));
        }
        Ok(Self {
            tool_name: raw.tool_name,
            parameters: raw.parameters,
            result: raw.result,
            duration_ms: raw.duration_ms,
            status: raw.status,
        })
    }
}
