//! `windlass ab`: compares two libraries on the same tasks. `experiment.rs` runs an experiment, `live.rs` compares
//! the variants of tools in use, and the other files format the findings of both.

mod experiment;
mod live;
mod page;
mod svg;
mod words;

use super::CommandOutcome;
use super::arguments::{Ab, AbCommand};
use super::program::Program;
use super::report::Reporter;

pub(super) fn run(
    program: &Program,
    command: &Ab,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let data = command.data.as_deref();
    match &command.command {
        Some(AbCommand::Report(report)) => live::run(program, report, data),
        None => experiment::run(program, &command.experiment, data, reporter),
    }
}
