//! The calls listed in an [`AgentResponse`](crate::AgentResponse).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::MadeCall;
use crate::names::ToolName;
use crate::records::call::CallRecord;
use crate::records::state::CallState;
use crate::records::words::words;
use crate::records::{schema, units};

words! {
    /// How a call ended, in three words. Written in lower case.
    ToolCallStatus {
        /// With a result.
        Success = "success",
        /// Without one: it failed, was stopped, or nobody knows.
        Failed = "failed",
        /// It took too long.
        Timeout = "timeout",
    }
}

/// One call of an answer: which tool, with what, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct ToolCallRecord {
    tool_name: ToolName,
    parameters: Map<String, Value>,
    result: Option<Value>,
    duration_ms: u64,
    status: ToolCallStatus,
}

impl ToolCallRecord {
    /// The view of a call; nothing if it was never permitted or is not over.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let made = MadeCall::of(call)?;
        Some(Self {
            tool_name: made.record.tool_name().clone(),
            parameters: made.record.arguments().clone(),
            result: made.outcome.ok().cloned().filter(|value| !value.is_null()),
            duration_ms: units::to_whole_milliseconds(made.duration),
            status: match made.record.state() {
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

    /// What it was called with.
    #[must_use]
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// What it returned; nothing if it failed, took too long, or returned null.
    #[must_use]
    pub fn result(&self) -> Option<&Value> {
        self.result.as_ref()
    }

    /// How long it took, to the millisecond.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }

    /// How it ended.
    #[must_use]
    pub fn status(&self) -> ToolCallStatus {
        self.status
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::tool_call_record)]
struct Raw {
    /// The tool that was called.
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// What it was called with.
    parameters: Map<String, Value>,
    /// What it returned; null if it failed or took too long.
    #[serde(default)]
    #[schemars(with = "Value")]
    result: Option<Value>,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// How it ended. Read in any case, written in lower case.
    #[schemars(with = "schema::StatusInAnyCase")]
    status: ToolCallStatus,
}

impl From<ToolCallRecord> for Raw {
    fn from(call: ToolCallRecord) -> Self {
        Self {
            tool_name: call.tool_name,
            parameters: call.parameters,
            result: call.result,
            duration_ms: call.duration_ms,
            status: call.status,
        }
    }
}

impl TryFrom<Raw> for ToolCallRecord {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        if raw.status != ToolCallStatus::Success && raw.result.is_some() {
            return Err(format!("a call that is {} has no result", raw.status));
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
