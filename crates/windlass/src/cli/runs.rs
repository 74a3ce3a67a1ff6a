//! `windlass runs`: where runs stand; cancels them, and goes on with those that were stopped or whose
//! process died.

mod cancel;
mod list;
mod show;

use std::sync::Arc;

use windlass_runtime::Driver;

use super::Outcome;
use super::arguments::{Runs, RunsCommand};
use super::interrupt::stop_on_interrupt;
use super::refusal::told;
use super::run::{block_on, show_end, watch};
use super::{crew, data};

pub(super) use list::{as_object, end_word, task_line};

pub(super) fn run(command: &Runs) -> anyhow::Result<Outcome> {
    let stored = data::open(command.data.as_deref())?;
    let (run, library, model, json) = match &command.command {
        RunsCommand::Resume {
            run,
            library,
            model,
            json,
        } => (run, library, model, json),
        RunsCommand::List(command) => return list::run(stored.store(), command),
        RunsCommand::Show(one) => return told(show::run(stored.store(), one), one.json),
        RunsCommand::Cancel(one) => return told(cancel::run(stored.store(), one), one.json),
    };
    let id = stored.store().find(run)?;
    let run = stored.store().fold(&id)?;
    if let Some(parent) = run.parent() {
        anyhow::bail!(
            "the run {id} works for another one\nhint: windlass runs resume {}",
            parent.run
        );
    }
    if run.end().is_some() {
        return show_end(&run, *json);
    }
    let crew = crew::reassemble(&run, library.as_deref(), model.as_deref())?;
    let run = block_on(async {
        Driver::new(crew, Arc::new(stored))
            .stopped_by(stop_on_interrupt())
            .watched_by(watch(false))
            .resume(&id)
            .await
    })??;
    show_end(&run, *json)
}
