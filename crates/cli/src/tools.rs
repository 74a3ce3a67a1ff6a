//! `windlass tools`: what is in libraries, what is known of one tool, a call of it by hand, and
//! how calls ended.

mod call;
mod describe;
mod known;
mod lifecycle;
mod list;
mod stats;
mod typed;

pub(super) use call::run as call;

use super::Outcome;
use super::arguments::{Tools, ToolsCommand};
use super::report::Reporter;

pub(super) fn run(command: &Tools, reporter: &Reporter) -> anyhow::Result<Outcome> {
    match &command.command {
        ToolsCommand::List(command) => list::run(command, reporter),
        ToolsCommand::Find(command) => list::find(command, reporter),
        ToolsCommand::Describe(command) => describe::run(command, reporter),
        ToolsCommand::Call(command) => call::run(command, reporter),
        ToolsCommand::Stats(command) => stats::stats(command),
        ToolsCommand::Results(command) => stats::results(command),
    }
}
