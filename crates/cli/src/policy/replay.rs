//! `windlass policy replay`: changed policies held against the calls of past runs.

use serde_json::json;

use super::{Desk, agent_files, tools_of};
use crate::Outcome;
use crate::arguments::PolicyReplay;
use crate::program::Program;
use crate::report::Reporter;
use crate::terminal::{complain, put, say};

pub(super) fn run(
    program: &Program,
    command: &PolicyReplay,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let desk = Desk::new(program, command.data.as_deref(), reporter)?;
    let Some(files) = agent_files(&command.agent, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let Some(new) = desk.read(Some(&command.new))? else {
        return Ok(Outcome::Failed);
    };
    let Some(old) = desk.read(command.old.as_deref())? else {
        return Ok(Outcome::Failed);
    };
    let recorded = desk.service.recorded_calls(&desk.identity)?;
    let tools = match command.agent.is_empty() {
        true => recorded.tools.values().cloned().collect(),
        false => tools_of(&files),
    };
    // Both at once, so that all mistakes are reported at once.
    let (old, new) = (
        desk.load_or_complain(&old, &tools)?,
        desk.load_or_complain(&new, &tools)?,
    );
    let (Some(old), Some(new)) = (old, new) else {
        return Ok(Outcome::Failed);
    };
    let replayed = desk
        .service
        .replay_policies(&desk.identity, &old, &new, &recorded, &tools)?;
    for replayed in &replayed.differences {
        let (call, input) = (&replayed.call, &replayed.request.input);
        let difference = &replayed.difference;
        if command.json {
            let printed = json!({
                "call": call, "tool": difference.tool, "input": input,
                "before": difference.before, "after": difference.after, "weaker": difference.is_weaker(),
            });
            put(&format!("{printed}\n"))?;
        } else {
            let weaker = if difference.is_weaker() {
                " (weaker)"
            } else {
                ""
            };
            say(&format!(
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
    complain(&format!(
        "{} of {} recorded calls would be decided differently, {} of them less strictly",
        replayed.differences.len(),
        replayed.compared,
        replayed.weaker_count()
    ))?;
    if replayed.left_out > 0 {
        complain(&format!(
            "{} calls of tools that these agent files do not declare were left out",
            replayed.left_out
        ))?;
    }
    if recorded.unreadable_runs > 0 {
        complain(&format!(
            "{} runs could not be read and were left out",
            recorded.unreadable_runs
        ))?;
    }
    Ok(Outcome::Done)
}
