//! `windlass ab`: the same tasks with two libraries, and what that shows. `experiment.rs` does the runs,
//! `live.rs` reads out what a split between variants of a tool shows, the other files serve both.

mod arms;
mod experiment;
mod findings;
mod live;
mod measure;
mod page;
mod schedule;
mod svg;
mod words;

use super::Outcome;
use super::arguments::{Ab, AbCommand};
use super::report::Reporter;

pub(super) fn run(command: &Ab, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let data = command.data.as_deref();
    match &command.command {
        Some(AbCommand::Report(report)) => live::run(report, data),
        None => experiment::run(&command.experiment, data, reporter),
    }
}
