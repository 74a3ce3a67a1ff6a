//! Executions of tools that have ended: counted, listed, and looked at to see whether a tool keeps
//! failing.

use rusqlite::{Connection, Row, named_params, params};
use serde::Serialize;
use windlass_core::run::{CallEnd, Event, Variant};
use windlass_spec::{CallId, CallState, ErrorCategory, RunId, Timestamp, ToolName};

use crate::error::Error;
use crate::store::Store;

/// How much of an error is kept beside the journal.
const ERROR_EXCERPT: usize = 500;

/// An execution that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The call it was for.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The agent that made the call.
    pub agent: String,
    /// On whose behalf.
    pub principal: String,
    /// How it ended.
    pub state: CallState,
    /// What went wrong, if something did.
    pub category: Option<ErrorCategory>,
    /// The beginning of the message about it. Gone after a purge.
    pub error: Option<String>,
    /// What it gave, as JSON, if it gave something. Gone after a purge.
    pub result: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// Which executions to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this tool.
    pub tool: Option<ToolName>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those that ended then or later.
    pub since: Option<Timestamp>,
    /// Only so many, the latest.
    pub limit: Option<usize>,
}

/// How the executions of a tool ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolStatistics {
    /// The tool.
    pub tool: ToolName,
    /// How many there were.
    pub executions: u64,
    /// How many gave a result.
    pub success_count: u64,
    /// How many did not, for whatever reason.
    pub failure_count: u64,
    /// Of those, how many took too long.
    pub timeout_count: u64,
    /// Of those, how many were stopped.
    pub cancelled_count: u64,
    /// Of those, for how many nobody knows how they ended.
    pub unknown_count: u64,
    /// The middle of how long they took, in milliseconds.
    pub median_ms: u64,
    /// How long all but one in twenty took at most, in milliseconds.
    pub p95_ms: u64,
    /// When the last one ended.
    pub last_at: Timestamp,
    /// What went wrong last, if anything ever did.
    pub last_error: Option<ErrorCategory>,
}

impl ToolStatistics {
    /// Which share of the executions gave a result.
    #[must_use]
    pub fn success_rate(&self) -> f64 {
        self.success_count as f64 / self.executions.max(1) as f64
    }
}

impl Store {
    /// Executions that have ended, the latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn executions(&self, filter: &ExecutionFilter) -> Result<Vec<Execution>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT *, (
                     SELECT payload -> '$.end.success' FROM events
                     WHERE events.run = executions.run AND kind = 'call_ended'
                         AND payload ->> '$.call' = call
                 ) AS result
                 FROM executions
                 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:tool IS NULL OR tool = :tool)
                     AND (:run IS NULL OR run = :run) AND (:since IS NULL OR ended_at >= :since)
                 ORDER BY ended_at DESC, call DESC LIMIT :limit",
            )?;
            let mut rows = select.query(named_params! {
                ":tenant": filter.tenant,
                ":tool": filter.tool.as_ref().map(ToolName::as_str),
                ":run": filter.run.as_ref().map(RunId::as_str),
                ":since": filter.since.map(Timestamp::as_microseconds),
                ":limit": filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            })?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(execution(row)?);
            }
            Ok(found)
        })
    }

    /// How the executions of each tool ended, by name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn tool_statistics(&self, filter: &ExecutionFilter) -> Result<Vec<ToolStatistics>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT tool, state, category, ended_at, max(0, ended_at - started_at) / 1000 AS took
                 FROM executions
                 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:tool IS NULL OR tool = :tool)
                     AND (:run IS NULL OR run = :run) AND (:since IS NULL OR ended_at >= :since)
                 ORDER BY tool, ended_at",
            )?;
            let mut rows = select.query(named_params! {
                ":tenant": filter.tenant,
                ":tool": filter.tool.as_ref().map(ToolName::as_str),
                ":run": filter.run.as_ref().map(RunId::as_str),
                ":since": filter.since.map(Timestamp::as_microseconds),
            })?;
            let mut all: Vec<Counting> = Vec::new();
            while let Some(row) = rows.next()? {
                let tool = tool(row)?;
                if all.last().is_none_or(|last| last.tool != tool) {
                    all.push(Counting::new(tool));
                }
                if let Some(last) = all.last_mut() {
                    last.count(row)?;
                }
            }
            Ok(all.into_iter().map(Counting::statistics).collect())
        })
    }

    /// How the latest executions of a tool ended that say something about the tool, the last first:
    /// which call it was, whether it failed, and when. What its arguments or people were the reason
    /// for says nothing about it.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn latest_ends(
        &self,
        tenant: &str,
        tool: &ToolName,
        limit: u32,
    ) -> Result<Vec<(CallId, bool, Timestamp)>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT call, state, category, ended_at FROM executions
                 WHERE tenant = ?1 AND tool = ?2 ORDER BY ended_at DESC",
            )?;
            let mut rows = select.query(params![tenant, tool.as_str()])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (state, category) = (state(row)?, category(row)?);
                if let Some(has_failed) = says_of_tool(state, category) {
                    found.push((call(row)?, has_failed, moment(row, "ended_at")?));
                }
                if found.len() >= limit as usize {
                    break;
                }
            }
            Ok(found)
        })
    }
}

/// Whether an end says that the tool works or that it does not; `None` if it says neither.
#[must_use]
pub fn says_of_tool(state: CallState, category: Option<ErrorCategory>) -> Option<bool> {
    match (state, category) {
        (CallState::Success, _) => Some(false),
        (CallState::Timeout | CallState::Unknown, _) => Some(true),
        (
            CallState::Error,
            Some(
                ErrorCategory::Timeout
                | ErrorCategory::Unavailable
                | ErrorCategory::RateLimited
                | ErrorCategory::Authentication
                | ErrorCategory::InvalidOutput
                | ErrorCategory::ToolFailure,
            ),
        ) => Some(true),
        _ => None,
    }
}

/// How an end is told: the state, and what went wrong.
#[must_use]
pub fn told_end(end: &CallEnd) -> (CallState, Option<ErrorCategory>) {
    match end {
        CallEnd::Success(_) => (CallState::Success, None),
        CallEnd::Error(failure) => (CallState::Error, Some(failure.category)),
        CallEnd::Timeout(failure) => (CallState::Timeout, Some(failure.category)),
        CallEnd::Cancelled(failure) => (CallState::Cancelled, Some(failure.category)),
        CallEnd::Unknown(failure) => (CallState::Unknown, Some(failure.category)),
    }
}

/// The execution that an event ends, to be kept beside it.
pub(crate) struct Ended {
    call: CallId,
    tool: String,
    state: &'static str,
    category: Option<&'static str>,
    error: Option<String>,
    started_at: i64,
    ended_at: i64,
    variant: Option<Variant>,
}

impl Ended {
    /// Of an event; nothing if none ended by it.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Event::CallEnded {
            call,
            end,
            ran: Some(ran),
            at,
            ..
        } = event
        else {
            return None;
        };
        let (state, category) = told_end(end);
        let error = match end {
            CallEnd::Success(_) => None,
            CallEnd::Error(failure)
            | CallEnd::Timeout(failure)
            | CallEnd::Cancelled(failure)
            | CallEnd::Unknown(failure) => {
                let message = failure.operator_message.chars();
                Some(message.take(ERROR_EXCERPT).collect())
            }
        };
        let started_at = ran.started_at.as_microseconds();
        Some(Self {
            call: call.clone(),
            tool: ran.tool.to_string(),
            state: state.as_str(),
            category: category.map(ErrorCategory::as_str),
            error,
            started_at,
            ended_at: at.as_microseconds().max(started_at),
            variant: ran.variant.clone(),
        })
    }

    /// Keeps it.
    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), Error> {
        // A call whose end nobody knew may be told about again.
        let mut insert = connection.prepare_cached(
            "INSERT OR REPLACE INTO executions
                 (call, run, tenant, principal, agent, tool, state, category, error, started_at,
                  ended_at, experiment, variant, share_millionths)
             SELECT ?1, run, tenant, principal, agent, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
             FROM runs WHERE run = ?2",
        )?;
        insert.execute(params![
            self.call.to_string(),
            self.call.run.as_str(),
            self.tool,
            self.state,
            self.category,
            self.error,
            self.started_at,
            self.ended_at,
            self.variant.as_ref().map(|variant| &variant.experiment),
            self.variant.as_ref().map(|variant| &variant.name),
            self.variant
                .as_ref()
                .map(|variant| variant.share_millionths)
        ])?;
        Ok(())
    }
}

/// Statistics in the making.
struct Counting {
    tool: ToolName,
    states: Vec<CallState>,
    took: Vec<i64>,
    last_at: Timestamp,
    last_error: Option<ErrorCategory>,
}

impl Counting {
    fn new(tool: ToolName) -> Self {
        Self {
            tool,
            states: Vec::new(),
            took: Vec::new(),
            last_at: Timestamp::from_microseconds(0),
            last_error: None,
        }
    }

    fn count(&mut self, row: &Row<'_>) -> Result<(), Error> {
        self.states.push(state(row)?);
        self.took.push(row.get("took")?);
        self.last_at = moment(row, "ended_at")?;
        self.last_error = category(row)?.or(self.last_error);
        Ok(())
    }

    fn statistics(mut self) -> ToolStatistics {
        self.took.sort_unstable();
        let at = |share: usize| {
            let index = (self.took.len() * share / 100).min(self.took.len().saturating_sub(1));
            self.took
                .get(index)
                .map_or(0, |took| u64::try_from(*took).unwrap_or(0))
        };
        let count = |state| self.states.iter().filter(|other| **other == state).count() as u64;
        let (executions, success_count) = (self.states.len() as u64, count(CallState::Success));
        ToolStatistics {
            executions,
            success_count,
            failure_count: executions - success_count,
            timeout_count: count(CallState::Timeout),
            cancelled_count: count(CallState::Cancelled),
            unknown_count: count(CallState::Unknown),
            median_ms: at(50),
            p95_ms: at(95),
            last_at: self.last_at,
            last_error: self.last_error,
            tool: self.tool,
        }
    }
}

fn execution(row: &Row<'_>) -> Result<Execution, Error> {
    Ok(Execution {
        call: call(row)?,
        tool: tool(row)?,
        agent: row.get("agent")?,
        principal: row.get("principal")?,
        state: state(row)?,
        category: category(row)?,
        error: row.get("error")?,
        result: row.get("result")?,
        started_at: moment(row, "started_at")?,
        ended_at: moment(row, "ended_at")?,
    })
}

fn call(row: &Row<'_>) -> Result<CallId, Error> {
    let call: String = row.get("call")?;
    call.parse()
        .map_err(|error| Error::unreadable(format!("the call `{call}` of an execution"), error))
}

pub(crate) fn tool(row: &Row<'_>) -> Result<ToolName, Error> {
    let tool: String = row.get("tool")?;
    ToolName::new(&*tool)
        .map_err(|error| Error::unreadable(format!("the tool `{tool}` of an execution"), error))
}

pub(crate) fn state(row: &Row<'_>) -> Result<CallState, Error> {
    let state: String = row.get("state")?;
    state
        .parse()
        .map_err(|error| Error::unreadable(format!("the state `{state}` of an execution"), error))
}

fn category(row: &Row<'_>) -> Result<Option<ErrorCategory>, Error> {
    let category: Option<String> = row.get("category")?;
    let known = ErrorCategory::ALL.into_iter();
    Ok(category.and_then(|word| known.clone().find(|category| category.as_str() == word)))
}

fn moment(row: &Row<'_>, column: &str) -> Result<Timestamp, Error> {
    Ok(Timestamp::from_microseconds(row.get(column)?))
}
