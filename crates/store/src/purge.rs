//! Retention: what was said and done in runs that ended long ago is removed. What stays tells that
//! the run took place, what was decided about its calls and which of them ran.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::params;
use windlass_spec::{CallState, RunId, Timestamp};

use crate::connection;
use crate::error::Error;
use crate::read::{count, run_id};
use crate::store::Store;

/// How long events are kept after their run ended.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a purge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// The runs whose events are gone.
    pub removed: Vec<PurgedRun>,
    /// The runs that are old enough but stay.
    pub kept: Vec<Kept>,
}

/// A run whose events are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedRun {
    /// Which.
    pub run: RunId,
    /// How many events were removed.
    pub events: u64,
    /// How large they were.
    pub bytes: u64,
}

/// A run that a purge left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Which.
    pub run: RunId,
    /// Why.
    pub because: KeptBecause,
}

/// Why a purge left a run alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptBecause {
    /// Nobody knows whether one of its calls had its effect.
    UnknownCall,
    /// Its journal cannot be read, so nobody knows what is in it.
    Unreadable(String),
}

impl Store {
    /// Removes what runs that ended more than `older_than` before `now` said and did. Their rows stay,
    /// with a count of what is gone, and so do the decisions about their calls. A run that has not
    /// ended, waits for a person, or has a call whose outcome is unknown stays whole.
    ///
    /// # Errors
    /// If the database fails. What was removed before is removed.
    pub fn purge(&self, older_than: Duration, now: Timestamp) -> Result<Purged, Error> {
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
                Some(because) => purged.kept.push(Kept { run, because }),
                None => purged.removed.push(self.remove_events(run, now)?),
            }
        }
        if !purged.removed.is_empty() {
            self.give_space_back()?;
        }
        Ok(purged)
    }

    fn reason_to_keep(&self, run: &RunId) -> Result<Option<KeptBecause>, Error> {
        let folded = match self.fold(run) {
            Ok(folded) => folded,
            Err(error @ (Error::Unreadable { .. } | Error::Fold { .. })) => {
                return Ok(Some(KeptBecause::Unreadable(error.to_string())));
            }
            Err(error) => return Err(error),
        };
        // A call that started and never ended in a run that is over is as unknown as one that says so.
        let is_unknown = folded
            .calls()
            .any(|call| matches!(call.state(), CallState::Unknown | CallState::Running));
        Ok(is_unknown.then_some(KeptBecause::UnknownCall))
    }

    fn remove_events(&self, run: RunId, now: Timestamp) -> Result<PurgedRun, Error> {
        // The thread that writes answers with one number, the size; the other comes by this way.
        let removed = Arc::new(Mutex::new(0_i64));
        let (id, removed_there) = (run.clone(), Arc::clone(&removed));
        let bytes = self.writer.wait_for(Box::new(move |connection| {
            let bytes: i64 = connection.query_row(
                "SELECT coalesce(sum(octet_length(payload)), 0) FROM events
                 WHERE run = ?1 AND kind NOT IN ('decided', 'call_started')",
                [id.as_str()],
                |row| row.get(0),
            )?;
            let events = connection.execute(
                "DELETE FROM events WHERE run = ?1 AND kind NOT IN ('decided', 'call_started')",
                [id.as_str()],
            )?;
            let events = i64::try_from(events).unwrap_or(i64::MAX);
            connection.execute(
                "UPDATE runs SET task = NULL, purged_at = ?2, purged_events = ?3, purged_bytes = ?4
                 WHERE run = ?1",
                params![id.as_str(), now.as_microseconds(), events, bytes],
            )?;
            *removed_there.lock().unwrap_or_else(PoisonError::into_inner) = events;
            Ok(bytes)
        }))?;
        let events = *removed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(PurgedRun {
            run,
            events: count(events),
            bytes: count(bytes),
        })
    }

    /// Shrinks the file and empties the write-ahead log, which still holds what was removed. Neither
    /// can be part of a transaction.
    fn give_space_back(&self) -> Result<(), Error> {
        let connection = connection::connect_writer(&self.path)?;
        let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}
