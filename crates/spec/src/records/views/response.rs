//! The envelope of a call. Most calls are answered with a success or an error; calls of the plan tools are
//! answered with a plan and its status.

use serde_json::Value;

use crate::envelope::{ExecutionMode, PlanReport, ToolResponse, WorkStatus};
use crate::names::{NonEmptyText, ToolName};
use crate::plan::{CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, UPDATE_TASK_STATUS};
use crate::records::call::CallRecord;
use crate::time::Timestamp;

impl ToolResponse {
    /// The view of a call; `None` if it has not ended. A denied call has an answer, too.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let at = call.ended_at()?;
        Some(match call.outcome()? {
            Ok(result) => Self::of_result(call.tool_name(), result, at),
            Err(failure) => Self::error(call.tool_name(), failure.clone(), at),
        })
    }

    /// The answer of a tool with this result.
    #[must_use]
    pub fn of_result(tool: &ToolName, result: &Value, at: Timestamp) -> Self {
        match plan_in_result(tool.as_str(), result) {
            Some((status, plan)) => Self::plan(tool, status, plan, at),
            None => Self::success(tool, result.clone(), at),
        }
    }
}

/// The plan in the result of a plan tool; `None` for the status of a plan that has ended. Creating a plan
/// is always answered with the plan, also if it was executed at once.
fn plan_in_result(tool: &str, result: &Value) -> Option<(WorkStatus, PlanReport)> {
    let status = match (tool, result.get("status")?.as_str()?) {
        (CREATE_EXECUTION_PLAN | UPDATE_TASK_STATUS | GET_EXECUTION_STATUS, "in_progress") => {
            WorkStatus::InProgress
        }
        (CREATE_EXECUTION_PLAN, _) => WorkStatus::Created,
        (UPDATE_TASK_STATUS | GET_EXECUTION_STATUS, "pending") => WorkStatus::Pending,
        _ => return None,
    };
    let mode: ExecutionMode = result.get("execution_mode")?.as_str()?.parse().ok()?;
    let plan = PlanReport {
        plan_id: NonEmptyText::new(result.get("plan_id")?.as_str()?).ok()?,
        tasks: result.get("tasks")?.as_array()?.clone(),
        execution_mode: mode,
        dependencies: serde_json::from_value(result.get("dependencies")?.clone()).ok()?,
    };
    Some((status, plan))
}
