//! `windlass policy replay`: evaluates changed policies on the calls of past runs.

use serde_json::json;

use super::{PolicySession, agent_files, tools_of};
use crate::CommandOutcome;
use crate::arguments::PolicyReplay;
use crate::program::Program;
use crate::report::Reporter;
use crate::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &PolicyReplay,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let session = PolicySession::new(program, command.data.as_deref(), reporter)?;
    let Some(files) = agent_files(&command.agent, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let Some(new) = session.read(Some(&command.new))? else {
        return Ok(CommandOutcome::Failed);
    };
    let Some(old) = session.read(command.old.as_deref())? else {
        return Ok(CommandOutcome::Failed);
    };
    let recorded = session.service.recorded_calls(&session.identity)?;
    let tools = match command.agent.is_empty() {
        true => recorded.tools.values().cloned().collect(),
        false => tools_of(&files),
    };
    // Loads both, so that the errors of both are reported.
    let (old, new) = (
        session.load_or_report(&old, &tools)?,
        session.load_or_report(&new, &tools)?,
    );
    let (Some(old), Some(new)) = (old, new) else {
        return Ok(CommandOutcome::Failed);
    };
    let replayed = session.service.replay_policies(
        &session.identity,
        (&old, command.old.is_some()),
        &new,
        &recorded,
        &tools,
    )?;
    for replayed in &replayed.differences {
        let (call, input) = (&replayed.call, &replayed.request.input);
        let difference = &replayed.difference;
        if command.json {
            let printed = json!({
                "call": call, "tool": difference.tool, "input": input,
                "before": difference.before, "after": difference.after, "weaker": difference.is_weaker(),
            });
            print_json(&format!("{printed}\n"))?;
        } else {
            let weaker = if difference.is_weaker() {
                " (weaker)"
            } else {
                ""
            };
            print_line(&format!(
                "{call} {} {}: {} -> {}{weaker}\n  before {}\n  after  {}",
                difference.tool,
                json!(input),
                difference.before.verdict,
                difference.after.verdict,
                difference.before,
                difference.after
            ))?;
        }
    }
    eprint_line(&format!(
        "{} of {} decisions about recorded calls would change, {} of them to a less strict one",
        replayed.differences.len(),
        replayed.compared,
        replayed.weaker_count()
    ))?;
    if replayed.left_out > 0 {
        eprint_line(&format!(
            "skipped {} calls of tools that these agent files do not declare",
            replayed.left_out
        ))?;
    }
    if recorded.unreadable_runs > 0 {
        eprint_line(&format!(
            "skipped {} runs that cannot be read",
            recorded.unreadable_runs
        ))?;
    }
    Ok(CommandOutcome::Done)
}
