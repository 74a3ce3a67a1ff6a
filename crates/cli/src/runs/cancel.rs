//! `windlass runs cancel`: stops a run for good, whoever has it in hand. A process that is at it is told
//! through the run's inbox; a run that no process owns is ended from here.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_core::approval::Identity;
use windlass_core::run::RunEnd;
use windlass_runtime::{DriveError, DurableError, Stored, cancel_unowned, local_identity, now};
use windlass_spec::RunId;
use windlass_store::{Error, RunFilter, RunState, Store};

use super::list::end_word;
use crate::Outcome;
use crate::arguments::OneRun;
use crate::outermost::is_part_of;
use crate::refusal::{Refusal, refused};
use crate::run::block_on_until_interrupted;
use crate::terminal::{complain, put, say};

/// How long a process is given to stop its run.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often its run is looked at meanwhile.
const PERIOD: Duration = Duration::from_millis(100);

/// The exit code for a run that was not stopped in time.
const OUT_OF_TIME: u8 = 5;

pub(super) fn run(stored: &Stored, command: &OneRun) -> anyhow::Result<Outcome> {
    let store = stored.store();
    let person = local_identity()?;
    let id = store.find(&command.run).map_err(refused)?;
    store.request_cancel(&id, &person, now()).map_err(refused)?;
    let inner = inner_runs(store, &id)?;
    for run in &inner {
        match store.request_cancel(run, &person, now()) {
            // Whoever has the outer run in hand may have stopped it already.
            Ok(()) | Err(Error::Ended(_)) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    // The inner ones first: as long as the outer one is open, it can be cancelled once more.
    let deadline = Instant::now() + PATIENCE;
    for run in &inner {
        end(stored, run, &person, deadline)?;
    }
    let was_owned = end(stored, &id, &person, deadline)? == Ended::Elsewhere;
    tell(store, &id, was_owned, command.json)
}

/// The runs of sub-agents that work for a run and are not over, the innermost first.
fn inner_runs(store: &Store, outer: &RunId) -> anyhow::Result<Vec<RunId>> {
    let mut inner = Vec::new();
    for state in [RunState::Open, RunState::Waiting] {
        let filter = RunFilter {
            state: Some(state),
            ..RunFilter::default()
        };
        let runs = store.runs(&filter)?.into_iter().map(|run| run.run);
        inner.extend(runs.filter(|run| run != outer && is_part_of(run, outer)));
    }
    inner.sort_by_key(|run| std::cmp::Reverse(run.as_str().len()));
    Ok(inner)
}

/// Who ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Here,
    /// The process that had it in hand, or nobody yet.
    Elsewhere,
}

/// Ends a run from here if no process owns it; else waits for its owner.
fn end(
    stored: &Stored,
    run: &RunId,
    person: &Identity,
    deadline: Instant,
) -> anyhow::Result<Ended> {
    loop {
        let cancelled = cancel_unowned(stored, run, &person.principal);
        match block_on_until_interrupted(cancelled)? {
            Ok(_) => return Ok(Ended::Here),
            Err(DriveError::Durable(DurableError::RunEnded(_))) => return Ok(Ended::Elsewhere),
            Err(DriveError::Durable(DurableError::OwnedElsewhere(_))) => {
                if Instant::now() >= deadline {
                    return Ok(Ended::Elsewhere);
                }
                sleep(PERIOD);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn tell(store: &Store, id: &RunId, was_owned: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let summary = store.summary(id).map_err(refused)?;
    let end = summary
        .end
        .as_ref()
        .filter(|_| summary.state == RunState::Ended);
    let Some(end) = end else {
        if as_json {
            let told =
                json!({"run": id, "state": summary.state.as_str(), "end": null, "was_owned": true});
            put(&format!("{told}\n"))?;
        }
        complain(&format!(
            "the process that has the run {id} in hand was told to stop, but has not within {} s; it stops when \
             it looks at its inbox\nhint: windlass runs show {id}",
            PATIENCE.as_secs()
        ))?;
        return Ok(Outcome::Code(OUT_OF_TIME));
    };
    if *end != RunEnd::Cancelled {
        let message = format!(
            "the run `{id}` came to its end before it could be cancelled: {}",
            end_word(end)
        );
        return Err(Refusal::conflict("ended", message).into());
    }
    if as_json {
        let told =
            json!({"run": id, "state": summary.state.as_str(), "end": end, "was_owned": was_owned});
        put(&format!("{told}\n"))?;
    } else if was_owned {
        say(&format!(
            "cancelled: {id}, by the process that had it in hand"
        ))?;
    } else {
        say(&format!("cancelled: {id}"))?;
    }
    Ok(Outcome::Done)
}
