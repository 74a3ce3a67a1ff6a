//! `windlass runs cancel`: stops a run for good, whoever has it in hand. A process that is at it is told
//! through the run's mailbox; a run nobody is at is ended from here.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_core::approval::Identity;
use windlass_core::run::{Event, Run, RunEnd};
use windlass_runtime::{local_identity, mail_event, now};
use windlass_spec::RunId;
use windlass_store::{Alongside, Error, RunFilter, RunJournal, RunState, Store};

use super::list::end_word;
use crate::Outcome;
use crate::arguments::OneRun;
use crate::outermost::is_part_of;
use crate::refusal::{Refusal, refused};
use crate::terminal::{complain, put, say};

/// How long a process is given to stop its run.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often its run is looked at meanwhile.
const PERIOD: Duration = Duration::from_millis(100);

/// The exit code for a run that was not stopped in time.
const OUT_OF_TIME: u8 = 5;

pub(super) fn run(store: &Store, command: &OneRun) -> anyhow::Result<Outcome> {
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
        end(store, run, &person, deadline)?;
    }
    let was_owned = end(store, &id, &person, deadline)? == Ended::Elsewhere;
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

/// Ends a run from here if nobody has it in hand; else waits for whoever has.
fn end(store: &Store, run: &RunId, person: &Identity, deadline: Instant) -> anyhow::Result<Ended> {
    loop {
        match store.take_over(run) {
            Ok(journal) => {
                let mut folded = store.fold(run).map_err(refused)?;
                if folded.end().is_none() {
                    take_mail(&journal, &mut folded)?;
                }
                if folded.end().is_none() {
                    let by = Some(person.principal.clone());
                    let event = journal.redacted(Event::Cancelled { by, at: now() })?;
                    folded.apply(event.event())?;
                    journal.append_alongside(&event, &[])?;
                }
                journal.end(&end_of(&folded))?;
                return Ok(Ended::Here);
            }
            Err(Error::Ended(_)) => return Ok(Ended::Elsewhere),
            Err(Error::OwnedElsewhere(_)) if Instant::now() < deadline => sleep(PERIOD),
            Err(Error::OwnedElsewhere(_)) => return Ok(Ended::Elsewhere),
            Err(error) => return Err(refused(error)),
        }
    }
}

/// Takes what others want of a run, the last of which is most likely that it stops. What people decided
/// before belongs in its journal, whatever may still come of it.
fn take_mail(journal: &RunJournal, run: &mut Run) -> anyhow::Result<()> {
    for mail in journal.mail()? {
        let (id, at) = (mail.id, now());
        let mut event = journal.redacted(mail_event(mail, at))?;
        if run.apply(event.event()).is_err() {
            event = journal.redacted(Event::TimePassed { at })?;
            run.apply(event.event())?;
        }
        journal.append_alongside(&event, &[Alongside::Take(id)])?;
    }
    Ok(())
}

/// The end that the events make. A process that died between the last event and the end left it out.
fn end_of(run: &Run) -> RunEnd {
    run.end().cloned().unwrap_or(RunEnd::Cancelled)
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
             it looks at its mail\nhint: windlass runs show {id}",
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
