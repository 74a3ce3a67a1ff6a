//! Ended executions of tools: counted, listed, and used to detect that a tool keeps failing.

use rusqlite::{Connection, Row, params};
use serde::Serialize;
use windlass_core::limits::indicates_tool_failure;
use windlass_core::run::{Event, Variant};
use windlass_spec::{CallId, CallState, ErrorCategory, RunId, Timestamp, ToolName};

use crate::conditions::Conditions;
use crate::error::Error;
use crate::rows;
use crate::store::Store;

/// How many characters of an error message are kept outside the journal.
const ERROR_EXCERPT: usize = 500;

/// An ended execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The call it was for.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The agent that made the call.
    pub agent: String,
    /// The principal on whose behalf it ran.
    pub principal: String,
    /// How it ended.
    pub state: CallState,
    /// The error category, if it failed.
    pub category: Option<ErrorCategory>,
    /// The beginning of the error message. A purge removes it.
    pub error: Option<String>,
    /// The result as JSON, if there is one. A purge removes it.
    pub result: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// Which executions to list or count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this tool.
    pub tool: Option<ToolName>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only the one of this call.
    pub call: Option<CallId>,
    /// Only those that ended at this time or later.
    pub since: Option<Timestamp>,
    /// Only those after the one of this call in the list, the latest first.
    pub after: Option<CallId>,
    /// Only this many, the latest.
    pub limit: Option<usize>,
}

impl ExecutionFilter {
    /// The conditions that lists and statistics share.
    fn conditions(&self) -> Conditions {
        Conditions::default()
            .equal("tenant", self.tenant.as_deref())
            .equal("tool", self.tool.as_ref().map(ToolName::as_str))
            .equal("run", self.run.as_ref().map(RunId::as_str))
            .at_least("ended_at", self.since.map(Timestamp::as_microseconds))
    }
}

/// How the executions of a tool ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolStatistics {
    /// The tool.
    pub tool: ToolName,
    /// The number of executions.
    pub executions: u64,
    /// How many succeeded.
    pub success_count: u64,
    /// How many failed, for any reason.
    pub failure_count: u64,
    /// How many of the failures timed out.
    pub timeout_count: u64,
    /// How many of the failures were cancelled.
    pub cancelled_count: u64,
    /// How many of the failures have an unknown outcome.
    pub unknown_count: u64,
    /// The median duration in milliseconds.
    pub median_ms: u64,
    /// The 95th percentile of the duration in milliseconds.
    pub p95_ms: u64,
    /// When the last one ended.
    pub last_at: Timestamp,
    /// The category of the latest error, if there was one.
    pub last_error: Option<ErrorCategory>,
    /// How often its answers violated a rule of the envelope, at any time.
    pub notice_count: u64,
}

impl ToolStatistics {
    /// The share of executions that succeeded.
    #[must_use]
    pub fn success_rate(&self) -> f64 {
        self.success_count as f64 / self.executions.max(1) as f64
    }
}

impl Store {
    /// Ended executions, the latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn executions(&self, filter: &ExecutionFilter) -> Result<Vec<Execution>, Error> {
        let call = filter.call.as_ref().map(CallId::to_string);
        let after = filter.after.as_ref().map(CallId::to_string);
        let conditions = filter.conditions().equal("call", call.as_deref()).after(
            "executions",
            ("ended_at", "call"),
            after.as_deref(),
        );
        let limit = filter
            .limit
            .map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        let select = "SELECT *, (
                 SELECT payload -> '$.end.success' FROM events
                 WHERE events.run = executions.run AND kind = 'call_ended'
                     AND payload ->> '$.call' = call
             ) AS result
             FROM executions";
        let query = conditions.query(select, "ended_at DESC, call DESC", limit);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            rows::all(select.query(conditions.values())?, execution_from_row)
        })
    }

    /// How the executions of each tool ended, by name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn tool_statistics(&self, filter: &ExecutionFilter) -> Result<Vec<ToolStatistics>, Error> {
        let conditions = filter.conditions();
        let select =
            "SELECT tool, state, category, ended_at, max(0, ended_at - started_at) / 1000 AS took
             FROM executions";
        let query = conditions.query(select, "tool, ended_at", None);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            let mut rows = select.query(conditions.values())?;
            let mut all: Vec<StatisticsBuilder> = Vec::new();
            while let Some(row) = rows.next()? {
                let tool = tool(row)?;
                if all.last().is_none_or(|last| last.tool != tool) {
                    all.push(StatisticsBuilder::new(tool));
                }
                if let Some(last) = all.last_mut() {
                    last.count(row)?;
                }
            }
            let mut statistics: Vec<ToolStatistics> =
                all.into_iter().map(StatisticsBuilder::statistics).collect();
            let mut notices = connection.prepare_cached(
                "SELECT coalesce(sum(count), 0) FROM answer_notices
                 WHERE tool = ?1 AND (?2 IS NULL OR tenant = ?2)",
            )?;
            for of in &mut statistics {
                let count: i64 = notices
                    .query_row(params![of.tool.as_str(), filter.tenant], |row| row.get(0))?;
                of.notice_count = u64::try_from(count).unwrap_or_default();
            }
            Ok(statistics)
        })
    }

    /// The latest executions that show whether a tool works, the last first: the call, whether it failed,
    /// and when it ended. Failures caused by the arguments or by people are skipped.
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
                if let Some(has_failed) = indicates_tool_failure(state, category) {
                    found.push((call(row)?, has_failed, timestamp(row, "ended_at")?));
                }
                if found.len() >= limit as usize {
                    break;
                }
            }
            Ok(found)
        })
    }
}

/// The execution that an event ends, to be stored in the same transaction.
pub(crate) struct EndedExecution {
    call: CallId,
    tool: String,
    state: &'static str,
    category: Option<&'static str>,
    error: Option<String>,
    started_at: i64,
    ended_at: i64,
    variant: Option<Variant>,
}

impl EndedExecution {
    /// The execution that an event ends; `None` if it ends none.
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
        let (state, category) = (end.state(), end.category());
        let error = end.failure().map(|failure| {
            let message = failure.operator_message.chars();
            message.take(ERROR_EXCERPT).collect()
        });
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

    /// Stores it.
    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), Error> {
        // A call with an unknown outcome may end a second time, when the outcome becomes known.
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

/// Collects the statistics of one tool.
struct StatisticsBuilder {
    tool: ToolName,
    states: Vec<CallState>,
    durations_ms: Vec<i64>,
    last_at: Timestamp,
    last_error: Option<ErrorCategory>,
}

impl StatisticsBuilder {
    fn new(tool: ToolName) -> Self {
        Self {
            tool,
            states: Vec::new(),
            durations_ms: Vec::new(),
            last_at: Timestamp::from_microseconds(0),
            last_error: None,
        }
    }

    fn count(&mut self, row: &Row<'_>) -> Result<(), Error> {
        self.states.push(state(row)?);
        self.durations_ms.push(row.get("took")?);
        self.last_at = timestamp(row, "ended_at")?;
        self.last_error = category(row)?.or(self.last_error);
        Ok(())
    }

    fn statistics(mut self) -> ToolStatistics {
        self.durations_ms.sort_unstable();
        let percentile = |percent: usize| {
            let count = self.durations_ms.len();
            let index = (count * percent / 100).min(count.saturating_sub(1));
            self.durations_ms
                .get(index)
                .map_or(0, |duration| u64::try_from(*duration).unwrap_or(0))
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
            median_ms: percentile(50),
            p95_ms: percentile(95),
            last_at: self.last_at,
            last_error: self.last_error,
            notice_count: 0,
            tool: self.tool,
        }
    }
}

fn execution_from_row(row: &Row<'_>) -> Result<Execution, Error> {
    Ok(Execution {
        call: call(row)?,
        tool: tool(row)?,
        agent: row.get("agent")?,
        principal: row.get("principal")?,
        state: state(row)?,
        category: category(row)?,
        error: row.get("error")?,
        result: row.get("result")?,
        started_at: timestamp(row, "started_at")?,
        ended_at: timestamp(row, "ended_at")?,
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

fn timestamp(row: &Row<'_>, column: &str) -> Result<Timestamp, Error> {
    Ok(Timestamp::from_microseconds(row.get(column)?))
}
