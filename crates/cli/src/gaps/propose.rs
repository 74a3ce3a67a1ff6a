//! `windlass gaps propose`: prints the specification of a missing tool, or adds it to an agent file.

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_service::{Identity, Service, ToolProposal};

use super::CommandOutcome;
use crate::arguments::GapsPropose;
use crate::format::replace;
use crate::report::Reporter;
use crate::source::read_agent_file;
use crate::terminal::{eprint_line, print_content, print_json};

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &GapsPropose,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let proposal = service.propose_tool(identity, &command.capability)?;
    if let Some(file) = &command.write
        && !append(file, &proposal, reporter)?
    {
        return Ok(CommandOutcome::Failed);
    }
    if command.json {
        let missing = &proposal.missing;
        let printed = json!({
            "tool": missing.name,
            "wish": missing.description,
            "count": missing.occurrences.len(),
            "proposed_tool": proposal.specification,
            "written_to": command.write,
        });
        print_json(&format!("{printed}\n"))?;
    } else {
        print_content(&format!("{}\n", proposal.specification.trim_end()))?;
        if let Some(file) = &command.write {
            eprint_line(&format!("added to {}", file.display()))?;
        }
    }
    Ok(CommandOutcome::Done)
}

/// Adds a specification to an agent file. Returns whether the file is valid.
fn append(path: &Path, proposal: &ToolProposal, reporter: &Reporter) -> anyhow::Result<bool> {
    let Some(declared) = read_agent_file(path, reporter)? else {
        return Ok(false);
    };
    let place = path.display().to_string();
    let before = std::fs::read_to_string(path).with_context(|| format!("cannot read `{place}`"))?;
    let after = proposal.added_to(&before, &declared, &place)?;
    replace(path, &after).map_err(|why| anyhow::anyhow!("`{place}` was not written: {why}"))?;
    Ok(true)
}
