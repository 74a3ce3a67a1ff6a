//! `windlass runs list`: lists runs with their states. `windlass trace list` shares the formatting.

use serde_json::json;
use windlass_core::run::RunEnd;
use windlass_runtime::now;
use windlass_service::types::RunSummary;
use windlass_service::{Identity, RunQuery, Service};

use crate::CommandOutcome;
use crate::arguments::RunsList;
use crate::moments::ago;
use crate::table::{listed_ids, print_table};
use crate::terminal::{eprint_line, print_json};

/// The maximum length of a listed task.
const TASK: usize = 60;

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &RunsList,
) -> anyhow::Result<CommandOutcome> {
    let query = RunQuery {
        limit: Some(command.limit),
        agent: command.agent.clone(),
        after: command.after.clone(),
        state: command.state.map(Into::into),
        ..RunQuery::default()
    };
    let runs = service.list_runs(identity, &query)?;
    if command.json {
        for run in &runs {
            print_json(&format!("{}\n", run.to_json()))?;
        }
    } else if runs.is_empty() {
        eprint_line("no runs match")?;
    } else {
        let now = now();
        let ids = listed_ids(runs.iter().map(|listed| listed.summary.run.to_string()));
        let rows: Vec<[String; 6]> = runs
            .iter()
            .zip(ids)
            .map(|(listed, id)| {
                let run = &listed.summary;
                let state = match listed.waits_for_program {
                    Some(_) => "waiting for its program",
                    None => run.state.as_str(),
                };
                let end = run.end.as_ref().map_or_else(|| "-".to_owned(), end_word);
                [
                    id,
                    state.to_owned(),
                    end,
                    ago(run.started_at, now),
                    run.agent.clone(),
                    task_line(run),
                ]
            })
            .collect();
        print_table(["RUN", "STATE", "END", "STARTED", "AGENT", "TASK"], &rows)?;
    }
    Ok(CommandOutcome::Done)
}

/// The name of the outcome of a run.
pub(crate) fn end_word(end: &RunEnd) -> String {
    json!(end)["end"].as_str().unwrap_or_default().to_owned()
}

/// The start of a run's task, on one line.
pub(crate) fn task_line(run: &RunSummary) -> String {
    let task = run.task.as_deref().unwrap_or_default();
    let task: String = task.split_whitespace().collect::<Vec<_>>().join(" ");
    task.chars().take(TASK).collect()
}
