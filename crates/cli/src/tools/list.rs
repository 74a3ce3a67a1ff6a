//! `windlass tools list`: lists tools, sorted by name. `windlass tools find`: searches tools by what they do.

use windlass_service::ToolQuery;

use crate::CommandOutcome;
use crate::arguments::{ToolsFind, ToolsList, WhichTools};
use crate::program::Program;
use crate::report::Reporter;
use crate::source::read_agent_file;
use crate::table::{one_line, print_table};
use crate::terminal::{eprint_line, print_json};

/// The maximum length of a listed description.
const DESCRIPTION: usize = 80;

pub(super) fn run(
    program: &Program,
    command: &ToolsList,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (
        program.service(command.data.as_deref()),
        program.identity()?,
    );
    let Some(query) = query(&command.which, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let tools = service.list_tools(&identity, &query)?;
    if command.which.json {
        for tool in &tools {
            print_json(&format!("{}\n", tool.to_json()))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 5]> = tools
        .iter()
        .map(|tool| {
            let signature = match &tool.entry.signature {
                Ok(signature) => signature.to_string(),
                Err(_) => "(has no signature; see `windlass tools describe`)".to_owned(),
            };
            [
                tool.entry.name.to_string(),
                library(tool.entry.library.as_deref()),
                tool.risk
                    .map_or_else(|| "-".to_owned(), |risk| risk.to_string()),
                tool.stage.as_str().to_owned(),
                signature,
            ]
        })
        .collect();
    print_table(["TOOL", "LIBRARY", "RISK", "STATE", "SIGNATURE"], &rows)?;
    Ok(CommandOutcome::Done)
}

pub(super) fn find(
    program: &Program,
    command: &ToolsFind,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (program.service(None), program.identity()?);
    let Some(query) = query(&command.which, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let found = service.find_tools(&identity, &command.query, command.limit, &query)?;
    if command.which.json {
        for tool in &found {
            print_json(&format!("{}\n", tool.to_json()))?;
        }
        return Ok(CommandOutcome::Done);
    }
    if found.is_empty() {
        eprint_line("no tools match")?;
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 4]> = found
        .iter()
        .map(|tool| {
            [
                tool.entry.name.to_string(),
                library(tool.entry.library.as_deref()),
                format!("{:.2}", tool.score),
                one_line(&tool.entry.description, DESCRIPTION),
            ]
        })
        .collect();
    print_table(["TOOL", "LIBRARY", "SCORE", "DESCRIPTION"], &rows)?;
    Ok(CommandOutcome::Done)
}

/// The query for tools. `None` if the agent file has errors, which are reported.
fn query(which: &WhichTools, reporter: &Reporter) -> anyhow::Result<Option<ToolQuery>> {
    let declared = match &which.agent_file {
        None => None,
        Some(path) => {
            let Some(file) = read_agent_file(path, reporter)? else {
                return Ok(None);
            };
            Some(file.tools().to_vec())
        }
    };
    Ok(Some(ToolQuery {
        library: which.library.clone(),
        declared,
    }))
}

fn library(name: Option<&str>) -> String {
    name.unwrap_or("-").to_owned()
}
