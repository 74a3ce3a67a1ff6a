//! A call as a tool answers it: the envelope. Most calls are answered as a success or an error; those about
//! plans as a plan that exists, with the status it has.

use serde_json::Value;

use crate::envelope::{ExecutionMode, Plan, ToolResponse, WorkStatus};
use crate::names::{NonEmptyText, ToolName};
use crate::plan::{CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, UPDATE_TASK_STATUS};
use crate::records::call::CallRecord;
use crate::time::Timestamp;

impl ToolResponse {
    /// The view of a call; nothing if it is not over. One that was refused is answered, too.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let at = call.ended_at()?;
        Some(match call.outcome()? {
            Ok(result) => Self::of_result(call.tool_name(), result, at),
            Err(failure) => Self::error(call.tool_name(), failure.clone(), at),
        })
    }

    /// The answer of a tool that gave this result.
    #[must_use]
    pub fn of_result(tool: &ToolName, result: &Value, at: Timestamp) -> Self {
        match of_plan(tool.as_str(), result) {
            Some((status, plan)) => Self::plan(tool, status, plan, at),
            None => Self::success(tool, result.clone(), at),
        }
    }
}

/// The plan that a call about plans tells of, unless it asked for one that is over. Whoever makes a plan is
/// answered that it exists, also if it was carried out at once.
fn of_plan(tool: &str, result: &Value) -> Option<(WorkStatus, Plan)> {
    let status = match (tool, result.get("status")?.as_str()?) {
        (CREATE_EXECUTION_PLAN | UPDATE_TASK_STATUS | GET_EXECUTION_STATUS, "in_progress") => {
            WorkStatus::InProgress
        }
        (CREATE_EXECUTION_PLAN, _) => WorkStatus::Created,
        (UPDATE_TASK_STATUS | GET_EXECUTION_STATUS, "pending") => WorkStatus::Pending,
        _ => return None,
    };
    let mode: ExecutionMode = result.get("execution_mode")?.as_str()?.parse().ok()?;
    let plan = Plan {
        plan_id: NonEmptyText::new(result.get("plan_id")?.as_str()?).ok()?,
        tasks: result.get("tasks")?.as_array()?.clone(),
        execution_mode: mode,
        dependencies: serde_json::from_value(result.get("dependencies")?.clone()).ok()?,
    };
    Some((status, plan))
}
