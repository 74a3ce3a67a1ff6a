//! Retention: removes the content of runs that ended long ago. The row of the run, the decisions about its
//! calls and the record of which calls ran stay. Questions to people, their answers, holds, inbox commands and
//! standing approvals stay too. Only the body of an inbox command about a plan is removed, with the plan.

use std::time::Duration;

use rusqlite::params;
use windlass_spec::{CallState, RunId, Timestamp};

use crate::connection;
use crate::crash::CrashPoints;
use crate::error::Error;
use crate::evidence::change_run;
use crate::read::{count, run_id, stored_state};
use crate::store::Store;
use crate::writer::Work;

/// The kinds of events that are removed. All others stay, including kinds that this version does not know,
/// because they may be decisions.
const REMOVED: &str = "'started', 'offered', 'recalled', 'model_answered', 'model_failed', 'call_ended', \
     'planned', 'replanned', 'task_ended', 'task_marked', 'time_passed'";

/// Replaces the body of an inbox command about a plan.
const PURGED_BODY: &str = "{}";

/// The result of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// The runs whose events were removed.
    pub removed: Vec<PurgedRun>,
    /// The runs that are old enough but were kept.
    pub kept: Vec<KeptRun>,
}

/// A run whose events were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedRun {
    /// The run.
    pub run: RunId,
    /// How many events were removed.
    pub events: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// A run that a purge kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRun {
    /// The run.
    pub run: RunId,
    /// Why it was kept.
    pub reason: KeepReason,
}

/// Why a purge kept a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// The outcome of one of its calls is unknown.
    UnknownCall,
    /// One of its calls has a question that was never settled.
    PendingApproval,
    /// One of its calls is held, and was neither started nor undone.
    OpenHold,
    /// It works for a call of another run, which has not ended and may need it.
    ParentNotOver(RunId),
    /// Its journal cannot be read, so its content is unknown.
    Unreadable(String),
}

impl Store {
    /// Removes the content of runs that ended more than `older_than` before `now`. Their rows stay,
    /// with a count of the removed events, and so do the decisions about their calls. A run is kept whole
    /// if it has not ended, waits for a person, has a call whose outcome is unknown, a pending question or
    /// an open hold, or works for a run that has not ended.
    ///
    /// # Errors
    /// If the database fails. Runs that were purged before the failure stay purged.
    pub fn purge(&self, older_than: Duration, now: Timestamp) -> Result<Purged, Error> {
        let purged = self.purge_with(older_than, now, |run| self.remove_events(run, now))?;
        if !purged.removed.is_empty() {
            self.shrink_file()?;
        }
        Ok(purged)
    }

    /// What [`Store::purge`] would remove and keep. Nothing is changed.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn preview_purge(&self, older_than: Duration, now: Timestamp) -> Result<Purged, Error> {
        self.purge_with(older_than, now, |run| self.count_events(run))
    }

    fn purge_with(
        &self,
        older_than: Duration,
        now: Timestamp,
        remove: impl Fn(RunId) -> Result<PurgedRun, Error>,
    ) -> Result<Purged, Error> {
        let age = i64::try_from(older_than.as_micros()).unwrap_or(i64::MAX);
        let ended_before = now.as_microseconds().saturating_sub(age);
        let candidates: Vec<String> = self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT run FROM runs WHERE state = 'ended' AND purged_at IS NULL AND ended_at < ?1
                 ORDER BY ended_at, run",
            )?;
            let rows = select.query_map([ended_before], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        let mut purged = Purged::default();
        for candidate in candidates {
            let run = run_id(candidate)?;
            match self.reason_to_keep(&run)? {
                Some(reason) => purged.kept.push(KeptRun { run, reason }),
                None => purged.removed.push(remove(run)?),
            }
        }
        Ok(purged)
    }

    /// The events that a purge would remove from a run.
    fn count_events(&self, run: RunId) -> Result<PurgedRun, Error> {
        let (events, bytes) = self.readers.read(|connection| {
            let query = format!(
                "SELECT count(*), coalesce(sum(octet_length(payload)), 0)
                 FROM events WHERE run = ?1 AND kind IN ({REMOVED})"
            );
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            Ok(connection.query_row(&query, [run.as_str()], row)?)
        })?;
        Ok(PurgedRun {
            run,
            events: count(events),
            bytes: count(bytes),
        })
    }

    fn reason_to_keep(&self, run: &RunId) -> Result<Option<KeepReason>, Error> {
        let folded = match self.fold(run) {
            Ok(folded) => folded,
            Err(
                error @ (Error::Unreadable { .. } | Error::Fold { .. } | Error::Altered { .. }),
            ) => {
                return Ok(Some(KeepReason::Unreadable(error.to_string())));
            }
            Err(error) => return Err(error),
        };
        // A call that started and never ended in an ended run has an unknown outcome too.
        let is_unknown = folded
            .calls()
            .any(|call| matches!(call.state(), CallState::Unknown | CallState::Running));
        if is_unknown {
            return Ok(Some(KeepReason::UnknownCall));
        }
        self.readers.read(|connection| {
            // Ending a run settles these. If one is still open, a person may wait for the outcome.
            let exists = |query| connection.prepare_cached(query)?.exists([run.as_str()]);
            if exists("SELECT 1 FROM approvals WHERE run = ?1 AND status = 'pending'")? {
                return Ok(Some(KeepReason::PendingApproval));
            }
            if exists("SELECT 1 FROM holds WHERE run = ?1 AND status IN ('held', 'released')")? {
                return Ok(Some(KeepReason::OpenHold));
            }
            let Some(parent) = folded.parent().map(|call| &call.run) else {
                return Ok(None);
            };
            let has_ended = stored_state(connection, parent)?.is_none_or(|state| state == "ended");
            Ok((!has_ended).then(|| KeepReason::ParentNotOver(parent.clone())))
        })
    }

    fn remove_events(&self, run: RunId, now: Timestamp) -> Result<PurgedRun, Error> {
        self.transact("purge", move |connection| {
            change_run(connection, &run, || {
                let removed = format!("FROM events WHERE run = ?1 AND kind IN ({REMOVED})");
                // What the chain of events needs stays.
                connection.execute(
                    &format!(
                    "INSERT INTO purged_events (run, seq, kind, at, tenant, principal, digest, mac)
                     SELECT run, seq, kind, at, tenant, principal, digest, mac {removed}
                         AND mac IS NOT NULL"
                ),
                    [run.as_str()],
                )?;
                let bytes: i64 = connection.query_row(
                    &format!("SELECT coalesce(sum(octet_length(payload)), 0) {removed}"),
                    [run.as_str()],
                    |row| row.get(0),
                )?;
                let events = connection.execute(&format!("DELETE {removed}"), [run.as_str()])?;
                connection.execute(
                    "UPDATE executions SET error = NULL WHERE run = ?1",
                    [run.as_str()],
                )?;
                connection.execute(
                    "UPDATE mailbox SET body = ?2 WHERE run = ?1 AND body IS NOT NULL",
                    (run.as_str(), PURGED_BODY),
                )?;
                connection.execute(
                    "UPDATE tool_gaps SET report = NULL WHERE run = ?1",
                    [run.as_str()],
                )?;
                let events = i64::try_from(events).unwrap_or(i64::MAX);
                connection.execute(
                "UPDATE runs SET task = NULL, purged_at = ?2, purged_events = ?3, purged_bytes = ?4,
                     event_count = event_count - ?3
                 WHERE run = ?1",
                params![run.as_str(), now.as_microseconds(), events, bytes],
            )?;
                Ok(PurgedRun {
                    run: run.clone(),
                    events: count(events),
                    bytes: count(bytes),
                })
            })
        })
    }

    /// Shrinks the file and empties the write-ahead log, which still holds the removed events. Neither
    /// can be part of a transaction.
    fn shrink_file(&self) -> Result<(), Error> {
        let connection = connection::connect_writer(&self.path)?;
        let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        // An empty log would look as if it had been deleted. A new position makes one.
        let position = Work::new(CrashPoints::none(), |database| {
            database.execute("UPDATE log_position SET number = number", [])?;
            Ok(0)
        });
        self.writer.wait_for(position).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the names of event kinds, because this version need not know them all.
    #[test]
    fn purging_removes_content_and_keeps_decisions() {
        let content = [
            "started",
            "offered",
            "recalled",
            "model_answered",
            "model_failed",
            "call_ended",
            "planned",
            "replanned",
            "task_ended",
            "task_marked",
            "time_passed",
        ];
        let decisions = [
            "decided",
            "asked",
            "settled",
            "held",
            "released",
            "undone",
            "cancelled",
            "call_started",
            "task_started",
            "not_thought_of_yet",
        ];
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("windlass.db")).unwrap();
        let connection = connection::connect_writer(store.path()).unwrap();
        connection
            .execute_batch(
                "INSERT INTO runs (run, tenant, principal, agent, started_at)
                 VALUES ('r1', 'acme', 'ada', 'helper', 0)",
            )
            .unwrap();
        for (kind, seq) in content.iter().chain(&decisions).zip(1..) {
            let payload = format!(r#"{{"event":"{kind}","message":"They said so."}}"#);
            connection
                .execute(
                    "INSERT INTO events (run, seq, kind, at, payload, tenant, principal)
                     VALUES ('r1', ?1, ?2, 0, ?3, 'acme', 'ada')",
                    (seq, kind, payload),
                )
                .unwrap();
        }
        let now = Timestamp::from_microseconds(0);
        let purged = store.remove_events(RunId::new("r1").unwrap(), now).unwrap();
        assert_eq!(purged.events, content.len() as u64);
        let mut select = connection
            .prepare("SELECT kind FROM events WHERE instr(payload, 'They said so.') ORDER BY seq")
            .unwrap();
        let left = select.query_map([], |row| row.get(0)).unwrap();
        let left: Vec<String> = left.map(Result::unwrap).collect();
        assert_eq!(left, decisions);
    }
}
