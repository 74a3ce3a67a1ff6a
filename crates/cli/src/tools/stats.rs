//! `windlass tools stats` and `windlass tools results`: how the executions of tools ended, counted and
//! one by one.

use anyhow::Context as _;
use serde_json::{Value, json};
use windlass_runtime::{Stored, now};
use windlass_spec::{CallState, Timestamp, ToolExecutionResult, ToolName};
use windlass_store::{Execution, ExecutionFilter, ToolStatistics};

use crate::Outcome;
use crate::arguments::{Executions, ToolsResults, ToolsStats};
use crate::data;
use crate::moments::ago;
use crate::table::{one_line, say_table};
use crate::terminal::{complain, put};

/// How much of a result or an error is listed.
const EXCERPT: usize = 80;

pub(super) fn stats(command: &ToolsStats) -> anyhow::Result<Outcome> {
    let stored = data::open(command.executions.data.as_deref())?;
    let statistics =
        stored
            .store()
            .tool_statistics(&filter(&command.executions, &stored, None)?)?;
    if command.executions.json {
        for of in &statistics {
            put(&format!("{}\n", as_object(of)?))?;
        }
    } else if statistics.is_empty() {
        complain("no tool was executed")?;
    } else {
        let now = now();
        let rows: Vec<[String; 8]> = statistics.iter().map(|of| row(of, now)).collect();
        say_table(
            [
                "TOOL", "CALLS", "OK", "FAILED", "RATE", "MEDIAN", "P95", "LAST",
            ],
            &rows,
        )?;
    }
    Ok(Outcome::Done)
}

pub(super) fn results(command: &ToolsResults) -> anyhow::Result<Outcome> {
    let stored = data::open(command.executions.data.as_deref())?;
    let limit = Some(command.limit);
    let executions = stored
        .store()
        .executions(&filter(&command.executions, &stored, limit)?)?;
    if command.executions.json {
        for execution in &executions {
            put(&format!(
                "{}\n",
                serde_json::to_string(&result(execution)?)?
            ))?;
        }
    } else if executions.is_empty() {
        complain("no tool was executed")?;
    } else {
        let now = now();
        let rows: Vec<[String; 6]> = executions
            .iter()
            .map(|execution| {
                let took = execution.ended_at.microseconds_since(execution.started_at) / 1000;
                let told = execution.error.as_ref().or(execution.result.as_ref());
                [
                    execution.call.to_string(),
                    execution.tool.to_string(),
                    execution.state.to_string(),
                    format!("{took} ms"),
                    ago(execution.ended_at, now),
                    one_line(told.map_or("-", String::as_str), EXCERPT),
                ]
            })
            .collect();
        say_table(["CALL", "TOOL", "STATUS", "TOOK", "ENDED", "RESULT"], &rows)?;
    }
    Ok(Outcome::Done)
}

fn filter(
    asked: &Executions,
    stored: &Stored,
    limit: Option<usize>,
) -> anyhow::Result<ExecutionFilter> {
    let tool = asked.tool.as_deref().map(ToolName::new).transpose();
    let hours = |hours: u32| {
        let earlier = i64::from(hours) * 3_600_000_000;
        Timestamp::from_microseconds(now().as_microseconds().saturating_sub(earlier))
    };
    Ok(ExecutionFilter {
        tenant: Some(stored.who().tenant.to_string()),
        tool: tool.context("this is no name of a tool")?,
        run: None,
        since: asked.hours.map(hours),
        limit,
    })
}

fn as_object(of: &ToolStatistics) -> anyhow::Result<Value> {
    let mut object = serde_json::to_value(of)?;
    object["success_rate"] = json!((of.success_rate() * 1e4).round() / 1e4);
    Ok(object)
}

fn row(of: &ToolStatistics, now: Timestamp) -> [String; 8] {
    let last = match of.last_error {
        Some(error) => format!("{} (last failure: {error})", ago(of.last_at, now)),
        None => ago(of.last_at, now),
    };
    [
        of.tool.to_string(),
        of.executions.to_string(),
        of.success_count.to_string(),
        of.failure_count.to_string(),
        format!("{:.0} %", of.success_rate() * 100.0),
        format!("{} ms", of.median_ms),
        format!("{} ms", of.p95_ms),
        last,
    ]
}

/// An execution in the form that other programs know. What a purge removed is said to be removed.
fn result(execution: &Execution) -> anyhow::Result<ToolExecutionResult> {
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
    let told = json!({
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
    serde_json::from_value(told).context("an execution cannot be read")
}
