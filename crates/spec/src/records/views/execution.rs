//! An execution as the operator sees it: with its id, its times, and the error message for operators.
//! It exists from the start of a call; a pending call is not an execution.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{operator_message, result_text};
use crate::failure::ErrorCategory;
use crate::names::{NonEmptyText, ToolName};
use crate::records::call::{CallRecord, Ended};
use crate::records::state::CallState;
use crate::records::{schema, units};
use crate::time::Timestamp;
use crate::words::words;

words! {
    /// The status of an execution.
    ExecutionStatus, "status" {
        /// It has not ended.
        Running = "running",
        /// It ended with a result.
        Success = "success",
        /// It failed, or its end is unknown.
        Error = "error",
        /// It took too long.
        Timeout = "timeout",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

/// One execution of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct ToolExecutionResult {
    execution_id: NonEmptyText,
    tool_name: ToolName,
    start_time: Timestamp,
    end: Option<Ended<Outcome>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Success(String),
    Failed {
        status: ExecutionStatus,
        message: NonEmptyText,
        category: Option<ErrorCategory>,
    },
}

impl ToolExecutionResult {
    /// The view of a call; `None` if it was never permitted. Its id is that of the call.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let end = match (call.outcome(), call.ended_at()) {
            (Some(outcome), Some(at)) => Some(Ended {
                at,
                outcome: match outcome {
                    Ok(result) => Outcome::Success(result_text(result)),
                    Err(failure) => Outcome::Failed {
                        status: match call.state() {
                            CallState::Timeout => ExecutionStatus::Timeout,
                            CallState::Cancelled => ExecutionStatus::Cancelled,
                            _ => ExecutionStatus::Error,
                        },
                        message: NonEmptyText::new(operator_message(failure)).ok()?,
                        category: Some(failure.category),
                    },
                },
            }),
            _ => None,
        };
        Some(Self {
            execution_id: NonEmptyText::new(call.id().to_string()).ok()?,
            tool_name: call.tool_name().clone(),
            start_time: call.started_at()?,
            end,
        })
    }

    /// The unique id of the execution.
    #[must_use]
    pub fn execution_id(&self) -> &str {
        self.execution_id.as_str()
    }

    /// The tool that was executed.
    #[must_use]
    pub fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> ExecutionStatus {
        match self.end.as_ref().map(|end| &end.outcome) {
            None => ExecutionStatus::Running,
            Some(Outcome::Success(_)) => ExecutionStatus::Success,
            Some(Outcome::Failed { status, .. }) => *status,
        }
    }

    /// The result of a success: a text unchanged, any other value as JSON.
    #[must_use]
    pub fn result_data(&self) -> Option<&str> {
        match &self.end.as_ref()?.outcome {
            Outcome::Success(result) => Some(result),
            Outcome::Failed { .. } => None,
        }
    }

    /// The error message for the operator.
    #[must_use]
    pub fn error_message(&self) -> Option<&str> {
        match &self.end.as_ref()?.outcome {
            Outcome::Success(_) => None,
            Outcome::Failed { message, .. } => Some(message.as_str()),
        }
    }

    /// The category of the error.
    #[must_use]
    pub fn error_category(&self) -> Option<ErrorCategory> {
        match &self.end.as_ref()?.outcome {
            Outcome::Success(_) => None,
            Outcome::Failed { category, .. } => *category,
        }
    }

    /// When it started.
    #[must_use]
    pub fn start_time(&self) -> Timestamp {
        self.start_time
    }

    /// When it ended, if it did.
    #[must_use]
    pub fn end_time(&self) -> Option<Timestamp> {
        self.end.as_ref().map(|end| end.at)
    }

    /// The time from start to end, if it has ended.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        let microseconds = self.end_time()?.microseconds_since(self.start_time);
        Some(Duration::from_micros(microseconds))
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::tool_execution_result)]
struct Raw {
    /// The unique id of the execution.
    #[schemars(with = "schema::Text")]
    execution_id: NonEmptyText,
    /// The tool that was executed.
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// Its status.
    status: ExecutionStatus,
    /// The result of a success.
    #[serde(default)]
    result_data: Option<String>,
    /// The error message.
    #[serde(default)]
    #[schemars(with = "Option<schema::Text>")]
    error_message: Option<NonEmptyText>,
    /// The category of the error.
    #[serde(default)]
    #[schemars(with = "Option<schema::Category>")]
    error_category: Option<ErrorCategory>,
    /// When it started.
    #[schemars(with = "schema::Time")]
    start_time: Timestamp,
    /// When it ended.
    #[serde(default)]
    #[schemars(with = "Option<schema::Time>")]
    end_time: Option<Timestamp>,
    /// The duration in milliseconds, from start to end.
    #[serde(default)]
    duration_ms: Option<u64>,
}

impl From<ToolExecutionResult> for Raw {
    fn from(result: ToolExecutionResult) -> Self {
        let status = result.status();
        let error_category = result.error_category();
        let end_time = result.end_time();
        let duration_ms = result.duration().map(units::to_whole_milliseconds);
        let (result_data, error_message) = match result.end.map(|end| end.outcome) {
            None => (None, None),
            Some(Outcome::Success(data)) => (Some(data), None),
            Some(Outcome::Failed { message, .. }) => (None, Some(message)),
        };
        Self {
            execution_id: result.execution_id,
            tool_name: result.tool_name,
            status,
            result_data,
            error_message,
            error_category,
            start_time: result.start_time,
            end_time,
            duration_ms,
        }
    }
}

impl TryFrom<Raw> for ToolExecutionResult {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let status = raw.status;
        let parts = (raw.result_data, raw.error_message, raw.end_time);
        let end = match (status, parts) {
            (ExecutionStatus::Running, (None, None, None)) => None,
            (ExecutionStatus::Running, _) => {
                return Err("a running execution must have no result, error or end".to_owned());
            }
            (ExecutionStatus::Success, (Some(result), None, Some(at))) => Some(Ended {
                at,
                outcome: Outcome::Success(result),
            }),
            (ExecutionStatus::Success, _) => {
                return Err(
                    "a success must have result_data and end_time, and no error_message".to_owned(),
                );
            }
            (_, (None, Some(message), Some(at))) => Some(Ended {
                at,
                outcome: Outcome::Failed {
                    status,
                    message,
                    category: raw.error_category,
                },
            }),
            _ => {
                return Err(format!(
                    "an execution that is {status} must have error_message and end_time, and no result_data"
                ));
            }
        };
        let result = Self {
            execution_id: raw.execution_id,
            tool_name: raw.tool_name,
            start_time: raw.start_time,
            end,
        };
        result.check(raw.error_category, raw.duration_ms)?;
        Ok(result)
    }
}

impl ToolExecutionResult {
    fn check(
        &self,
        category: Option<ErrorCategory>,
        duration_ms: Option<u64>,
    ) -> Result<(), String> {
        if category.is_some() && self.error_message().is_none() {
            return Err("error_category is allowed only with an error_message".to_owned());
        }
        if self.end_time().is_some_and(|end| end < self.start_time) {
            return Err("end_time is before start_time".to_owned());
        }
        let calculated = self.duration().map(units::to_whole_milliseconds);
        match (duration_ms, calculated) {
            (None, _) => Ok(()),
            // Other programs may round where this one truncates.
            (Some(given), Some(calculated)) if given.abs_diff(calculated) <= 1 => Ok(()),
            (Some(given), Some(calculated)) => Err(format!(
                "duration_ms is {given}, but start_time and end_time are {calculated} ms apart"
            )),
            (Some(_), None) => Err("a running execution must have no duration_ms".to_owned()),
        }
    }
}
