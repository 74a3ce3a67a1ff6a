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
    match (&command.command, &command.experiment) {
        (Some(AbCommand::Report(report)), _) => live::run(report, data),
        (None, Some(experiment)) => experiment::run(experiment, data, reporter),
        (None, None) => anyhow::bail!(
            "there is nothing to compare\nhint: windlass ab AGENT --a LIBRARY --b LIBRARY --tasks FILE"
        ),
    }
}
