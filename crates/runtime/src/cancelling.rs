//! Ends a run that no process drives, without its agents: the commands in its inbox are taken, then it is
//! cancelled.

use windlass_core::approval::Principal;
use windlass_core::durable::Durability;
use windlass_core::run::{Event, RunEnd};
use windlass_spec::RunId;

use crate::driver::{DriveError, Misfit, record, take_command};
use crate::durable::{Durable, DurableError};

/// Cancels a run that no process owns and returns how it ended. The commands in its inbox, such as earlier
/// decisions, are taken into its journal first. A run that had reached its end, but whose process died before
/// that was stored, keeps that end.
///
/// # Errors
/// [`DurableError::OwnedElsewhere`] if a living process owns the run: it reads the command to cancel
/// itself. [`DurableError::RunEnded`] if it has ended, [`DurableError::RunNotFound`] if there is none.
pub async fn cancel_unowned(
    durable: &dyn Durable,
    run: &RunId,
    by: &Principal,
) -> Result<RunEnd, DriveError> {
    let taken = durable.take_over(run).await?;
    let taken = taken.ok_or_else(|| DurableError::RunNotFound(run.clone()))?;
    let mut journal = taken
        .journal
        .ok_or_else(|| DurableError::RunEnded(run.clone()))?;
    let mut run = taken.run;
    if run.end().is_none() {
        for command in journal.inbox().await? {
            let at = durable.now();
            let journal = &mut *journal;
            take_command(&mut run, journal, command, at, |_, _| Misfit::Take).await?;
        }
    }
    if run.end().is_none() {
        let event = Event::Cancelled {
            by: Some(by.clone()),
            at: durable.now(),
        };
        record(&mut run, &mut *journal, event, Durability::Synced).await?;
    }
    let end = run.end().cloned().unwrap_or(RunEnd::Cancelled);
    journal.end(&end).await?;
    Ok(end)
}
