//! `windlass agent`: prints agents as gram text or JSON.

use windlass_service::DeclaredAgent;
use windlass_spec::{write, write_agent};

use super::CommandOutcome;
use super::arguments::{AgentCommand, AgentShow, AgentSubcommand};
use super::report::Reporter;
use super::source::read_agent_file;
use super::terminal::{print_content, print_json};

pub(super) fn run(command: &AgentCommand, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        AgentSubcommand::Show(command) => show(command, reporter),
    }
}

fn show(command: &AgentShow, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    let Some(file) = read_agent_file(&command.file, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let Some(name) = &command.agent else {
        match command.json {
            true => print_json(&format!("{}\n", serde_json::to_string_pretty(&file)?))?,
            false => print_content(&write(&file)?)?,
        }
        return Ok(CommandOutcome::Done);
    };
    let place = command.file.to_string_lossy();
    let declared = DeclaredAgent::choose(file, Some(name), &place)?;
    match command.json {
        true => print_json(&format!(
            "{}\n",
            serde_json::to_string_pretty(declared.agent())?
        ))?,
        false => print_content(&write_agent(declared.agent())?)?,
    }
    Ok(CommandOutcome::Done)
}
