//! The executions of tools: statistics, and one by one.

use serde_json::{Value, json};
use windlass_spec::{CallId, CallState, Timestamp, ToolExecutionResult, ToolName};
use windlass_store::{Execution, ExecutionFilter, ToolStatistics};

use crate::error::{ServiceError, with_sources};
use crate::identity::{Identity, Scope};
use crate::service::Service;

const MICROSECONDS_PER_HOUR: i64 = 3_600_000_000;

/// Selects executions.
#[derive(Debug, Clone, Default)]
pub struct ExecutionQuery {
    /// Only those of the tool of that name.
    pub tool: Option<String>,
    /// Only those of the last hours.
    pub hours: Option<u32>,
    /// Only those of the run with this id.
    pub run: Option<String>,
    /// At most this many, the latest.
    pub limit: Option<usize>,
    /// Only those after the execution of this call in the list: for the next page, the last one of the page.
    pub after: Option<CallId>,
}

impl Service {
    /// Statistics of the executions of each tool of the identity's tenant, sorted by name.
    ///
    /// # Errors
    /// If the identity may not read, or the tool's name is not valid.
    pub fn tool_statistics(
        &self,
        identity: &Identity,
        query: &ExecutionQuery,
    ) -> Result<Vec<ToolStatistics>, ServiceError> {
        let filter = self.execution_filter(identity, query)?;
        Ok(self.store()?.tool_statistics(&filter)?)
    }

    /// The executions of tools of the identity's tenant, the latest first.
    ///
    /// # Errors
    /// If the identity may not read, or the tool's name is not valid.
    pub fn tool_executions(
        &self,
        identity: &Identity,
        query: &ExecutionQuery,
    ) -> Result<Vec<Execution>, ServiceError> {
        let filter = self.execution_filter(identity, query)?;
        Ok(self.store()?.executions(&filter)?)
    }

    /// The ended execution of a call: its result or error, and how long it took. See [`execution_result`].
    ///
    /// # Errors
    /// If the identity may not read, or there is no such execution in its tenant.
    pub fn show_execution(
        &self,
        identity: &Identity,
        call: &CallId,
    ) -> Result<Execution, ServiceError> {
        let filter = ExecutionFilter {
            call: Some(call.clone()),
            ..self.execution_filter(identity, &ExecutionQuery::default())?
        };
        self.store()?.executions(&filter)?.pop().ok_or_else(|| {
            let message = format!("no execution of the call `{call}` has ended");
            ServiceError::not_found("no_such_execution", message)
        })
    }

    fn execution_filter(
        &self,
        identity: &Identity,
        query: &ExecutionQuery,
    ) -> Result<ExecutionFilter, ServiceError> {
        identity.require(Scope::Read)?;
        let tool = query.tool.as_deref().map(ToolName::new).transpose();
        let tool = tool.map_err(|error| {
            let message = format!("this is not a valid tool name: {}", with_sources(&error));
            ServiceError::invalid("not_a_tool_name", message)
        })?;
        let since = |hours: u32| {
            let earlier = i64::from(hours) * MICROSECONDS_PER_HOUR;
            let now = self.now().as_microseconds();
            Timestamp::from_microseconds(now.saturating_sub(earlier))
        };
        Ok(ExecutionFilter {
            tenant: Some(identity.tenant().to_string()),
            tool,
            run: match &query.run {
                Some(id) => Some(self.find_run(identity, id)?.0.run),
                None => None,
            },
            call: None,
            since: query.hours.map(since),
            limit: query.limit,
            after: query.after.clone(),
        })
    }
}

/// An execution in the exchange format. Purged texts are replaced by a note.
///
/// # Errors
/// If the stored execution has no such form.
pub fn execution_result(execution: &Execution) -> Result<ToolExecutionResult, ServiceError> {
    const REMOVED: &str = "(removed by a purge)";
    let text = |json: &String| match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        _ => json.clone(),
    };
    let status = match execution.state {
        CallState::Success => "success",
        CallState::Timeout => "timeout",
        CallState::Cancelled => "cancelled",
        _ => "error",
    };
    let is_success = execution.state == CallState::Success;
    let took = execution.ended_at.microseconds_since(execution.started_at) / 1000;
    let result_data = execution.result.as_ref().map_or(REMOVED.to_owned(), text);
    let error = execution.error.as_deref().unwrap_or(REMOVED);
    let result = json!({
        "execution_id": execution.call.to_string(),
        "tool_name": execution.tool,
        "status": status,
        "result_data": is_success.then_some(result_data),
        "error_message": (!is_success).then_some(error),
        "error_category": execution.category,
        "start_time": execution.started_at,
        "end_time": execution.ended_at,
        "duration_ms": took,
    });
    serde_json::from_value(result)
        .map_err(|error| ServiceError::from(error).context("an execution cannot be read"))
}
