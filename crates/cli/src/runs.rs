//! `windlass runs`: where runs stand; cancels them, and goes on with those that were stopped or whose
//! process died.

mod cancel;
mod list;
mod show;

use windlass_core::run::{CREATE_EXECUTION_PLAN, Run};
use windlass_runtime::Stored;
use windlass_store::{Error, RunState, Store};

use super::Outcome;
use super::arguments::{Runs, RunsCommand};
use super::refusal::{refused, told};
use super::run::{block_on, driver, show_end};
use super::{crew, data, plan};

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
        RunsCommand::Cancel(one) => return told(cancel::run(&stored, one), one.json),
    };
    told(
        resume(
            &stored,
            run,
            library.as_deref(),
            model.as_deref(),
            command,
            *json,
        ),
        *json,
    )
}

fn resume(
    stored: &Stored,
    run: &str,
    library: Option<&str>,
    model: Option<&str>,
    command: &Runs,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let store = stored.store();
    let id = store.find(run).map_err(refused)?;
    let run = store.fold(&id).map_err(refused)?;
    if let Some(parent) = run.parent() {
        anyhow::bail!(
            "the run {id} works for another one\nhint: windlass runs resume {}",
            parent.run
        );
    }
    // A process may have died between the last event and the note that it was the last.
    if store.summary(&id)?.state == RunState::Ended {
        return show(&run, store, as_json);
    }
    let answered = answered(store, &run)?;
    let crew = crew::reassemble(&run, library, model, answered, command.data.as_deref())?;
    let (crew, _watching) = crew.watched(false);
    let run = block_on(async { driver(crew, stored, false, as_json).resume(&id).await })??;
    show(&run, store, as_json)
}

/// Says what came of a run, or of the plan that was all it had to do.
fn show(run: &Run, store: &Store, as_json: bool) -> anyhow::Result<Outcome> {
    let call = run.task().call.as_ref();
    match call.is_some_and(|call| call.tool == CREATE_EXECUTION_PLAN) {
        true => plan::show_end(run, store, as_json),
        false => show_end(run, store, as_json),
    }
}

/// How often models answered in a run and in those that work for it: of a script that all of them
/// share, so many answers were given.
fn answered(store: &Store, run: &Run) -> Result<usize, Error> {
    let mut answered = match run.task().call {
        Some(_) => 0,
        None => run.turns().len(),
    };
    let children = run.calls().filter_map(|call| run.child_run(call));
    for child in children.chain(run.all_task_runs()) {
        match store.fold(&child) {
            Ok(child) => answered += self::answered(store, &child)?,
            // The process died before the sub-agent began.
            Err(Error::NoSuchRun(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answered)
}
