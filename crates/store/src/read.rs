//! Reading events and listing runs. Readers see committed data. They neither wait for the writer nor
//! block it.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use windlass_core::run::{Event, FoldedRun, KeptTurns, Run, RunEnd};
use windlass_keys::{hex, sha256};
use windlass_spec::{RunId, Timestamp, UnknownWord};

use crate::conditions::Conditions;
use crate::error::Error;
use crate::evidence::blob;
use crate::evidence::chain::{Chain, EVENTS};
use crate::store::Store;

windlass_spec::word_set! {
    /// The stored state of a run.
    RunState, "run state" {
        /// It is running, or was running when its owner died.
        Open = "open",
        /// It waits for a person.
        Waiting = "waiting",
        /// It has ended.
        Ended = "ended",
    }
}

/// The run state for a stored word.
pub(crate) fn run_state(word: &str) -> Result<RunState, Error> {
    word.parse()
        .map_err(|error: UnknownWord| Error::unreadable("the state of a run", error.to_string()))
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Only those of the agent with this name.
    pub agent: Option<String>,
    /// Only those in this state.
    pub state: Option<RunState>,
    /// Only those of the task with this id.
    pub task_id: Option<String>,
    /// Only those of this principal.
    pub principal: Option<String>,
    /// Only those that began at this time or later.
    pub since: Option<Timestamp>,
    /// Only those after this run in the list, the latest first.
    pub after: Option<RunId>,
}

impl RunFilter {
    /// Matches the runs that wait for a person.
    #[must_use]
    pub fn waiting() -> Self {
        Self {
            state: Some(RunState::Waiting),
            ..Self::default()
        }
    }

    fn conditions(&self) -> Conditions {
        Conditions::default()
            .word("state", self.state.map(RunState::as_str))
            .equal("agent", self.agent.as_deref())
            .equal("task_id", self.task_id.as_deref())
            .equal("tenant", self.tenant.as_deref())
            .equal("principal", self.principal.as_deref())
            .at_least("started_at", self.since.map(Timestamp::as_microseconds))
            .after(
                "runs",
                ("started_at", "run"),
                self.after.as_ref().map(RunId::as_str),
            )
    }

    pub(crate) fn query(&self) -> String {
        let order = "started_at DESC, run DESC";
        self.conditions().query(SUMMARY, order, self.limit)
    }
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub run: RunId,
    /// The organisation it belongs to.
    pub tenant: String,
    /// The principal on whose behalf it acts.
    pub principal: String,
    /// The agent's name.
    pub agent: String,
    /// The task's id, if it had one.
    pub task_id: Option<String>,
    /// The beginning of the task, until it is purged.
    pub task: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub end: Option<RunEnd>,
    /// Its state.
    pub state: RunState,
    /// How many owners it has had.
    pub epoch: i64,
    /// How many events are stored.
    pub events: u64,
    /// What is known about purged events.
    pub purged: Option<Tombstone>,
}

/// An event as it is stored, for those who give evidence of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Its number.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub digest: String,
    /// Its content as JSON, unless it was purged.
    pub payload: Option<String>,
}

/// What is known about purged events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tombstone {
    /// When they were removed.
    pub at: Timestamp,
    /// How many.
    pub events: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The columns in the order in which [`summary`] reads them. The events of a run that has not ended are
/// counted when it is listed.
const SUMMARY: &str = r#"SELECT run, tenant, principal, agent, task_id, task, started_at, ended_at,
    "end", state, epoch, purged_at, purged_events, purged_bytes,
    coalesce(event_count, (SELECT count(*) FROM events WHERE events.run = runs.run)) FROM runs "#;

impl Store {
    /// Checks the whole database for damage and returns the problems found.
    ///
    /// # Errors
    /// If it cannot be read at all.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        self.readers.read(|connection| {
            let mut check = connection.prepare("PRAGMA quick_check(10)")?;
            let rows = check.query_map([], |row| row.get(0))?;
            let mut found: Vec<String> = rows.collect::<Result<_, _>>()?;
            found.retain(|line| line != "ok");
            Ok(found)
        })
    }

    /// The events of a run with their numbers, in order. A purged run has only the events that are left.
    ///
    /// # Errors
    /// If there is no such run or an event cannot be read.
    pub fn events(&self, run: &RunId) -> Result<Vec<(u64, Event)>, Error> {
        self.events_from(run, 1)
    }

    /// The events of a run from a number on, inclusive, in order. Subscribers use it to read the events
    /// they have not seen. Empty if there are none yet.
    ///
    /// # Errors
    /// If there is no such run or an event cannot be read.
    pub fn events_from(&self, run: &RunId, position: u64) -> Result<Vec<(u64, Event)>, Error> {
        let mut events = Vec::new();
        self.each_event(run, position, |seq, event| {
            events.push((seq, event));
            Ok(())
        })?;
        Ok(events)
    }

    fn each_event(
        &self,
        run: &RunId,
        position: u64,
        mut take: impl FnMut(u64, Event) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.each_payload(run, position, |seq, payload| {
            let event = serde_json::from_str(payload).map_err(|error| {
                Error::unreadable(format!("event {seq} of the run `{run}`"), error)
            })?;
            take(seq, event)
        })
    }

    /// The events of a run as they are stored, in order, with those of which a purge left only the digest.
    ///
    /// # Errors
    /// If there is no such run, or an event was changed or cannot be read.
    pub fn event_records(&self, run: &RunId) -> Result<Vec<EventRecord>, Error> {
        let mut records = Vec::new();
        self.each_row(run, 1, |row| {
            let payload: Option<String> = row.get(7)?;
            let digest = match (blob(row, 5)?, &payload) {
                (Some(digest), _) => hex::encode(digest),
                (None, Some(payload)) => hex::encode(&sha256(payload.as_bytes())),
                (None, None) => String::new(),
            };
            records.push(EventRecord {
                seq: count(row.get(0)?),
                kind: row.get(1)?,
                at: Timestamp::from_microseconds(row.get(2)?),
                digest,
                payload,
            });
            Ok(())
        })?;
        Ok(records)
    }

    /// The number of the last event of a run; 0 if it has none or there is no such run. It costs one
    /// index lookup, whatever the length of the journal.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last_position(&self, run: &RunId) -> Result<u64, Error> {
        self.readers
            .read(|connection| Ok(count(last_sequence_number(connection, run)?)))
    }

    /// The first event of a run, which holds what it was started with; `None` if it was purged.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn first_event(&self, run: &RunId) -> Result<Option<Event>, Error> {
        let payload: Option<String> = self.readers.read(|connection| {
            let transaction = connection.unchecked_transaction()?;
            let Some(mut chain) = Chain::from(connection, run, 1)? else {
                return Ok(None);
            };
            let mut select = connection.prepare_cached(&format!("{EVENTS} LIMIT 1"))?;
            let mut rows = select.query((run.as_str(), 1))?;
            let payload = match rows.next()? {
                Some(row) => match chain.take(row)? {
                    Some(found) => return Err(chain.error(&found)),
                    None if row.get::<_, i64>(0)? == 1 => row.get(7)?,
                    None => None,
                },
                None => None,
            };
            drop(rows);
            drop(select);
            drop(transaction);
            Ok(payload)
        })?;
        let read = |payload: String| {
            serde_json::from_str(&payload)
                .map_err(|error| Error::unreadable(format!("event 1 of the run `{run}`"), error))
        };
        payload.map(read).transpose()
    }

    /// The run that its events fold into.
    ///
    /// # Errors
    /// If there is no such run, its events were purged, or they are inconsistent.
    pub fn fold(&self, run: &RunId) -> Result<Run, Error> {
        self.fold_keeping(run, KeptTurns::All)
    }

    /// The run that its events fold into, with these turns of it. The events are not in memory at once.
    ///
    /// # Errors
    /// As [`Store::fold`].
    pub fn fold_keeping(&self, run: &RunId, kept: KeptTurns) -> Result<Run, Error> {
        if self.summary(run)?.purged.is_some() {
            return Err(Error::Purged(run.clone()));
        }
        let unfit = |source| Error::Fold {
            run: run.clone(),
            source,
        };
        let mut folded = FoldedRun::new(kept);
        self.each_event(run, 1, |_, event| folded.apply(&event).map_err(unfit))?;
        folded.finish().map_err(unfit)
    }

    /// Writes the events of a run as JSON Lines: one object per line with `seq`, `run` and `event`, in
    /// order. Returns how many.
    ///
    /// # Errors
    /// If there is no such run or it cannot be written.
    pub fn export(&self, run: &RunId, mut writer: impl Write) -> Result<u64, Error> {
        let failed = |error| Error::Export(Arc::new(error));
        let mut count = 0;
        self.each_payload(run, 1, |seq, payload| {
            count += 1;
            // The stored text is JSON on one line, and an id needs no escaping.
            writeln!(writer, r#"{{"seq":{seq},"run":"{run}","event":{payload}}}"#).map_err(failed)
        })?;
        writer.flush().map_err(failed)?;
        Ok(count)
    }

    /// The runs, the latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, Error> {
        let mut runs = Vec::new();
        self.each_run(filter, |run| {
            runs.push(run);
            ControlFlow::Continue(())
        })?;
        Ok(runs)
    }

    /// Passes the runs, the latest first, to `take` one by one until it breaks, for very long lists.
    /// They come from one snapshot. The database cannot checkpoint newer writes while the snapshot is
    /// open, so `take` should be quick.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn each_run(
        &self,
        filter: &RunFilter,
        mut take: impl FnMut(RunSummary) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let conditions = filter.conditions();
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&filter.query())?;
            let mut rows = select.query(conditions.values())?;
            while let Some(row) = rows.next()? {
                if take(summary(row)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The number of matching runs, without the limit.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn count_runs(&self, filter: &RunFilter) -> Result<u64, Error> {
        let conditions = filter.conditions();
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&conditions.count("runs"))?;
            Ok(count(
                select.query_row(conditions.values(), |row| row.get(0))?,
            ))
        })
    }

    /// The summary of one run.
    ///
    /// # Errors
    /// If there is no such run.
    pub fn summary(&self, run: &RunId) -> Result<RunSummary, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&format!("{SUMMARY} WHERE run = ?1"))?;
            let mut rows = select.query([run.as_str()])?;
            match rows.next()? {
                Some(row) => summary(row),
                None => Err(Error::NoSuchRun(run.clone())),
            }
        })
    }

    /// The run of a tenant with the id `part`; else the latest run of the task with that id; else the one run
    /// whose id begins with `part`; else the one run whose id ends with it, if it has at least
    /// [`MIN_SUFFIX`](Self::MIN_SUFFIX) characters. The runs of other tenants are not searched, so an error
    /// names none of them.
    ///
    /// # Errors
    /// If there is none, or there are several.
    pub fn find(&self, tenant: &str, part: &str) -> Result<RunId, Error> {
        // `~` sorts after every character of an id. An exact match sorts first.
        let beginning = "run >= ?1 AND run < ?1 || '~' AND tenant = ?2 ORDER BY run";
        let begins = self.runs_where(beginning, part, tenant)?;
        if let Some(exact) = begins.first().filter(|run| run.as_str() == part) {
            return Ok(exact.clone());
        }
        let task = "task_id = ?1 AND tenant = ?2 ORDER BY started_at DESC, run DESC";
        if let Some(latest) = self.runs_where(task, part, tenant)?.into_iter().next() {
            return Ok(latest);
        }
        let mut runs = begins;
        if runs.is_empty() && part.len() >= Self::MIN_SUFFIX {
            let end = "substr(run, -length(?1)) = ?1 AND tenant = ?2 ORDER BY run DESC";
            runs = self.runs_where(end, part, tenant)?;
        }
        match runs.len() {
            0 => Err(Error::NoMatch(part.to_owned())),
            1 => Ok(runs.swap_remove(0)),
            _ => Err(Error::SeveralMatch {
                part: part.to_owned(),
                runs,
            }),
        }
    }

    /// The shortest end of an id by which a run is found.
    pub const MIN_SUFFIX: usize = 4;

    /// The outermost run of a tenant that started last, if there is any.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn latest_run(&self, tenant: &str) -> Result<Option<RunId>, Error> {
        // Child runs have a dot in their ids.
        let latest = "instr(run, ?1) = 0 AND tenant = ?2 ORDER BY started_at DESC, run DESC";
        Ok(self.runs_where(latest, ".", tenant)?.into_iter().next())
    }

    /// The first runs that fit a condition on a text and a tenant.
    fn runs_where(&self, condition: &str, text: &str, tenant: &str) -> Result<Vec<RunId>, Error> {
        const SHOWN: i64 = 5;
        let texts: Vec<String> = self.readers.read(|connection| {
            let query = format!("SELECT run FROM runs WHERE {condition} LIMIT ?3");
            let mut select = connection.prepare_cached(&query)?;
            let rows = select.query_map((text, tenant, SHOWN), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        texts.into_iter().map(run_id).collect()
    }

    fn each_payload(
        &self,
        run: &RunId,
        position: u64,
        mut take: impl FnMut(u64, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.each_row(run, position, |row| {
            // A purged event has no payload.
            if row.get_ref(7)? == ValueRef::Null {
                return Ok(());
            }
            let payload = row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?;
            take(count(row.get(0)?), payload)
        })
    }

    /// Passes the rows of [`EVENTS`] from a number on to `take`, each after it was checked.
    fn each_row(
        &self,
        run: &RunId,
        position: u64,
        mut take: impl FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.readers.read(|connection| {
            // The row of the run and its events must be of one moment.
            let transaction = connection.unchecked_transaction()?;
            let position = i64::try_from(position).unwrap_or(i64::MAX);
            let chain = Chain::from(connection, run, position)?;
            let mut chain = chain.ok_or_else(|| Error::NoSuchRun(run.clone()))?;
            let mut select = connection.prepare_cached(EVENTS)?;
            let mut rows = select.query((run.as_str(), position))?;
            while let Some(row) = rows.next()? {
                if let Some(found) = chain.take(row)? {
                    return Err(chain.error(&found));
                }
                take(row)?;
            }
            if let Some(found) = chain.end() {
                return Err(chain.error(&found));
            }
            drop(rows);
            drop(select);
            drop(transaction);
            Ok(())
        })
    }
}

/// The stored word for the state of a run, if there is one.
pub(crate) fn stored_state(connection: &Connection, run: &RunId) -> Result<Option<String>, Error> {
    let mut select = connection.prepare_cached("SELECT state FROM runs WHERE run = ?1")?;
    Ok(select
        .query_row([run.as_str()], |row| row.get(0))
        .optional()?)
}

/// Checks that no event of a run is missing: their numbers have no gap, and a run that waits has as many as
/// it had when it was suspended.
///
/// # Errors
/// If one is missing.
pub(crate) fn check_complete(connection: &Connection, run: &RunId) -> Result<(), Error> {
    let mut select = connection.prepare_cached(
        "SELECT count(*), ifnull(max(seq), 0),
                (SELECT event_count FROM runs WHERE run = ?1 AND state = 'waiting')
         FROM events WHERE run = ?1",
    )?;
    let (found, last, expected): (i64, i64, Option<i64>) = select
        .query_row([run.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let expected = expected.unwrap_or(last).max(last);
    match found == expected {
        true => Ok(()),
        false => Err(Error::unreadable(
            format!("the journal of the run `{run}`"),
            format!("it has {found} of {expected} events"),
        )),
    }
}

pub(crate) fn last_sequence_number(connection: &Connection, run: &RunId) -> Result<i64, Error> {
    let mut select =
        connection.prepare_cached("SELECT coalesce(max(seq), 0) FROM events WHERE run = ?1")?;
    Ok(select.query_row([run.as_str()], |row| row.get(0))?)
}

pub(crate) fn run_id(text: String) -> Result<RunId, Error> {
    RunId::new(text.clone())
        .map_err(|error| Error::unreadable(format!("the run id `{text}`"), error))
}

pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Whether a run that waits does so for a person.
fn is_for_person(row: &Row<'_>) -> Result<bool, Error> {
    let end = row.get_ref(8)?.as_str_or_null();
    let end = end.map_err(rusqlite::Error::from)?;
    Ok(end.is_none_or(|end| end.contains("waiting_for_person")))
}

fn summary(row: &Row<'_>) -> Result<RunSummary, Error> {
    // By number: looking up column names for each row would take longer than reading it.
    let run = run_id(row.get(0)?)?;
    let place = || format!("the row of the run `{run}`");
    let state = row.get_ref(9)?.as_str().map_err(rusqlite::Error::from)?;
    let state = run_state(state).map_err(|error| Error::unreadable(place(), error))?;
    let end = match state {
        RunState::Open => None,
        // The usual one is not parsed, which makes long lists faster.
        RunState::Waiting if is_for_person(row)? => Some(RunEnd::WaitingForPerson),
        RunState::Waiting | RunState::Ended => {
            let end = row.get_ref(8)?.as_str().map_err(rusqlite::Error::from)?;
            let end = serde_json::from_str(end);
            Some(end.map_err(|error| Error::unreadable(place(), error))?)
        }
    };
    let time = |column: usize| -> Result<Option<Timestamp>, Error> {
        let time: Option<i64> = row.get(column)?;
        Ok(time.map(Timestamp::from_microseconds))
    };
    let purged = match time(11)? {
        None => None,
        Some(at) => Some(Tombstone {
            at,
            events: count(row.get(12)?),
            bytes: count(row.get(13)?),
        }),
    };
    Ok(RunSummary {
        tenant: row.get(1)?,
        principal: row.get(2)?,
        agent: row.get(3)?,
        task_id: row.get(4)?,
        task: row.get(5)?,
        started_at: Timestamp::from_microseconds(row.get(6)?),
        ended_at: time(7)?,
        end,
        state,
        epoch: row.get(10)?,
        events: count(row.get(14)?),
        purged,
        run,
    })
}
