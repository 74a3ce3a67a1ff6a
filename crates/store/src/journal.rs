//! The journal of one run, as its owner writes it: events in order, then the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{OptionalExtension, params};
use windlass_core::durable::Durability;
use windlass_core::redact::{RedactedEvent, Redactor};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::RunId;

use crate::answer_notice::AnswerNotices;
use crate::connection::Readers;
use crate::crash::CrashPoints;
use crate::error::Error;
use crate::evidence::{Database, chain, change_run};
use crate::execution::EndedExecution;
use crate::gap::NoticedGap;
use crate::inbox;
use crate::lease::RunLease;
use crate::usage::UsageRow;
use crate::writer::{Done, JournalHealth, Work, Writer};

/// The journal of a run that this process owns. Dropping it waits for pending writes and releases the
/// run.
pub struct RunJournal {
    lease: RunLease,
    writer: Arc<Writer>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) redactor: Arc<Redactor>,
    health: Arc<JournalHealth>,
    /// The number of the next event. Held while one is sent, so that events are sent in the order of
    /// their numbers.
    next: Mutex<i64>,
    /// Whether a worker is to resume the run.
    is_left: AtomicBool,
}

impl std::fmt::Debug for RunJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunJournal")
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

impl RunJournal {
    pub(crate) fn new(
        lease: RunLease,
        writer: Arc<Writer>,
        readers: Arc<Readers>,
        redactor: Arc<Redactor>,
        next: i64,
    ) -> Self {
        let health = Arc::new(JournalHealth::new(lease.run().clone()));
        Self {
            lease,
            writer,
            readers,
            redactor,
            health,
            next: Mutex::new(next),
            is_left: AtomicBool::new(false),
        }
    }

    /// The lease that allows this journal to append events.
    #[must_use]
    pub fn lease(&self) -> &RunLease {
        &self.lease
    }

    /// Appends an event and returns its number. The first event of a run is 1.
    ///
    /// # Errors
    /// If it could not be stored, or, without waiting, if an earlier one could not. A journal that
    /// failed once stores nothing more, because a journal must have no missing events.
    /// The run can be taken over again when the cause is fixed.
    pub fn append(&self, event: &Event, durability: Durability) -> Result<u64, Error> {
        self.append_redacted(&self.redacted(event.clone())?, durability)
    }

    /// Returns the event without secrets, as it is stored.
    ///
    /// # Errors
    /// If the event would not be valid without the secret.
    pub fn redacted(&self, event: Event) -> Result<RedactedEvent, Error> {
        Ok(self.redactor.event(event)?)
    }

    /// Appends an event from which secrets were removed, as [`RunJournal::append`] does.
    ///
    /// # Errors
    /// As [`RunJournal::append`].
    pub fn append_redacted(
        &self,
        event: &RedactedEvent,
        durability: Durability,
    ) -> Result<u64, Error> {
        let work = self.event_work(event, durability);
        let seq = match durability {
            Durability::Relaxed => {
                let sent = self.send(|seq| self.writer.send_and_forget(work(seq), &self.health));
                sent.map(|(seq, ())| seq)?
            }
            Durability::Synced => {
                let sent = self.send(|seq| self.writer.send(work(seq), Some(&self.health)));
                sent?.1.wait()?
            }
        };
        u64::try_from(seq).map_err(|error| Error::unreadable("the number of an event", error))
    }

    /// Appends an event without waiting, for callers that must not block. `done` is called with the
    /// result when the event is on the disk or has failed. It runs on the writer thread, so it must be quick.
    ///
    /// # Errors
    /// If the event could not be sent. Then `done` is not called.
    pub fn append_then(
        &self,
        event: &RedactedEvent,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let work = self.event_work(event, Durability::Synced);
        let done: Done = Box::new(|answer| done(answer.map(drop)));
        let sent = self.send(|seq| self.writer.send_then(work(seq), &self.health, done));
        sent.map(drop)
    }

    /// Whether the write queue is so full that sending an event may have to wait for room.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.writer.is_crowded()
    }

    /// Returns the work that stores an event under a number.
    fn event_work(
        &self,
        event: &RedactedEvent,
        durability: Durability,
    ) -> impl FnOnce(i64) -> Work + use<> {
        // A call that cannot be undone waits for its start to be stored.
        let is_intent =
            matches!(event.event(), Event::CallStarted { .. }) && durability == Durability::Synced;
        let payload = event.payload().to_owned();
        let at = event.event().at().as_microseconds();
        let (run, epoch) = (self.lease.run().clone(), self.lease.epoch());
        let points = CrashPoints::of_event(&payload);
        let ended = EndedExecution::of(event.event());
        let noticed = NoticedGap::of(event.event());
        let notices = AnswerNotices::of(event.event());
        let usage = UsageRow::of(event.event(), &run);
        move |seq| {
            Work::new(points, move |connection| {
                let row = EventRow {
                    run: &run,
                    epoch,
                    seq,
                    at,
                    payload: &payload,
                };
                insert(connection, &row)?;
                if let Some(ended) = &ended {
                    ended.insert(connection)?;
                }
                if let Some(noticed) = &noticed {
                    noticed.insert(connection, &run)?;
                }
                if let Some(notices) = &notices {
                    notices.insert(connection)?;
                }
                if let Some(usage) = &usage {
                    usage.insert(connection)?;
                }
                Ok(seq)
            })
            .with_intent(is_intent)
        }
    }

    /// Appends an event and runs `write` in the same transaction, and waits for the disk. If
    /// `write` refuses, nothing is stored and the journal is as before.
    pub(crate) fn append_atomic(
        &self,
        event: &RedactedEvent,
        mut write: impl FnMut(&Database, i64) -> Result<(), Error> + Send + 'static,
    ) -> Result<u64, Error> {
        // The number is used only when the event is stored, so no other event may be sent until then.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.health.check()?;
        let seq = *next;
        let Work {
            points,
            change: mut insertion,
            is_intent,
        } = self.event_work(event, Durability::Synced)(seq);
        let refusal = Arc::new(Mutex::new(None));
        let refusal_in_work = Arc::clone(&refusal);
        let work = Work::new(points, move |connection| {
            // The event comes first, so that an owner who lost the run gets that error. The savepoint
            // rolls the event back when only `write` is refused.
            connection.execute_batch("SAVEPOINT event")?;
            let seq = insertion(connection)?;
            let refused = match write(connection, seq) {
                Ok(()) => None,
                Err(error) if error.is_refusal() => {
                    connection.execute_batch("ROLLBACK TO event")?;
                    Some(error)
                }
                Err(error) => return Err(error),
            };
            connection.execute_batch("RELEASE event")?;
            *refusal_in_work
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = refused;
            Ok(seq)
        })
        .with_intent(is_intent);
        self.writer.send(work, Some(&self.health))?.wait()?;
        if let Some(refused) = refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            return Err(refused);
        }
        *next = seq + 1;
        u64::try_from(seq).map_err(|error| Error::unreadable("the number of an event", error))
    }

    /// Leaves the run, when this is dropped, as an owner does that dies: the next worker resumes it.
    pub fn leave_to_worker(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Waits until everything appended so far is on the disk.
    ///
    /// # Errors
    /// If an event could not be stored.
    pub fn sync(&self) -> Result<(), Error> {
        let nothing = Work::new(CrashPoints::none(), |_| Ok(0));
        let pending = self.writer.send(nothing, Some(&self.health))?;
        pending.wait().map(drop)
    }

    /// Records that the run ended and waits for the disk. Nothing can be appended afterwards, unless the
    /// run is suspended for a person and is taken over again. The end time is that of the last event.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn end(&self, end: &RunEnd) -> Result<(), Error> {
        let work = self.end_work(end)?;
        self.writer.send(work, Some(&self.health))?.wait().map(drop)
    }

    /// Records that the run ended, as [`RunJournal::end`] does, without waiting. `done` is called with
    /// the result on the writer thread.
    ///
    /// # Errors
    /// If it could not be sent. Then `done` is not called.
    pub fn end_then(
        &self,
        end: &RunEnd,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let work = self.end_work(end)?;
        let done: Done = Box::new(|answer| done(answer.map(drop)));
        self.writer.send_then(work, &self.health, done)
    }

    fn end_work(&self, end: &RunEnd) -> Result<Work, Error> {
        let text = self.redactor.json(end, &["end"])?;
        let state = if end.is_final() { "ended" } else { "waiting" };
        let wake_at = match end {
            RunEnd::WaitingForCaller { until } => Some(until.as_microseconds()),
            _ => None,
        };
        let (run, epoch) = (self.lease.run().clone(), self.lease.epoch());
        Ok(Work::new(CrashPoints::of("end"), move |connection| {
            let mut update = connection.prepare_cached(
                r#"UPDATE runs SET "end" = ?1, state = ?2, wake_at = ?5,
                       (ended_at, event_count) =
                           (SELECT max(started_at, max(at)), count(*) FROM events WHERE run = ?3)
                   WHERE run = ?3 AND epoch = ?4 AND state = 'open'"#,
            )?;
            change_run(connection, &run, || {
                match update.execute(params![text, state, run.as_str(), epoch, wake_at])? {
                    0 => Err(refusal_reason(connection, &run, epoch)?),
                    _ => Ok(()),
                }
            })?;
            if state == "ended" {
                // No owner is left to act on an answer.
                inbox::withdraw_all(connection, &run)?;
            }
            Ok(0)
        }))
    }

    /// Stores the run itself with its first event.
    pub(crate) fn begin(&self, durability: Durability, work: Work) -> Result<(), Error> {
        match durability {
            Durability::Relaxed => self.writer.send_and_forget(work, &self.health),
            Durability::Synced => {
                let pending = self.writer.send(work, Some(&self.health))?;
                pending.wait().map(drop)
            }
        }
    }

    /// Calls `send` with the next number, and advances the number if it succeeds.
    fn send<T>(&self, send: impl FnOnce(i64) -> Result<T, Error>) -> Result<(i64, T), Error> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.health.check()?;
        let seq = *next;
        let sent = send(seq)?;
        *next = seq + 1;
        Ok((seq, sent))
    }
}

impl Drop for RunJournal {
    /// Waits for pending writes before the lease is released: after another owner takes the run over,
    /// they would be refused.
    fn drop(&mut self) {
        if self.health.has_pending() {
            let _ = self.sync();
        }
        // Not a person stopped this process but a fault or an operator did, so a worker may resume the run.
        let is_left = self.is_left.load(Ordering::Relaxed);
        if is_left || self.health.check().is_err() || std::thread::panicking() {
            self.lease.abandon();
        }
    }
}

/// One event as it is stored.
pub(crate) struct EventRow<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) epoch: i64,
    pub(crate) seq: i64,
    pub(crate) at: i64,
    pub(crate) payload: &'a str,
}

/// Stores an event if its sender still owns the run.
pub(crate) fn insert(connection: &Database, row: &EventRow<'_>) -> Result<(), Error> {
    if connection.evidence.is_on() {
        return chain::append(connection, row);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (run, seq, kind, at, payload, tenant, principal)
         SELECT run, ?2, ?3, ?4, ?5, tenant, principal FROM runs
         WHERE run = ?1 AND epoch = ?6 AND state = 'open'",
    )?;
    let kind = kind(row.payload)?;
    let row_count = insert.execute(params![
        row.run.as_str(),
        row.seq,
        kind,
        row.at,
        row.payload,
        row.epoch
    ])?;
    if row_count == 0 {
        return Err(refusal_reason(connection, row.run, row.epoch)?);
    }
    Ok(())
}

/// The kind of an event, which is the first field of its JSON.
pub(crate) fn kind(payload: &str) -> Result<&str, Error> {
    payload
        .strip_prefix(r#"{"event":""#)
        .and_then(|rest| rest.split('"').next())
        .ok_or_else(|| {
            Error::unreadable("an event to be stored", "it does not begin with its kind")
        })
}

pub(crate) fn refusal_reason(
    connection: &Database,
    run: &RunId,
    epoch: i64,
) -> Result<Error, Error> {
    let mut select = connection.prepare_cached("SELECT epoch FROM runs WHERE run = ?1")?;
    let found: Option<i64> = select
        .query_row([run.as_str()], |row| row.get(0))
        .optional()?;
    Ok(match found {
        None => Error::NoSuchRun(run.clone()),
        Some(found) if found != epoch => Error::TakenOver(run.clone()),
        Some(_) => Error::Ended(run.clone()),
    })
}
