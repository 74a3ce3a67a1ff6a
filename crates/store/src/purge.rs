//! Retention: removes the payloads of runs that ended long ago, and later their whole record.
//!
//! Of a run whose payloads are removed, the row, the decisions about its calls and the record of which calls ran stay.
//! Questions to people, their answers, holds, inbox commands and standing approvals stay too. Only the body of an inbox
//! command about a plan is removed, with the plan. When the record is removed as well, nothing of the run is left but the
//! change by an administrator that names it.
//!
//! Payloads are removed in transactions of a bounded size, so that no other run waits long. The first of them marks the
//! run as purged and as being purged, the last one takes the second mark away: what a killed process leaves is
//! removed by the next purge, and the journal verifies in between.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{OptionalExtension, params};
use serde_json::json;
use windlass_spec::{CallState, RunId, Timestamp};

use crate::admin::{self, AdminChange};
use crate::connection;
use crate::crash::CrashPoints;
use crate::error::Error;
use crate::evidence::{Database, change_run, check_run};
use crate::legal_hold::{is_held, outermost};
use crate::read::{count, run_id, stored_state};
use crate::store::Store;
use crate::writer::Work;

/// The kinds of events that are removed. All others stay, including kinds that this version does not know,
/// because they may be decisions.
const REMOVED: &str = "'started', 'offered', 'recalled', 'model_answered', 'model_failed', 'call_ended', \
     'planned', 'replanned', 'task_ended', 'task_marked', 'time_passed'";

/// Replaces the body of an inbox command about a plan.
const PURGED_BODY: &str = "{}";

/// How many events one transaction removes.
const EVENTS_AT_ONCE: i64 = 200;

/// How many pages of the file are given back at once.
const PAGES_AT_ONCE: u32 = 256;

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
    /// Its tenant.
    pub tenant: String,
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
    /// It, or the run that it works for, is under a legal hold.
    LegalHold,
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

/// What one round of the retention removes.
#[derive(Debug, Clone)]
pub struct RetentionRound {
    /// Only runs of this tenant.
    pub tenant: Option<String>,
    /// The payloads of runs that ended before this; `None` removes none.
    pub payloads_before: Option<Timestamp>,
    /// The records of runs that ended before this and whose payloads were removed; `None` removes none.
    pub records_before: Option<Timestamp>,
    /// Where the last round ended.
    pub place: RetentionPlace,
    /// The most runs that are looked at.
    pub max_runs: u32,
    /// The time now.
    pub now: Timestamp,
}

/// How far the retention has come: the run that was looked at last, for payloads and for records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionPlace {
    payloads: Option<(i64, String)>,
    records: Option<(i64, String)>,
}

/// What one round of the retention did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retained {
    /// The runs whose payloads were removed, and those that were kept.
    pub purged: Purged,
    /// The runs whose record was removed.
    pub removed: Vec<RunId>,
    /// Where the next round begins; `None` if all runs were looked at.
    pub next: Option<RetentionPlace>,
}

/// Called before the payloads of a run are removed, to remove what is stored elsewhere: with the run, its tenant and the
/// id of its task.
pub type BeforePurge<'p> = &'p dyn Fn(&RunId, &str, Option<&str>) -> Result<(), Error>;

/// A run that is old enough.
struct Candidate {
    run: String,
    tenant: String,
    task_id: Option<String>,
    ended_at: i64,
}

/// What became of one transaction of a purge.
enum Step {
    /// Nothing is left.
    Done {
        events: i64,
        bytes: i64,
    },
    /// There is more.
    More {
        events: i64,
        bytes: i64,
    },
    Kept(KeepReason),
}

impl Store {
    /// Removes the content of runs that ended more than `older_than` before `now`. Their rows stay,
    /// with a count of the removed events, and so do the decisions about their calls. A run is kept whole
    /// if it has not ended, waits for a person, has a call whose outcome is unknown, a pending question or
    /// an open hold, works for a run that has not ended, or is under a legal hold.
    ///
    /// # Errors
    /// If the database fails. Runs that were purged before the failure stay purged.
    pub fn purge(&self, older_than: Duration, now: Timestamp) -> Result<Purged, Error> {
        self.purge_after(older_than, now, &|_, _, _| Ok(()))
    }

    /// Like [`Store::purge`], and calls `before` for each run before its payloads are removed.
    ///
    /// # Errors
    /// As [`Store::purge`], and what `before` returns.
    pub fn purge_after(
        &self,
        older_than: Duration,
        now: Timestamp,
        before: BeforePurge<'_>,
    ) -> Result<Purged, Error> {
        self.finish_purges(now)?;
        let purged = self.purge_with(older_than, now, |candidate| {
            self.remove_payloads(candidate, now, before)
        })?;
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
        self.purge_with(older_than, now, |candidate| {
            Ok(Ok(self.count_events(candidate)?))
        })
    }

    /// Removes what the retention does not keep any longer, of a bounded number of runs.
    ///
    /// # Errors
    /// If the database fails. What was removed before the failure stays removed.
    pub fn retain(
        &self,
        round: &RetentionRound,
        before: BeforePurge<'_>,
    ) -> Result<Retained, Error> {
        self.finish_purges(round.now)?;
        let mut retained = Retained::default();
        let mut place = RetentionPlace::default();
        if let Some(ended_before) = round.payloads_before {
            let after = &round.place.payloads;
            let found = self.candidates("purged_at IS NULL", ended_before, round, after)?;
            place.payloads = last_of(&found, round.max_runs);
            for candidate in found {
                let run = run_id(candidate.run.clone())?;
                let purged = match self.reason_to_keep(&run)? {
                    Some(reason) => Err(reason),
                    None => self.remove_payloads(&candidate, round.now, before)?,
                };
                match purged {
                    Ok(purged) => retained.purged.removed.push(purged),
                    Err(reason) => retained.purged.kept.push(KeptRun { run, reason }),
                }
            }
        }
        if let Some(ended_before) = round.records_before {
            let after = &round.place.records;
            let found = self.candidates("purged_at IS NOT NULL", ended_before, round, after)?;
            place.records = last_of(&found, round.max_runs);
            retained.removed = self.remove_records(found, round.now)?;
        }
        if place != RetentionPlace::default() {
            // What has been looked at to its end is not looked at again in this sweep.
            let end = || Some((i64::MAX, String::new()));
            retained.next = Some(RetentionPlace {
                payloads: place.payloads.or_else(end),
                records: place.records.or_else(end),
            });
        }
        Ok(retained)
    }

    /// Gives pages of removed rows back to the system and empties the log, which still holds them. Does as much as can
    /// be done without making others wait.
    ///
    /// # Errors
    /// If the database fails.
    pub fn shrink_some(&self) -> Result<(), Error> {
        let connection = connection::connect_writer(&self.path)?;
        let free = |connection: &rusqlite::Connection| -> Result<i64, Error> {
            Ok(connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?)
        };
        let mut left = free(&connection)?;
        while left > 0 {
            let statement = format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})");
            let mut vacuum = connection.prepare(&statement)?;
            let mut rows = vacuum.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            drop(vacuum);
            let now = free(&connection)?;
            if now >= left {
                break;
            }
            left = now;
            std::thread::sleep(Duration::from_millis(5));
        }
        // A reader that is under way keeps the log; the next sweep empties it.
        connection.busy_timeout(Duration::from_millis(50))?;
        let emptied: i64 =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        match emptied {
            0 => self.mark_log(),
            _ => Ok(()),
        }
    }

    fn purge_with(
        &self,
        older_than: Duration,
        now: Timestamp,
        remove: impl Fn(&Candidate) -> Result<Result<PurgedRun, KeepReason>, Error>,
    ) -> Result<Purged, Error> {
        let age = i64::try_from(older_than.as_micros()).unwrap_or(i64::MAX);
        let ended_before = now.as_microseconds().saturating_sub(age);
        let round = RetentionRound {
            tenant: None,
            payloads_before: None,
            records_before: None,
            place: RetentionPlace::default(),
            max_runs: u32::MAX,
            now,
        };
        let ended_before = Timestamp::from_microseconds(ended_before);
        let candidates = self.candidates("purged_at IS NULL", ended_before, &round, &None)?;
        let mut purged = Purged::default();
        for candidate in candidates {
            let run = run_id(candidate.run.clone())?;
            let removed = match self.reason_to_keep(&run)? {
                Some(reason) => Err(reason),
                None => remove(&candidate)?,
            };
            match removed {
                Ok(removed) => purged.removed.push(removed),
                Err(reason) => purged.kept.push(KeptRun { run, reason }),
            }
        }
        Ok(purged)
    }

    /// The ended runs that fit a condition and ended before a time, after a place in their order.
    fn candidates(
        &self,
        condition: &str,
        ended_before: Timestamp,
        round: &RetentionRound,
        after: &Option<(i64, String)>,
    ) -> Result<Vec<Candidate>, Error> {
        let (ended_at, run) = match after {
            Some((ended_at, run)) => (*ended_at, run.as_str()),
            None => (i64::MIN, ""),
        };
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT run, tenant, task_id, ended_at FROM runs
                 WHERE state = 'ended' AND {condition} AND ended_at < ?1
                     AND (ended_at, run) > (?2, ?3) AND (?4 IS NULL OR tenant = ?4)
                 ORDER BY ended_at, run LIMIT ?5"
            ))?;
            let before = ended_before.as_microseconds();
            let values = params![before, ended_at, run, round.tenant, round.max_runs];
            let rows = select.query_map(values, |row| {
                Ok(Candidate {
                    run: row.get(0)?,
                    tenant: row.get(1)?,
                    task_id: row.get(2)?,
                    ended_at: row.get(3)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The events that a purge would remove from a run.
    fn count_events(&self, candidate: &Candidate) -> Result<PurgedRun, Error> {
        let (events, bytes) = self.readers.read(|connection| {
            let query = format!(
                "SELECT count(*), coalesce(sum(octet_length(payload)), 0)
                 FROM events WHERE run = ?1 AND kind IN ({REMOVED})"
            );
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            Ok(connection.query_row(&query, [&candidate.run], row)?)
        })?;
        Ok(PurgedRun {
            run: run_id(candidate.run.clone())?,
            tenant: candidate.tenant.clone(),
            events: count(events),
            bytes: count(bytes),
        })
    }

    fn reason_to_keep(&self, run: &RunId) -> Result<Option<KeepReason>, Error> {
        let on_hold = self
            .readers
            .read(|database| is_held(database, run.as_str()));
        match on_hold {
            Ok(false) => {}
            Ok(true) => return Ok(Some(KeepReason::LegalHold)),
            Err(error @ Error::Altered { .. }) => {
                return Ok(Some(KeepReason::Unreadable(error.to_string())));
            }
            Err(error) => return Err(error),
        }
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

    /// Removes the payloads of a run, in as many transactions as it takes.
    fn remove_payloads(
        &self,
        candidate: &Candidate,
        now: Timestamp,
        before: BeforePurge<'_>,
    ) -> Result<Result<PurgedRun, KeepReason>, Error> {
        let run = run_id(candidate.run.clone())?;
        // Before the run is marked: a process that is killed in between comes back to it.
        before(&run, &candidate.tenant, candidate.task_id.as_deref())?;
        let (mut events, mut bytes) = (0, 0);
        loop {
            let id = run.clone();
            let step = self.transact("purge", move |database| purge_step(database, &id, now))?;
            let (more, is_done) = match step {
                Step::Kept(reason) => return Ok(Err(reason)),
                Step::Done { events, bytes } => ((events, bytes), true),
                Step::More { events, bytes } => ((events, bytes), false),
            };
            events += more.0;
            bytes += more.1;
            if is_done {
                return Ok(Ok(PurgedRun {
                    run,
                    tenant: candidate.tenant.clone(),
                    events: count(events),
                    bytes: count(bytes),
                }));
            }
        }
    }

    /// Completes the purges that were interrupted.
    fn finish_purges(&self, now: Timestamp) -> Result<(), Error> {
        let runs: Vec<String> = self.readers.read(|connection| {
            let mut select = connection.prepare_cached("SELECT run FROM purging ORDER BY run")?;
            let rows = select.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        for run in runs {
            let run = run_id(run)?;
            loop {
                let id = run.clone();
                let step =
                    self.transact("purge", move |database| purge_step(database, &id, now))?;
                if !matches!(step, Step::More { .. }) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes the whole record of runs, each in the transaction that records its removal.
    fn remove_records(
        &self,
        candidates: Vec<Candidate>,
        now: Timestamp,
    ) -> Result<Vec<RunId>, Error> {
        let mut by_tenant: BTreeMap<String, Vec<RunId>> = BTreeMap::new();
        for candidate in candidates {
            let run = run_id(candidate.run)?;
            by_tenant.entry(candidate.tenant).or_default().push(run);
        }
        let mut removed = Vec::new();
        for (tenant, runs) in by_tenant {
            for runs in runs.chunks(RUNS_AT_ONCE) {
                let (tenant, runs) = (tenant.clone(), runs.to_vec());
                removed.extend(self.transact("remove", move |database| {
                    remove_step(database, &tenant, &runs, now)
                })?);
            }
        }
        Ok(removed)
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
        self.mark_log()
    }

    /// An empty log would look as if it had been deleted. A new position makes one.
    fn mark_log(&self) -> Result<(), Error> {
        let position = Work::new(CrashPoints::none(), |database| {
            database.execute("UPDATE log_position SET number = number", [])?;
            Ok(0)
        });
        self.writer.wait_for(position).map(drop)
    }
}

/// How many records one transaction removes. Those of a run without payloads are few and small.
const RUNS_AT_ONCE: usize = 10;

/// The place of the last candidate, if there may be more.
fn last_of(found: &[Candidate], max_runs: u32) -> Option<(i64, String)> {
    let is_full = found.len() >= max_runs as usize;
    let last = found.last().filter(|_| is_full)?;
    Some((last.ended_at, last.run.clone()))
}

/// Removes some payloads of a run.
fn purge_step(database: &Database, run: &RunId, now: Timestamp) -> Result<Step, Error> {
    match is_held(database, run.as_str()) {
        Ok(false) => {}
        Ok(true) => return Ok(Step::Kept(KeepReason::LegalHold)),
        Err(error @ Error::Altered { .. }) => {
            return Ok(Step::Kept(KeepReason::Unreadable(error.to_string())));
        }
        Err(error) => return Err(error),
    }
    change_run(database, run, || {
        let mut select =
            database.prepare_cached("SELECT purged_at IS NULL FROM runs WHERE run = ?1")?;
        let is_first: Option<bool> = select
            .query_row([run.as_str()], |row| row.get(0))
            .optional()?;
        if is_first.ok_or_else(|| Error::NoSuchRun(run.clone()))? {
            begin_purge(database, run, now)?;
        }
        let removed = format!("FROM events WHERE run = ?1 AND kind IN ({REMOVED})");
        let last: Option<i64> = database.query_row(
            &format!("SELECT max(seq) FROM (SELECT seq {removed} ORDER BY seq LIMIT ?2)"),
            (run.as_str(), EVENTS_AT_ONCE),
            |row| row.get(0),
        )?;
        let (mut events, mut bytes) = (0, 0);
        if let Some(last) = last {
            let removed = format!("{removed} AND seq <= ?2");
            let place = (run.as_str(), last);
            // What the chain of events needs stays.
            database.execute(
                &format!(
                    "INSERT INTO purged_events (run, seq, kind, at, tenant, principal, digest, mac)
                     SELECT run, seq, kind, at, tenant, principal, digest, mac {removed}
                         AND mac IS NOT NULL"
                ),
                place,
            )?;
            bytes = database.query_row(
                &format!("SELECT coalesce(sum(octet_length(payload)), 0) {removed}"),
                place,
                |row| row.get(0),
            )?;
            let deleted = database.execute(&format!("DELETE {removed}"), place)?;
            events = i64::try_from(deleted).unwrap_or(i64::MAX);
            database.execute(
                "UPDATE runs SET purged_events = purged_events + ?2, purged_bytes = purged_bytes + ?3,
                     event_count = event_count - ?2
                 WHERE run = ?1",
                params![run.as_str(), events, bytes],
            )?;
        }
        if events == EVENTS_AT_ONCE {
            return Ok(Step::More { events, bytes });
        }
        database.execute("DELETE FROM purging WHERE run = ?1", [run.as_str()])?;
        Ok(Step::Done { events, bytes })
    })
}

/// Marks a run as purged, and removes what is not in its events.
fn begin_purge(database: &Database, run: &RunId, now: Timestamp) -> Result<(), Error> {
    for statement in [
        "INSERT OR IGNORE INTO purging (run) VALUES (?1)",
        "UPDATE executions SET error = NULL WHERE run = ?1",
        "UPDATE tool_gaps SET report = NULL WHERE run = ?1",
    ] {
        database.execute(statement, [run.as_str()])?;
    }
    database.execute(
        "UPDATE mailbox SET body = ?2 WHERE run = ?1 AND body IS NOT NULL",
        (run.as_str(), PURGED_BODY),
    )?;
    database.execute(
        "UPDATE runs SET task = NULL, purged_at = ?2, purged_events = 0, purged_bytes = 0
         WHERE run = ?1",
        params![run.as_str(), now.as_microseconds()],
    )?;
    Ok(())
}

/// The tables with rows of a run, those first that refer to others.
const TABLES_OF_RUNS: [&str; 15] = [
    "mailbox",
    "approvals",
    "holds",
    "executions",
    "tool_gaps",
    "refusals",
    "usage",
    "run_ends",
    "request_keys",
    "chat_turns",
    "webhook_deliveries",
    "events",
    "purged_events",
    "purging",
    "runs",
];

/// Removes the records of runs of a tenant. Those that have to stay are left out.
fn remove_step(
    database: &Database,
    tenant: &str,
    runs: &[RunId],
    now: Timestamp,
) -> Result<Vec<RunId>, Error> {
    let mut removed = Vec::new();
    for run in runs {
        if !may_be_removed(database, run)? {
            continue;
        }
        // What was changed outside Windlass is reported, not removed.
        match check_run(database, run) {
            Ok(Some(_)) => {}
            Ok(None) | Err(Error::Altered { .. }) => continue,
            Err(error) => return Err(error),
        }
        database.execute("INSERT INTO removing (run) VALUES (?1)", [run.as_str()])?;
        for table in TABLES_OF_RUNS {
            let mut delete =
                database.prepare_cached(&format!("DELETE FROM {table} WHERE run = ?1"))?;
            delete.execute([run.as_str()])?;
        }
        database.execute("DELETE FROM removing WHERE run = ?1", [run.as_str()])?;
        database.note_removed_run();
        removed.push(run.clone());
    }
    if !removed.is_empty() {
        let subject = json!({"runs": removed});
        let change = AdminChange {
            kind: "run_records_removed".to_owned(),
            by: None,
            at: now,
            subject: subject.clone(),
        };
        admin::append(database, tenant, &change, &subject.to_string())?;
    }
    Ok(removed)
}

/// Whether the record of a run may be removed now: it is purged to its end, no hold is on it, and it neither works for
/// a run that has not ended nor has the record of a run that worked for it.
fn may_be_removed(database: &Database, run: &RunId) -> Result<bool, Error> {
    match is_held(database, run.as_str()) {
        Ok(false) => {}
        Ok(true) | Err(Error::Altered { .. }) => return Ok(false),
        Err(error) => return Err(error),
    }
    let mut select = database.prepare_cached(
        "SELECT 1 FROM runs
         WHERE run = ?1 AND state = 'ended' AND purged_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM purging WHERE purging.run = ?1)
             AND NOT EXISTS (SELECT 1 FROM runs AS outer_run WHERE outer_run.run = ?2 AND state <> 'ended')
             AND NOT EXISTS (SELECT 1 FROM runs AS inner_run
                             WHERE inner_run.run > ?1 || '.' AND inner_run.run < ?1 || '/')
             AND NOT EXISTS (SELECT 1 FROM approvals WHERE approvals.run = ?1 AND status = 'pending')
             AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.run = ?1 AND status IN ('held', 'released'))",
    )?;
    Ok(select.exists((run.as_str(), outermost(run.as_str())))?)
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
                "INSERT INTO runs (run, tenant, principal, agent, started_at, ended_at, \"end\", state)
                 VALUES ('r1', 'acme', 'ada', 'helper', 0, 0, '{\"end\":\"completed\"}', 'ended')",
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
        let candidate = Candidate {
            run: "r1".to_owned(),
            tenant: "acme".to_owned(),
            task_id: None,
            ended_at: 0,
        };
        let purged = store.remove_payloads(&candidate, now, &|_, _, _| Ok(()));
        let purged = purged.unwrap().unwrap();
        assert_eq!(purged.events, content.len() as u64);
        let mut select = connection
            .prepare("SELECT kind FROM events WHERE instr(payload, 'They said so.') ORDER BY seq")
            .unwrap();
        let left = select.query_map([], |row| row.get(0)).unwrap();
        let left: Vec<String> = left.map(Result::unwrap).collect();
        assert_eq!(left, decisions);
    }
}
