//! `windlass ab`: the same tasks with two libraries, and what that shows. `experiment.rs` does an experiment,
//! `live.rs` shows how the variants of a tool compare, the other files draw what either found.

mod experiment;
mod live;
mod page;
mod svg;
mod words;

use super::Outcome;
use super::arguments::{Ab, AbCommand};
use super::program::Program;
use super::report::Reporter;

pub(super) fn run(program: &Program, command: &Ab, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let data = command.data.as_deref();
    match &command.command {
        Some(AbCommand::Report(report)) => live::run(program, report, data),
        None => experiment::run(program, &command.experiment, data, reporter),
    }
}
