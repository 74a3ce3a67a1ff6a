//! Held calls. Any principal of the tenant can undo or release one from any process while it is held. The
//! owner of the run starts a held call only if its row allows it, so a confirmed undo is final.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_core::approval::{Hold, HoldError, HoldStatus, Identity};
use windlass_core::redact::Redactor;
use windlass_spec::{CallId, RunId, Timestamp};

use crate::conditions::Conditions;
use crate::error::Error;
use crate::inbox::{self, NewCommand};
use crate::store::Store;

/// Fields of a hold that are not searched for secrets because Windlass generates them.
const STRUCTURE: [&str; 7] = [
    "call",
    "tenant",
    "principal",
    "digest",
    "held_at",
    "due_at",
    "status",
];

/// Which held calls to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those with this status.
    pub status: Option<HoldStatus>,
    /// At most this many.
    pub limit: Option<u32>,
}

const SELECT: &str = "SELECT run, call, status, body FROM holds ";

impl Store {
    /// Held calls, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn holds(&self, filter: &HoldFilter) -> Result<Vec<Hold>, Error> {
        let conditions = Conditions::default()
            .word("status", filter.status.map(HoldStatus::as_str))
            .equal("tenant", filter.tenant.as_deref())
            .equal("run", filter.run.as_ref().map(RunId::as_str));
        let query = conditions.query(SELECT, "held_at, run, call", filter.limit);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            holds_from_rows(select.query(conditions.values())?)
        })
    }

    /// The hold of a call.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn hold(&self, call: &CallId) -> Result<Hold, Error> {
        self.readers.read(|connection| find(connection, call))
    }

    /// Undoes a held call, so that it never runs, and notifies the run's owner.
    ///
    /// # Errors
    /// If it is not held ([`Error::NoSuchHold`], also for other tenants) or no longer
    /// ([`Error::TooLate`], with its status).
    pub fn undo(&self, call: &CallId, by: &Identity, now: Timestamp) -> Result<Hold, Error> {
        self.change_hold("undo", call, by, now, Hold::undo)
    }

    /// Releases a held call before its time and notifies the run's owner.
    ///
    /// # Errors
    /// If it is not held ([`Error::NoSuchHold`], also for other tenants) or no longer
    /// ([`Error::TooLate`], with its status).
    pub fn release(&self, call: &CallId, by: &Identity, now: Timestamp) -> Result<Hold, Error> {
        self.change_hold("release", call, by, now, Hold::release)
    }

    fn change_hold(
        &self,
        kind: &'static str,
        call: &CallId,
        by: &Identity,
        now: Timestamp,
        change: fn(&mut Hold, &Identity, Timestamp) -> Result<(), HoldError>,
    ) -> Result<Hold, Error> {
        let (call, by) = (call.clone(), by.clone());
        self.transact(kind, move |connection| {
            let mut hold = find(connection, &call)?;
            change(&mut hold, &by, now).map_err(|error| hold_error(&call, error))?;
            update(connection, &hold)?;
            let command = NewCommand {
                run: &call.run,
                kind,
                call: Some(&call),
                number: None,
                body: None,
                by: Some(&by.principal),
                at: now,
            };
            inbox::post(connection, &command)?;
            Ok(hold)
        })
    }
}

/// Stores a hold from which secrets were removed.
pub(crate) fn insert(connection: &Connection, hold: &Hold) -> Result<(), Error> {
    let call = hold.call();
    if hold.status() != HoldStatus::Held || find(connection, call).is_ok() {
        return Err(Error::AlreadyHeld(call.clone()));
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO holds (run, call, tenant, principal, tool, status, held_at, due_at, body)
         SELECT run, ?2, tenant, principal, ?5, ?6, ?7, ?8, ?9
         FROM runs WHERE run = ?1 AND tenant = ?3 AND principal = ?4",
    )?;
    let inserted = insert.execute(params![
        call.run.as_str(),
        call.to_string(),
        hold.principal().tenant.as_str(),
        hold.principal().principal.as_str(),
        hold.tool_name().as_str(),
        hold.status().as_str(),
        hold.held_at().as_microseconds(),
        hold.due_at().as_microseconds(),
        to_json(hold)?
    ])?;
    match inserted {
        0 => Err(Error::NotOfThisRun {
            run: call.run.clone(),
            call: call.clone(),
        }),
        _ => Ok(()),
    }
}

/// Returns the hold without secrets.
pub(crate) fn redacted(redactor: &Redactor, hold: &Hold) -> Result<Hold, Error> {
    let body = redactor.json(hold, &STRUCTURE)?;
    serde_json::from_str(&body).map_err(|error| Error::unreadable("the hold", error))
}

fn to_json(hold: &Hold) -> Result<String, Error> {
    serde_json::to_string(hold).map_err(|error| Error::unreadable("the hold", error))
}

/// Records that a held call is about to run.
pub(crate) fn start(connection: &Connection, call: &CallId, at: Timestamp) -> Result<(), Error> {
    let mut hold = find(connection, call)?;
    hold.start(at).map_err(|error| hold_error(call, error))?;
    update(connection, &hold)
}

/// Cancels the held calls of a run, or one of them.
pub(crate) fn withdraw(
    connection: &Connection,
    run: &RunId,
    call: Option<&CallId>,
    at: Timestamp,
) -> Result<(), Error> {
    let mut select = connection.prepare_cached(&format!(
        "{SELECT} WHERE run = ?1 AND status IN ('held', 'released') AND (?2 IS NULL OR call = ?2)"
    ))?;
    let call = call.map(ToString::to_string);
    for mut hold in holds_from_rows(select.query((run.as_str(), call))?)? {
        if hold.cancel(at) {
            update(connection, &hold)?;
        }
    }
    Ok(())
}

fn hold_error(call: &CallId, error: HoldError) -> Error {
    let call = call.clone();
    match error {
        HoldError::TooLate(status) => Error::TooLate { call, status },
        HoldError::NotDue(until) => Error::NotDue { call, until },
        // A hold of another tenant is reported as missing.
        HoldError::NotEntitled(_) => Error::NoSuchHold(call),
    }
}

fn update(connection: &Connection, hold: &Hold) -> Result<(), Error> {
    let body = to_json(hold)?;
    let call = hold.call();
    let mut update = connection.prepare_cached(
        "UPDATE holds SET status = ?3, body = ?4
         WHERE run = ?1 AND call = ?2 AND status IN ('held', 'released')",
    )?;
    let status = hold.status().as_str();
    let changed = update.execute((call.run.as_str(), call.to_string(), status, body))?;
    match changed {
        0 => Err(Error::NoSuchHold(call.clone())),
        _ => Ok(()),
    }
}

fn find(connection: &Connection, call: &CallId) -> Result<Hold, Error> {
    let mut select =
        connection.prepare_cached(&format!("{SELECT} WHERE run = ?1 AND call = ?2"))?;
    let found = select
        .query_row((call.run.as_str(), call.to_string()), |row| {
            Ok(hold_from_row(row))
        })
        .optional()?;
    found.ok_or_else(|| Error::NoSuchHold(call.clone()))?
}

fn holds_from_rows(mut rows: rusqlite::Rows<'_>) -> Result<Vec<Hold>, Error> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(hold_from_row(row)?);
    }
    Ok(found)
}

fn hold_from_row(row: &Row<'_>) -> Result<Hold, Error> {
    let (run, call): (String, String) = (row.get("run")?, row.get("call")?);
    let (status, body): (String, String) = (row.get("status")?, row.get("body")?);
    let place = || format!("the hold of the call `{call}`");
    let hold: Hold =
        serde_json::from_str(&body).map_err(|error| Error::unreadable(place(), error))?;
    let is_consistent = hold.run().as_str() == run
        && hold.call().to_string() == call
        && hold.status().as_str() == status;
    if is_consistent {
        Ok(hold)
    } else {
        let reason = "its columns and its body do not agree";
        Err(Error::unreadable(place(), reason))
    }
}
