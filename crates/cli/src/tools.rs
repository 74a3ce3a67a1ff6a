//! `windlass tools`: lists and describes the tools of libraries, calls one directly, and shows the results of
//! calls.

mod call;
mod describe;
mod list;
mod stats;
mod typed;

pub(super) use call::{run as call, show as show_call};

use windlass_service::{DeclaredTools, Identity, Service, ToolDetails};

use super::CommandOutcome;
use super::arguments::{OneTool, Tools, ToolsCommand};
use super::program::Program;
use super::report::Reporter;
use super::source::read_agent_file;

pub(super) fn run(
    program: &Program,
    command: &Tools,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        ToolsCommand::List(command) => list::run(program, command, reporter),
        ToolsCommand::Find(command) => list::find(program, command, reporter),
        ToolsCommand::Describe(command) => describe::run(program, command, reporter),
        ToolsCommand::Call(command) => call::run(program, command, reporter),
        ToolsCommand::Stats(command) => stats::stats(program, command),
        ToolsCommand::Results(command) => stats::results(program, command),
    }
}

/// Finds a tool. `None` if the agent file has errors, which are reported.
fn find(
    service: &Service,
    identity: &Identity,
    asked: &OneTool,
    reporter: &Reporter,
) -> anyhow::Result<Option<ToolDetails>> {
    let declared = match &asked.agent_file {
        None => None,
        Some(path) => {
            let Some(file) = read_agent_file(path, reporter)? else {
                return Ok(None);
            };
            Some(DeclaredTools {
                tools: file.tools().to_vec(),
                place: path.to_string_lossy().into_owned(),
            })
        }
    };
    let found = service.describe_tool(
        identity,
        asked.library.as_deref(),
        &asked.name,
        declared.as_ref(),
    )?;
    Ok(Some(found))
}
