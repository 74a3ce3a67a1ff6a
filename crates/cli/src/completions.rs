//! `windlass completions`: prints a shell completion script.

use clap::CommandFactory as _;

use super::CommandOutcome;
use super::arguments::{Arguments, Completions};
use super::terminal::print_content;

pub(super) fn run(command: &Completions) -> anyhow::Result<CommandOutcome> {
    let mut script = Vec::new();
    let mut program = Arguments::command();
    clap_complete::generate(command.shell, &mut program, "windlass", &mut script);
    print_content(&String::from_utf8(script)?)?;
    Ok(CommandOutcome::Done)
}
