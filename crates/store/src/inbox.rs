//! The inbox of a run: commands that people and other processes leave for its owner. Any process may leave one.
//! Only the owner takes one, once, in the transaction that stores the event it leads to. So a decision is
//! neither lost when a process dies nor acted on twice. The table is called `mailbox`.

use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::durable::{InboxAction, InboxCommand, InboxCommandId};
use windlass_core::run::PlanTaskStatus;
use windlass_keys::sha256;
use windlass_spec::plan::{Plan, PlanTaskId};
use windlass_spec::{CallId, RunId, Timestamp};

use crate::connection::Readers;
use crate::error::Error;
use crate::evidence::{Belonging, COMMANDS, Database, seal_new};
use crate::journal::RunJournal;
use crate::read::{count, stored_state};
use crate::store::Store;
use crate::{approval, hold};

/// The body of a command that marks a task of a plan.
#[derive(Serialize, Deserialize)]
struct MarkTaskBody {
    task: PlanTaskId,
    status: PlanTaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<serde_json::Value>,
}

impl RunJournal {
    /// The commands for this run that were not taken yet, in the order in which they were sent.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn inbox(&self) -> Result<Vec<InboxCommand>, Error> {
        inbox(&self.readers, self.lease().run())
    }
}

impl Store {
    /// The commands for a run that its owner has not taken yet.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn inbox(&self, run: &RunId) -> Result<Vec<InboxCommand>, Error> {
        inbox(&self.readers, run)
    }

    /// Asks the owner of a run to cancel it. Its pending questions are withdrawn and its held calls
    /// cancelled at once, so later decisions have no effect.
    ///
    /// # Errors
    /// If there is no such run, also for other tenants, or it has ended.
    pub fn request_cancel(
        &self,
        run: &RunId,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Result<(), Error> {
        let (run, by) = (run.clone(), by.clone());
        self.transact("cancel", move |connection| {
            check_open(connection, &run, &by)?;
            approval::withdraw(connection, &run, None, now)?;
            hold::withdraw(connection, &run, None, now)?;
            let is_requested: bool = connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM mailbox
                         WHERE run = ?1 AND kind = 'cancel' AND taken_at IS NULL)",
                )?
                .query_row([run.as_str()], |row| row.get(0))?;
            if is_requested {
                return Ok(());
            }
            let command = NewCommand {
                run: &run,
                kind: "cancel",
                call: None,
                number: None,
                body: None,
                by: Some(&by.principal),
                at: now,
            };
            post(connection, &command)
        })
    }

    /// Asks the owner of a run to change the status of a task of one of its plans. Returns the command.
    ///
    /// # Errors
    /// If there is no such run, also for other tenants, or it has ended.
    pub fn mark_task(
        &self,
        plan: &CallId,
        (task, status): (&PlanTaskId, PlanTaskStatus),
        result: Option<serde_json::Value>,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Result<InboxCommandId, Error> {
        let task = task.clone();
        let body = MarkTaskBody {
            task,
            status,
            result,
        };
        let body = self.redactor.json(&body, &["task", "status"])?;
        self.post_about_plan(plan, "mark", body, by, now)
    }

    /// Asks the owner of a run to replace the tasks of a plan that have not begun. Returns the command.
    ///
    /// # Errors
    /// If there is no such run, also for other tenants, or it has ended.
    pub fn replan(
        &self,
        plan: &CallId,
        tasks: &Plan,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Result<InboxCommandId, Error> {
        let body = self.redactor.json(tasks, &["id", "tool", "agent"])?;
        self.post_about_plan(plan, "replan", body, by, now)
    }

    fn post_about_plan(
        &self,
        plan: &CallId,
        kind: &'static str,
        body: String,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Result<InboxCommandId, Error> {
        let (plan, by) = (plan.clone(), by.clone());
        self.transact(kind, move |connection| {
            check_open(connection, &plan.run, &by)?;
            let command = NewCommand {
                run: &plan.run,
                kind,
                call: Some(&plan),
                number: None,
                body: Some(&body),
                by: Some(&by.principal),
                at: now,
            };
            post(connection, &command)?;
            Ok(InboxCommandId::new(connection.last_insert_rowid()))
        })
    }

    /// The number of the event that a command led to, if it was taken. That event is the requested change, or
    /// `time_passed` if the change was no longer possible.
    ///
    /// # Errors
    /// If there is no such command, or it cannot be read.
    pub fn taken(&self, command: InboxCommandId) -> Result<Option<u64>, Error> {
        self.readers.read(|connection| {
            let seq: Option<Option<i64>> = connection
                .prepare_cached("SELECT taken_seq FROM mailbox WHERE id = ?1")?
                .query_row([command.number()], |row| row.get(0))
                .optional()?;
            let seq = seq.ok_or(Error::NoSuchCommand(command))?;
            Ok(seq.map(count))
        })
    }
}

/// Checks that the run exists for this identity and has not ended.
fn check_open(connection: &Database, run: &RunId, by: &TenantPrincipal) -> Result<(), Error> {
    let tenant: Option<String> = connection
        .prepare_cached("SELECT tenant FROM runs WHERE run = ?1")?
        .query_row([run.as_str()], |row| row.get(0))
        .optional()?;
    if tenant.as_deref() != Some(by.tenant.as_str()) {
        return Err(Error::NoSuchRun(run.clone()));
    }
    if stored_state(connection, run)?.as_deref() == Some("ended") {
        return Err(Error::Ended(run.clone()));
    }
    Ok(())
}

/// A command to be sent.
pub(crate) struct NewCommand<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) kind: &'static str,
    pub(crate) call: Option<&'a CallId>,
    pub(crate) number: Option<i64>,
    pub(crate) body: Option<&'a str>,
    pub(crate) by: Option<&'a Principal>,
    pub(crate) at: Timestamp,
}

/// Leaves a command for the owner of a run.
pub(crate) fn post(connection: &Database, command: &NewCommand<'_>) -> Result<(), Error> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO mailbox (run, tenant, principal, kind, call, number, body, sent_by, sent_at, digest)
         SELECT run, tenant, principal, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM runs WHERE run = ?1",
    )?;
    let sent = insert.execute(params![
        command.run.as_str(),
        command.kind,
        command.call.map(ToString::to_string),
        command.number,
        command.body,
        command.by.map(Principal::as_str),
        command.at.as_microseconds(),
        command.body.map(|body| sha256(body.as_bytes()))
    ])?;
    match sent {
        0 => Err(Error::NoSuchRun(command.run.clone())),
        _ => seal_new(connection, command.run, Belonging::Command),
    }
}

/// Withdraws all questions and holds of an ended run, at the time it ended.
pub(crate) fn withdraw_all(connection: &Database, run: &RunId) -> Result<(), Error> {
    let at: i64 = connection
        .prepare_cached("SELECT ended_at FROM runs WHERE run = ?1")?
        .query_row([run.as_str()], |row| row.get(0))?;
    let at = Timestamp::from_microseconds(at);
    approval::withdraw(connection, run, None, at)?;
    hold::withdraw(connection, run, None, at)
}

/// Refuses a command that was changed since it was sent.
fn check_command(connection: &Database, command: InboxCommandId) -> Result<(), Error> {
    let select = COMMANDS.select();
    let mut select = connection.prepare_cached(&format!("{select} WHERE rowid = ?1"))?;
    let mut rows = select.query([command.number()])?;
    match rows.next()? {
        Some(row) => COMMANDS.check(&connection.evidence, row),
        None => Err(Error::NoSuchCommand(command)),
    }
}

pub(crate) fn take(
    connection: &Database,
    run: &RunId,
    command: InboxCommandId,
    seq: i64,
    at: Timestamp,
) -> Result<(), Error> {
    check_command(connection, command)?;
    let mut update = connection.prepare_cached(
        "UPDATE mailbox SET taken_at = ?3, taken_seq = ?4
         WHERE id = ?1 AND run = ?2 AND taken_at IS NULL",
    )?;
    match update.execute((command.number(), run.as_str(), at.as_microseconds(), seq))? {
        0 => Err(Error::NoSuchCommand(command)),
        _ => COMMANDS.seal(connection, command.number()),
    }
}

fn inbox(readers: &Readers, run: &RunId) -> Result<Vec<InboxCommand>, Error> {
    readers.read(|connection| {
        let mut select = connection.prepare_cached(
            "SELECT id, kind, call, number, body, sent_by, sent_at, digest FROM mailbox
             WHERE run = ?1 AND taken_at IS NULL ORDER BY id",
        )?;
        let mut rows = select.query([run.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(command_from_row(connection, row)?);
        }
        Ok(found)
    })
}

fn command_from_row(connection: &Database, row: &Row<'_>) -> Result<InboxCommand, Error> {
    let id: i64 = row.get("id")?;
    let place = || format!("the inbox command {id}");
    let kind: String = row.get("kind")?;
    let call: Option<String> = row.get("call")?;
    let number: Option<i64> = row.get("number")?;
    let by: Option<String> = row.get("sent_by")?;
    let by = by.map(Principal::new).transpose();
    let call = call.map(|text| text.parse()).transpose();
    let call: Option<CallId> = call.map_err(|error| Error::unreadable(place(), error))?;
    let body: Option<String> = row.get("body")?;
    check_command(connection, InboxCommandId::new(id))?;
    let digest: Option<[u8; 32]> = row.get("digest")?;
    if connection.evidence.is_on() && digest != body.as_ref().map(|body| sha256(body.as_bytes())) {
        return Err(Error::altered(place(), "its content was changed"));
    }
    let body = body.unwrap_or_default();
    let action = match (kind.as_str(), call, number) {
        // A settled question never changes, so it is the same as when the command was sent.
        ("settled", Some(call), Some(number)) => InboxAction::Settled(Box::new(
            approval::approval_by_number(connection, &call, number)?,
        )),
        ("undo", Some(call), None) => InboxAction::Undo(call),
        ("release", Some(call), None) => InboxAction::Release(call),
        ("cancel", None, None) => InboxAction::Cancel,
        ("mark", Some(plan), None) => {
            let marked: MarkTaskBody =
                serde_json::from_str(&body).map_err(|error| Error::unreadable(place(), error))?;
            InboxAction::Mark {
                plan,
                task: marked.task,
                status: marked.status,
                result: marked.result,
            }
        }
        ("replan", Some(plan), None) => {
            let tasks =
                serde_json::from_str(&body).map_err(|error| Error::unreadable(place(), error))?;
            InboxAction::Replan { plan, tasks }
        }
        _ => {
            let reason = format!("it is not a valid `{kind}` command");
            return Err(Error::unreadable(place(), reason));
        }
    };
    Ok(InboxCommand {
        id: InboxCommandId::new(id),
        by: by.map_err(|error| Error::unreadable(place(), error))?,
        at: Timestamp::from_microseconds(row.get("sent_at")?),
        action,
    })
}
