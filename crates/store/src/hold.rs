//! Held calls. Any principal of the tenant can undo or release one from any process while it is held. The
//! owner of the run starts a held call only if its row allows it, so a confirmed undo is final.

use rusqlite::{OptionalExtension, Row, params};
use windlass_core::approval::{Hold, HoldError, HoldStatus, TenantPrincipal};
use windlass_core::redact::Redactor;
use windlass_spec::{CallId, RunId, Timestamp};

use crate::conditions::Conditions;
use crate::error::Error;
use crate::evidence::{Belonging, Database, HOLDS, seal_new};
use crate::inbox::{self, NewCommand};
use crate::rows;
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
        let query = conditions.query(&HOLDS.select(), "held_at, run, call", filter.limit);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            rows::all(select.query(conditions.values())?, |row| {
                from_row(connection, row)
            })
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
    pub fn undo(&self, call: &CallId, by: &TenantPrincipal, now: Timestamp) -> Result<Hold, Error> {
        self.change_hold("undo", call, by, now, Hold::undo)
    }

    /// Releases a held call before its time and notifies the run's owner.
    ///
    /// # Errors
    /// If it is not held ([`Error::NoSuchHold`], also for other tenants) or no longer
    /// ([`Error::TooLate`], with its status).
    pub fn release(
        &self,
        call: &CallId,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Result<Hold, Error> {
        self.change_hold("release", call, by, now, Hold::release)
    }

    fn change_hold(
        &self,
        kind: &'static str,
        call: &CallId,
        by: &TenantPrincipal,
        now: Timestamp,
        change: fn(&mut Hold, &TenantPrincipal, Timestamp) -> Result<(), HoldError>,
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
pub(crate) fn insert(connection: &Database, hold: &Hold) -> Result<(), Error> {
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
        _ => seal_new(connection, &call.run, Belonging::HeldCall),
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
pub(crate) fn start(connection: &Database, call: &CallId, at: Timestamp) -> Result<(), Error> {
    let mut hold = find(connection, call)?;
    hold.start(at).map_err(|error| hold_error(call, error))?;
    update(connection, &hold)
}

/// Cancels the held calls of a run, or one of them.
pub(crate) fn withdraw(
    connection: &Database,
    run: &RunId,
    call: Option<&CallId>,
    at: Timestamp,
) -> Result<(), Error> {
    let mut select = connection.prepare_cached(&format!(
        "{} WHERE run = ?1 AND status IN ('held', 'released') AND (?2 IS NULL OR call = ?2)",
        HOLDS.select()
    ))?;
    let call = call.map(ToString::to_string);
    let held = rows::all(select.query((run.as_str(), call))?, |row| {
        from_row(connection, row)
    })?;
    for mut hold in held {
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

fn update(connection: &Database, hold: &Hold) -> Result<(), Error> {
    let body = to_json(hold)?;
    let call = hold.call();
    let mut update = connection.prepare_cached(
        "UPDATE holds SET status = ?3, body = ?4
         WHERE run = ?1 AND call = ?2 AND status IN ('held', 'released') RETURNING rowid",
    )?;
    let status = hold.status().as_str();
    let values = (call.run.as_str(), call.to_string(), status, body);
    let changed = update.query_row(values, |row| row.get(0)).optional()?;
    match changed {
        None => Err(Error::NoSuchHold(call.clone())),
        Some(row) => HOLDS.seal(connection, row),
    }
}

fn find(connection: &Database, call: &CallId) -> Result<Hold, Error> {
    let mut select =
        connection.prepare_cached(&format!("{} WHERE run = ?1 AND call = ?2", HOLDS.select()))?;
    let rows = select.query((call.run.as_str(), call.to_string()))?;
    let found = rows::first(rows, |row| from_row(connection, row))?;
    found.ok_or_else(|| Error::NoSuchHold(call.clone()))
}

fn from_row(connection: &Database, row: &Row<'_>) -> Result<Hold, Error> {
    HOLDS.check(&connection.evidence, row)?;
    rows::body_of_call(row, "hold of", |hold: &Hold, columns| {
        hold.run().as_str() == columns.run
            && hold.call().to_string() == columns.call
            && hold.status().as_str() == columns.status
    })
}
