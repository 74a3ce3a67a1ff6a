//! Finds the runs that have work to do and no owner. A worker runs this query several times a second.
//! It uses partial indexes that hold only open work, so its cost does not grow with the
//! number of ended runs, and no journal is folded.

use rusqlite::{Connection, OptionalExtension};
use windlass_core::durable::{ResumableRun, ResumeReason};
use windlass_spec::{CallId, RunId, Timestamp};

use crate::crash::CrashPoints;
use crate::error::Error;
use crate::lease::{create_lock_file, has_lock_file, is_owned};
use crate::read::{run_id, stored_state};
use crate::store::Store;
use crate::writer::Work;

/// Runs that have not ended, with the reason to resume them, the most specific reason first. Each part has its own
/// index. The order of the joins is fixed so that the table that is usually empty is read first.
pub(crate) const CANDIDATES: &str = "
    SELECT DISTINCT 1, waiting.run FROM mailbox AS waiting
        CROSS JOIN runs ON runs.run = waiting.run AND runs.state <> 'ended'
        WHERE waiting.taken_at IS NULL
    UNION ALL
    SELECT DISTINCT 2, held.run FROM holds AS held
        CROSS JOIN runs ON runs.run = held.run AND runs.state <> 'ended'
            AND (runs.wake_at IS NULL OR runs.wake_at <= ?1)
        WHERE held.status IN ('held', 'released') AND held.due_at <= ?1
    UNION ALL
    SELECT DISTINCT 3, asked.run FROM approvals AS asked
        CROSS JOIN runs ON runs.run = asked.run AND runs.state <> 'ended'
        WHERE asked.status = 'pending' AND asked.expires_at <= ?1
    UNION ALL
    SELECT 4, run FROM runs WHERE state = 'open'
    UNION ALL
    SELECT 5, run FROM runs WHERE state = 'waiting' AND wake_at IS NOT NULL AND wake_at <= ?1";

impl Store {
    /// The runs that can be resumed at `now`: not ended, owned by no living process, and with work to
    /// do. Work in the run of a sub-agent or of a task makes its outermost run resumable, which is the
    /// one to resume. Each run is listed once, with the most specific reason.
    ///
    /// Another process may take a run before the caller resumes it. Resuming then fails
    /// with [`Error::OwnedElsewhere`] or [`Error::Ended`].
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn resumable(&self, now: Timestamp) -> Result<Vec<ResumableRun>, Error> {
        let candidates = self.readers.read(|connection| {
            let mut select = connection.prepare_cached(CANDIDATES)?;
            let rows = select.query_map([now.as_microseconds()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })?;
            let mut found: Vec<(ResumeReason, RunId)> = Vec::new();
            for row in rows {
                let (reason, run) = row?;
                let run = outermost(connection, run_id(run)?)?;
                if found.iter().all(|(_, known)| *known != run) {
                    found.push((reason_of(reason), run));
                }
            }
            Ok(found)
        })?;
        let mut resumable = Vec::new();
        for (reason, run) in candidates {
            if is_owned(&self.locks, &run)? {
                continue;
            }
            // Its owner may have ended or suspended it after it was listed and before the lock was tried.
            let state = self
                .readers
                .read(|connection| stored_state(connection, &run))?;
            let is_resumable = match state.as_deref() {
                Some("open") => true,
                Some("waiting") => reason != ResumeReason::OwnerGone,
                _ => false,
            };
            if is_resumable {
                let tenant = self.readers.read(|connection| tenant(connection, &run))?;
                resumable.push(ResumableRun {
                    run,
                    tenant,
                    reason,
                });
            }
        }
        Ok(resumable)
    }

    /// Whether a living process owns a run.
    ///
    /// # Errors
    /// If its lock cannot be tried.
    pub fn is_owned(&self, run: &RunId) -> Result<bool, Error> {
        is_owned(&self.locks, run)
    }

    /// Whether the last owner released a run, such as when a person stopped it after a step. An owner
    /// that died, or a worker that stopped, does not release its runs.
    #[must_use]
    pub fn was_released(&self, run: &RunId) -> bool {
        !has_lock_file(&self.locks, run)
    }

    /// Stores why a worker did not resume a run that has had `epoch` owners, until it is taken over. If it has
    /// been taken over already, nothing is stored.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn refuse(&self, run: &RunId, epoch: i64, reason: &str) -> Result<(), Error> {
        let (run, reason) = (run.clone(), self.redactor.text(reason));
        self.writer
            .wait_for(Work::new(CrashPoints::of("refuse"), move |connection| {
                let mut insert = connection.prepare_cached(
                    "INSERT OR REPLACE INTO refusals (run, epoch, reason)
                     SELECT run, epoch, ?3 FROM runs WHERE run = ?1 AND epoch = ?2",
                )?;
                insert.execute((run.as_str(), epoch, &reason))?;
                Ok(0)
            }))?;
        Ok(())
    }

    /// Why a worker did not resume a run, if it has not been taken over since.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn refusal(&self, run: &RunId) -> Result<Option<String>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT reason FROM refusals JOIN runs USING (run)
                 WHERE run = ?1 AND refusals.epoch = runs.epoch",
            )?;
            let reason = select.query_row([run.as_str()], |row| row.get(0));
            Ok(reason.optional()?)
        })
    }

    /// Marks a run that no process owns as abandoned, as if its owner had died: the next worker resumes it.
    ///
    /// # Errors
    /// If its lock file cannot be created.
    pub fn mark_abandoned(&self, run: &RunId) -> Result<(), Error> {
        create_lock_file(&self.locks, run)
    }
}

fn reason_of(number: i64) -> ResumeReason {
    match number {
        1 => ResumeReason::Command,
        2 => ResumeReason::HoldDue,
        3 => ResumeReason::QuestionExpired,
        5 => ResumeReason::CallerLate,
        _ => ResumeReason::OwnerGone,
    }
}

/// The top-level run for which this run works, directly or through others. The first event names the call
/// for which a run works. The id alone does not show it, because any id may contain dots.
fn outermost(connection: &Connection, run: RunId) -> Result<RunId, Error> {
    let mut outermost = run;
    // The id of a sub-agent's run is its parent's id with a dot and a suffix, so most runs need no event lookup.
    while outermost.as_str().contains('.') {
        let mut select = connection.prepare_cached(
            "SELECT payload ->> '$.parent' FROM events WHERE run = ?1 AND seq = 1",
        )?;
        let parent: Option<Option<String>> = select
            .query_row([outermost.as_str()], |row| row.get(0))
            .optional()?;
        let Some(parent) = parent.flatten() else {
            break;
        };
        let place = || format!("the parent of the run `{outermost}`");
        let parent: CallId = parent
            .parse()
            .map_err(|error| Error::unreadable(place(), error))?;
        // The id of a parent is shorter than that of its child, so this loop ends even for a damaged journal.
        if parent.run.as_str().len() >= outermost.as_str().len() {
            break;
        }
        outermost = parent.run;
    }
    Ok(outermost)
}

fn tenant(connection: &Connection, run: &RunId) -> Result<String, Error> {
    let mut select = connection.prepare_cached("SELECT tenant FROM runs WHERE run = ?1")?;
    Ok(select.query_row([run.as_str()], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// A full table scan would get slower with every run that was ever stored.
    #[test]
    fn resumable_runs_are_found_by_partial_indexes() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("windlass.db")).unwrap();
        let connection = Connection::open(store.path()).unwrap();
        let mut explain = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {CANDIDATES}"))
            .unwrap();
        let plan: Vec<String> = explain
            .query_map([0], |row| row.get("detail"))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for index in [
            "mailbox_waiting",
            "holds_open",
            "approvals_to_expire",
            "runs_open",
            "runs_to_wake",
        ] {
            assert!(
                plan.iter().any(|step| step.contains(index)),
                "{index}: {plan:?}"
            );
        }
        let scans = plan.iter().filter(|step| step.starts_with("SCAN"));
        for scan in scans {
            assert!(scan.contains("INDEX"), "{plan:?}");
        }
    }
}
