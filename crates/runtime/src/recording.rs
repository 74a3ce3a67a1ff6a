//! Records what happens to a run: an event is redacted once, applied to the run, and stored.
//!
//! It is applied first, so that an event that does not fit never reaches the journal: what is stored must
//! fold again. If it then cannot be stored, the run is ahead of its journal. After an error it must not be
//! used any more, and every caller gives up. After a refusal, because another process was faster, the run
//! is restored from the journal. That is rare and reads the journal once more; the usual case copies
//! nothing, however long the run is.

use windlass_core::durable::{AtomicWrite, Durability, InboxCommand};
use windlass_core::redact::RedactedEvent;
use windlass_core::run::{Event, KeptTurns, Run};
use windlass_spec::Timestamp;

use crate::driver::DriveError;
use crate::durable::{AppendOutcome, Journal};

/// Applies and stores an event. Returns it as it is stored.
pub(crate) async fn record(
    run: &mut Run,
    journal: &mut dyn Journal,
    event: Event,
    durability: Durability,
) -> Result<RedactedEvent, DriveError> {
    let event = journal.redact(event)?;
    run.apply(event.event())?;
    journal.append(&event, durability).await?;
    Ok(event)
}

/// Applies and stores an event together with a write, both or neither. Returns it; `None` if the write is
/// not possible any more, in which case nothing has happened.
pub(crate) async fn record_with(
    run: &mut Run,
    journal: &mut dyn Journal,
    event: RedactedEvent,
    write: AtomicWrite,
) -> Result<Option<RedactedEvent>, DriveError> {
    run.apply(event.event())?;
    store_applied(run, journal, event, write).await
}

/// Whether to take an inbox command whose event does not fit the run.
pub(crate) enum Misfit {
    /// Take it as [`Event::TimePassed`], so that it does not come again.
    Take,
    /// Stop with the error.
    Stop,
}

/// Takes a command from the inbox of a run and records the event it leads to. One that no longer fits,
/// such as an answer to a question that was withdrawn, is taken as well if `misfit` says so.
pub(crate) async fn take_command(
    run: &mut Run,
    journal: &mut dyn Journal,
    command: InboxCommand,
    at: Timestamp,
    misfit: impl FnOnce(&Run, &Event) -> Misfit,
) -> Result<Option<RedactedEvent>, DriveError> {
    let id = command.id;
    let mut event = journal.redact(command.into_event(at))?;
    if let Err(error) = run.apply(event.event()) {
        if let Misfit::Stop = misfit(run, event.event()) {
            return Err(error.into());
        }
        event = journal.redact(Event::TimePassed { at })?;
        run.apply(event.event())?;
    }
    store_applied(run, journal, event, AtomicWrite::Take(id)).await
}

async fn store_applied(
    run: &mut Run,
    journal: &mut dyn Journal,
    event: RedactedEvent,
    write: AtomicWrite,
) -> Result<Option<RedactedEvent>, DriveError> {
    match journal.append_with(&event, write).await? {
        AppendOutcome::Stored => Ok(Some(event)),
        AppendOutcome::Refused => {
            run.restore(journal.fold(KeptTurns::Shown).await?);
            Ok(None)
        }
    }
}
