//! Questions to people. They can be listed and decided from any process, whether or not their run is
//! running. A decision changes the row of the question and leaves a command in the
//! inbox of the run, in one transaction. If two people decide at once, the second gets an error.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{OptionalExtension, Row, params};
use windlass_core::approval::{
    Approval, ApprovalOutcome, ApprovalStatus, DecisionEffect, Digest, PersonDecision, Principal,
    TenantPrincipal,
};
use windlass_core::durable::CallEvidence;
use windlass_core::redact::Redactor;
use windlass_spec::{CallId, RunId, Timestamp};

use crate::conditions::Conditions;
use crate::crash::CrashPoints;
use crate::decision::{DecisionSigner, NewDecision};
use crate::error::Error;
use crate::evidence::{APPROVALS, Belonging, Database, seal_new};
use crate::inbox::{self, NewCommand};
use crate::read::count;
use crate::rows::{self, CallColumns};
use crate::store::Store;
use crate::writer::Work;

/// Fields of an approval that are not searched for secrets because Windlass generates them.
const STRUCTURE: [&str; 9] = [
    "run",
    "call",
    "parents",
    "tenant",
    "principal",
    "digest",
    "asked_at",
    "expires_at",
    "status",
];

/// Which questions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those with this status.
    pub status: Option<ApprovalStatus>,
    /// Only those of this kind: `authorize`, `ask` or `intervene`.
    pub kind: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

impl ApprovalFilter {
    /// Matches the questions that wait for a person.
    #[must_use]
    pub fn pending() -> Self {
        Self {
            status: Some(ApprovalStatus::Pending),
            ..Self::default()
        }
    }

    fn conditions(&self) -> Conditions {
        Conditions::default()
            .word("status", self.status.map(ApprovalStatus::as_str))
            .equal("tenant", self.tenant.as_deref())
            .equal("run", self.run.as_ref().map(RunId::as_str))
            .equal("kind", self.kind.as_deref())
    }

    pub(crate) fn summary_query(&self) -> String {
        self.conditions().query(SUMMARY, ORDER, self.limit)
    }
}

/// A question as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSummary {
    /// The call it is about.
    pub call: CallId,
    /// The organisation of its run.
    pub tenant: String,
    /// The principal on whose behalf its run acts.
    pub principal: String,
    /// The kind of question: `authorize`, `ask` or `intervene`.
    pub kind: String,
    /// The tool, if the question asks for approval of a call.
    pub tool: Option<String>,
    /// Its status.
    pub status: ApprovalStatus,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

const ORDER: &str = "asked_at, run, call, number";

/// The columns of the index of pending questions, so that the questions themselves need not be read.
const SUMMARY: &str =
    "SELECT call, tenant, principal, kind, tool, status, asked_at, expires_at FROM approvals ";

impl Store {
    /// Questions, the oldest first. Overdue questions expire before they are listed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn approvals(
        &self,
        filter: &ApprovalFilter,
        now: Timestamp,
    ) -> Result<Vec<Approval>, Error> {
        self.sweep(now)?;
        let conditions = filter.conditions();
        let query = conditions.query(&APPROVALS.select(), ORDER, filter.limit);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            let stored = rows::all(select.query(conditions.values())?, |row| {
                from_row(connection, row)
            })?;
            Ok(stored.into_iter().map(|stored| stored.approval).collect())
        })
    }

    /// Summaries of questions, the oldest first: far less work than [`Store::approvals`]. Overdue
    /// questions expire before they are listed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn approval_summaries(
        &self,
        filter: &ApprovalFilter,
        now: Timestamp,
    ) -> Result<Vec<ApprovalSummary>, Error> {
        let mut found = Vec::new();
        self.each_approval(filter, now, |summary| {
            found.push(summary);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Passes summaries of questions, the oldest first, to `take` one by one until it breaks, for very
    /// long lists. As with [`Store::each_run`], `take` should be quick. Overdue questions expire before
    /// they are listed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn each_approval(
        &self,
        filter: &ApprovalFilter,
        now: Timestamp,
        mut take: impl FnMut(ApprovalSummary) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.sweep(now)?;
        let conditions = filter.conditions();
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&filter.summary_query())?;
            let mut rows = select.query(conditions.values())?;
            while let Some(row) = rows.next()? {
                if take(summary(row)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The number of matching questions, without the limit. Overdue questions expire before they are
    /// counted.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn count_approvals(&self, filter: &ApprovalFilter, now: Timestamp) -> Result<u64, Error> {
        self.sweep(now)?;
        let conditions = filter.conditions();
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&conditions.count("approvals"))?;
            Ok(count(
                select.query_row(conditions.values(), |row| row.get(0))?,
            ))
        })
    }

    /// The latest question about a call.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn approval(&self, call: &CallId, now: Timestamp) -> Result<Approval, Error> {
        self.sweep(now)?;
        let stored = self.readers.read(|connection| latest(connection, call))?;
        Ok(stored.approval)
    }

    /// What the approvals, holds and executions record about a call, whatever its journal says.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn evidence(&self, call: &CallId) -> Result<CallEvidence, Error> {
        let has_run = self.readers.read(|connection| {
            let mut select =
                connection.prepare_cached("SELECT 1 FROM executions WHERE call = ?1")?;
            Ok(select.exists([call.to_string()])?)
        })?;
        let mut evidence = CallEvidence {
            has_run,
            ..CallEvidence::default()
        };
        let latest = self.readers.read(|connection| latest(connection, call));
        match latest {
            Ok(stored) => {
                if let Some(ApprovalOutcome::Run { digest, .. }) = stored.approval.outcome() {
                    evidence.authorized = Some(digest);
                    match self.check_decisions(&stored.approval) {
                        Ok(()) => {}
                        Err(Error::NotProven { reason, .. }) => evidence.unproven = Some(reason),
                        Err(error) => return Err(error),
                    }
                    return Ok(evidence);
                }
            }
            Err(Error::NoSuchApproval(_)) => {}
            Err(error) => return Err(error),
        }
        match self.hold(call) {
            Ok(hold) => evidence.authorized = Some(hold.digest()),
            Err(Error::NoSuchHold(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(evidence)
    }

    /// Stores a person's decision about a call and notifies the run's owner, in one transaction, and
    /// waits for the disk. `digest` identifies what the person was shown. If two people must agree, the
    /// first decision is recorded, and the owner is notified after the second.
    ///
    /// # Errors
    /// If there is no question about the call ([`Error::NoSuchApproval`], also for other tenants), it is
    /// settled ([`Error::AlreadyDecided`]), it has expired ([`Error::Expired`]), the person was shown
    /// another call ([`Error::DigestDiffers`]), is not entitled to decide ([`Error::NotEntitled`]), or the
    /// decision is refused ([`Error::Undecided`]).
    pub fn decide(
        &self,
        call: &CallId,
        digest: Option<&Digest>,
        by: &TenantPrincipal,
        decision: PersonDecision,
        now: Timestamp,
    ) -> Result<Approval, Error> {
        let new = NewDecision {
            call: call.clone(),
            digest: digest.copied(),
            decision,
        };
        self.decide_signed(new, by, None, now)
    }

    /// Stores a decision as [`Store::decide`] does, of an approver who is authenticated, with a signature. A store with
    /// a list of approvers accepts a rejection without one, and nothing else.
    ///
    /// # Errors
    /// As [`Store::decide`], and [`Error::NotProven`] if it is not the decision of an enrolled approver.
    pub fn decide_signed(
        &self,
        new: NewDecision,
        by: &TenantPrincipal,
        signer: Option<DecisionSigner>,
        now: Timestamp,
    ) -> Result<Approval, Error> {
        self.sweep(now)?;
        let NewDecision {
            call,
            digest,
            decision,
        } = new;
        let decision = self.redacted_decision(decision)?;
        let list = match &decision {
            PersonDecision::Reject { .. } => None,
            _ => self.approver_list()?,
        };
        let by = by.clone();
        self.transact("decide", move |connection| {
            let mut stored = latest(connection, &call)?;
            if stored.approval.request().principal.tenant != by.tenant {
                return Err(Error::NoSuchApproval(call.clone()));
            }
            let attestation = signer.as_ref().map(|signer| signer.attestation.clone());
            let changed = stored
                .approval
                .decide_attested(&by, attestation, decision.clone(), digest.as_ref(), now)
                .map_err(|error| Error::undecided(&call, error))?;
            if let Some(signer) = &signer {
                stored.approval.sign(|text| signer.sign(text));
            }
            Self::check_decision(list.as_ref(), &stored.approval)?;
            stored.update(connection)?;
            if changed == DecisionEffect::Settled {
                stored.notify_owner(connection, Some(&by.principal), now)?;
            }
            Ok(stored.approval)
        })
    }

    /// Expires the overdue questions and notifies the owners of their runs. Returns the calls they were
    /// about.
    ///
    /// # Errors
    /// If the database fails.
    pub fn sweep(&self, now: Timestamp) -> Result<Vec<CallId>, Error> {
        let overdue = "status = 'pending' AND expires_at <= ?1";
        if self.evidence.refusal().is_some() {
            // Nothing is written to this database.
            return Ok(Vec::new());
        }
        let is_overdue: bool = self.readers.read(|connection| {
            let query = format!("SELECT EXISTS (SELECT 1 FROM approvals WHERE {overdue})");
            let mut select = connection.prepare_cached(&query)?;
            Ok(select.query_row([now.as_microseconds()], |row| row.get(0))?)
        })?;
        if !is_overdue {
            return Ok(Vec::new());
        }
        self.transact("expire", move |connection| {
            let select = APPROVALS.select();
            let query = format!("{select} WHERE {overdue} ORDER BY expires_at, run, call");
            let mut select = connection.prepare_cached(&query)?;
            let mut expired = Vec::new();
            // One that was changed stays as it is: it is refused wherever it is used.
            let stored = rows::all(
                select.query([now.as_microseconds()])?,
                |row| match from_row(connection, row) {
                    Err(Error::Altered { .. }) => Ok(None),
                    stored => stored.map(Some),
                },
            )?;
            for mut stored in stored.into_iter().flatten() {
                if stored.approval.expire(now) {
                    stored.update(connection)?;
                    stored.notify_owner(connection, None, now)?;
                    expired.push(stored.approval.call().clone());
                }
            }
            Ok(expired)
        })
    }

    /// Does `work` in one transaction and waits for the disk. `what` names its crash points.
    pub(crate) fn transact<T: Send + 'static>(
        &self,
        what: &'static str,
        mut work: impl FnMut(&Database) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The writer thread answers with a number. Any other value is returned through this slot.
        let result = Arc::new(Mutex::new(None));
        let result_in_work = Arc::clone(&result);
        self.writer
            .wait_for(Work::new(CrashPoints::of(what), move |connection| {
                let value = work(connection)?;
                *result_in_work
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(0)
            }))?;
        let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or(Error::Closed)
    }

    /// The decision without secrets. Approved arguments must run unchanged, so a secret in them is an error.
    fn redacted_decision(&self, decision: PersonDecision) -> Result<PersonDecision, Error> {
        let text = self.redactor.json(&decision, &["decision"])?;
        let redacted = serde_json::from_str(&text)
            .map_err(|error| Error::unreadable("the decision", error))?;
        if decision.is_approval() && redacted != decision {
            return Err(Error::SecretInStructure);
        }
        Ok(redacted)
    }
}

/// A question with its number in the table.
pub(crate) struct StoredApproval {
    number: i64,
    pub(crate) approval: Approval,
}

impl StoredApproval {
    fn update(&self, connection: &Database) -> Result<(), Error> {
        let body = to_json(&self.approval)?;
        let call = self.approval.call();
        let mut update = connection.prepare_cached(
            "UPDATE approvals SET status = ?4, settled_at = ?5, body = ?6
             WHERE run = ?1 AND call = ?2 AND number = ?3 AND status = 'pending' RETURNING rowid",
        )?;
        let values = params![
            call.run.as_str(),
            call.to_string(),
            self.number,
            self.approval.status().as_str(),
            self.approval.settled_at().map(Timestamp::as_microseconds),
            body
        ];
        let changed = update.query_row(values, |row| row.get(0)).optional()?;
        match changed {
            None => Err(Error::NoSuchApproval(call.clone())),
            Some(row) => APPROVALS.seal(connection, row),
        }
    }

    fn notify_owner(
        &self,
        connection: &Database,
        by: Option<&Principal>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let call = self.approval.call();
        let command = NewCommand {
            run: &call.run,
            kind: "settled",
            call: Some(call),
            number: Some(self.number),
            body: None,
            by,
            at,
        };
        inbox::post(connection, &command)
    }
}

/// Stores a question from which secrets were removed.
pub(crate) fn insert(connection: &Database, asked: &Approval) -> Result<(), Error> {
    let (call, request) = (asked.call(), asked.request());
    let pending: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM approvals
                 WHERE run = ?1 AND call = ?2 AND status = 'pending')",
        )?
        .query_row((call.run.as_str(), call.to_string()), |row| row.get(0))?;
    if pending || asked.status() != ApprovalStatus::Pending {
        return Err(Error::AlreadyAsked(call.clone()));
    }
    let tool = asked.question().authorize().map(|call| &call.tool_name);
    let mut insert = connection.prepare_cached(
        "INSERT INTO approvals (run, call, number, tenant, principal, kind, tool, status,
             asked_at, expires_at, body)
         SELECT run, ?2,
             (SELECT 1 + coalesce(max(number), 0) FROM approvals WHERE run = ?1 AND call = ?2),
             tenant, principal, ?5, ?6, ?7, ?8, ?9, ?10
         FROM runs WHERE run = ?1 AND tenant = ?3 AND principal = ?4",
    )?;
    let inserted = insert.execute(params![
        call.run.as_str(),
        call.to_string(),
        request.principal.tenant.as_str(),
        request.principal.principal.as_str(),
        asked.question().kind(),
        tool.map(windlass_spec::ToolName::as_str),
        asked.status().as_str(),
        request.asked_at.as_microseconds(),
        request.expires_at.as_microseconds(),
        to_json(asked)?
    ])?;
    match inserted {
        0 => Err(Error::NotOfThisRun {
            run: call.run.clone(),
            call: call.clone(),
        }),
        _ => seal_new(connection, &call.run, Belonging::Question),
    }
}

/// Checks that a question is redacted. It is redacted once, with the event that asks it, because the run, the
/// event and the row must be the same.
pub(crate) fn check_redacted(redactor: &Redactor, asked: &Approval) -> Result<(), Error> {
    match redactor.json(asked, &STRUCTURE)? == to_json(asked)? {
        true => Ok(()),
        false => Err(Error::SecretInStructure),
    }
}

/// Withdraws the pending questions of a run, or of one call of it.
pub(crate) fn withdraw(
    connection: &Database,
    run: &RunId,
    call: Option<&CallId>,
    at: Timestamp,
) -> Result<(), Error> {
    let mut select = connection.prepare_cached(&format!(
        "{} WHERE run = ?1 AND status = 'pending' AND (?2 IS NULL OR call = ?2)",
        APPROVALS.select()
    ))?;
    let call = call.map(ToString::to_string);
    let pending = rows::all(select.query((run.as_str(), call))?, |row| {
        from_row(connection, row)
    })?;
    for mut stored in pending {
        if stored.approval.cancel(at) {
            stored.update(connection)?;
        }
    }
    Ok(())
}

/// The question about a call with this number.
pub(crate) fn approval_by_number(
    connection: &Database,
    call: &CallId,
    number: i64,
) -> Result<Approval, Error> {
    let mut select = connection.prepare_cached(&format!(
        "{} WHERE run = ?1 AND call = ?2 AND number = ?3",
        APPROVALS.select()
    ))?;
    let parameters = (call.run.as_str(), call.to_string(), number);
    let found = rows::first(select.query(parameters)?, |row| from_row(connection, row))?;
    let found = found.ok_or_else(|| Error::NoSuchApproval(call.clone()))?;
    Ok(found.approval)
}

fn latest(connection: &Database, call: &CallId) -> Result<StoredApproval, Error> {
    let mut select = connection.prepare_cached(&format!(
        "{} WHERE run = ?1 AND call = ?2 ORDER BY number DESC LIMIT 1",
        APPROVALS.select()
    ))?;
    let rows = select.query((call.run.as_str(), call.to_string()))?;
    let found = rows::first(rows, |row| from_row(connection, row))?;
    found.ok_or_else(|| Error::NoSuchApproval(call.clone()))
}

fn from_row(connection: &Database, row: &Row<'_>) -> Result<StoredApproval, Error> {
    APPROVALS.check(&connection.evidence, row)?;
    let agrees = |approval: &Approval, columns: &CallColumns| {
        approval.run().as_str() == columns.run
            && approval.call().to_string() == columns.call
            && approval.status().as_str() == columns.status
    };
    Ok(StoredApproval {
        number: row.get("number")?,
        approval: rows::body_of_call(row, "request about", agrees)?,
    })
}

fn summary(row: &Row<'_>) -> Result<ApprovalSummary, Error> {
    let call = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    let place = || format!("the request about the call `{call}`");
    let status = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(ApprovalSummary {
        call: call
            .parse()
            .map_err(|error| Error::unreadable(place(), error))?,
        tenant: row.get(1)?,
        principal: row.get(2)?,
        kind: row.get(3)?,
        tool: row.get(4)?,
        status: status
            .parse()
            .map_err(|error| Error::unreadable(place(), error))?,
        asked_at: Timestamp::from_microseconds(row.get(6)?),
        expires_at: Timestamp::from_microseconds(row.get(7)?),
    })
}

fn to_json(approval: &Approval) -> Result<String, Error> {
    serde_json::to_string(approval).map_err(|error| Error::unreadable("the question", error))
}
