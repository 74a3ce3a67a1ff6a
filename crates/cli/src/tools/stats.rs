//! `windlass tools stats` and `windlass tools results`: the executions of tools, counted and listed.

use serde_json::{Value, json};
use windlass_service::types::ToolStatistics;
use windlass_service::{ExecutionQuery, execution_result};
use windlass_spec::Timestamp;

use crate::CommandOutcome;
use crate::arguments::{Executions, ToolsResults, ToolsStats};
use crate::moments::ago;
use crate::program::Program;
use crate::table::{one_line, print_table};
use crate::terminal::{eprint_line, print_json};

/// The maximum length of a listed result or error.
const EXCERPT: usize = 80;

pub(super) fn stats(program: &Program, command: &ToolsStats) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.executions.data.as_deref());
    let query = query(&command.executions, None);
    let statistics = service.tool_statistics(&program.identity()?, &query)?;
    if command.executions.json {
        for of in &statistics {
            print_json(&format!("{}\n", as_object(of)?))?;
        }
    } else if statistics.is_empty() {
        eprint_line("no tools have been called")?;
    } else {
        let now = service.now();
        let rows: Vec<[String; 9]> = statistics.iter().map(|of| row(of, now)).collect();
        print_table(
            [
                "TOOL", "CALLS", "OK", "FAILED", "RATE", "MEDIAN", "P95", "NOTICES", "LAST",
            ],
            &rows,
        )?;
    }
    Ok(CommandOutcome::Done)
}

pub(super) fn results(program: &Program, command: &ToolsResults) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.executions.data.as_deref());
    let query = query(&command.executions, Some(command.limit));
    let executions = service.tool_executions(&program.identity()?, &query)?;
    if command.executions.json {
        for execution in &executions {
            print_json(&format!(
                "{}\n",
                serde_json::to_string(&execution_result(execution)?)?
            ))?;
        }
    } else if executions.is_empty() {
        eprint_line("no tools have been called")?;
    } else {
        let now = service.now();
        let rows: Vec<[String; 6]> = executions
            .iter()
            .map(|execution| {
                let took = execution.ended_at.microseconds_since(execution.started_at) / 1000;
                let result = execution.error.as_ref().or(execution.result.as_ref());
                [
                    execution.call.to_string(),
                    execution.tool.to_string(),
                    execution.state.to_string(),
                    format!("{took} ms"),
                    ago(execution.ended_at, now),
                    one_line(result.map_or("-", String::as_str), EXCERPT),
                ]
            })
            .collect();
        print_table(["CALL", "TOOL", "STATUS", "TOOK", "ENDED", "RESULT"], &rows)?;
    }
    Ok(CommandOutcome::Done)
}

fn query(asked: &Executions, limit: Option<usize>) -> ExecutionQuery {
    ExecutionQuery {
        tool: asked.tool.clone(),
        hours: asked.hours,
        limit,
        ..ExecutionQuery::default()
    }
}

fn as_object(of: &ToolStatistics) -> anyhow::Result<Value> {
    let mut object = serde_json::to_value(of)?;
    object["success_rate"] = json!((of.success_rate() * 1e4).round() / 1e4);
    Ok(object)
}

fn row(of: &ToolStatistics, now: Timestamp) -> [String; 9] {
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
        of.notice_count.to_string(),
        last,
    ]
}
