//! `windlass runs`: shows the state of runs, cancels them, and resumes those that were stopped or whose process
//! died.

mod cancel;
mod list;
mod show;
mod verify;

use std::sync::Arc;

use windlass_service::{Identity, ResumeOptions, Service, ServiceError};

use super::arguments::{Runs, RunsCommand, WhichRun};
use super::live::Live;
use super::program::{Program, ended};
use super::run::{attachment, block_on, show_end};
use super::{CommandOutcome, plan, tools};

pub(super) use list::{end_word, task_line};

pub(super) fn run(program: &Program, command: &Runs) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    match &command.command {
        RunsCommand::List(command) => list::run(&service, &identity, command),
        RunsCommand::Show(one) => ended(show::run(&service, &identity, one), one.json),
        RunsCommand::Cancel(one) => ended(cancel::run(&service, &identity, one), one.json),
        RunsCommand::Verify(command) => {
            ended(verify::run(&service, &identity, command), command.json)
        }
        RunsCommand::Resume {
            run,
            library,
            model,
            json,
        } => {
            let options = ResumeOptions {
                library: library.clone(),
                model: model.clone(),
            };
            let resumed = chosen(run, &service, &identity)
                .map_err(anyhow::Error::from)
                .and_then(|run| resume(&service, &identity, &run, &options, *json));
            ended(resumed, *json)
        }
    }
}

/// The id of the run that a command is about, as it was typed or of the latest run.
pub(super) fn chosen(
    which: &WhichRun,
    service: &Service,
    identity: &Identity,
) -> Result<String, ServiceError> {
    match which.typed() {
        Some(typed) => Ok(typed.to_owned()),
        None => Ok(service.latest_run(identity)?.to_string()),
    }
}

pub(super) fn resume(
    service: &Service,
    identity: &Identity,
    run: &str,
    options: &ResumeOptions,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let live = Arc::new(Live::attended(service, identity));
    let run = block_on(service, async {
        let attachment = attachment(service, identity, &live, false, as_json);
        service.resume(identity, run, options, attachment).await
    })??;
    // The task of some runs is to run a plan, or to make one call.
    match run.task().call.is_some() {
        true if run.is_plan_only() => plan::show_end(&run, service, identity, as_json),
        true if run.end().is_some() && !as_json => tools::show_call(&run, service, as_json),
        _ => show_end(&run, service, identity, &live, as_json),
    }
}
