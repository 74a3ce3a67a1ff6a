//! Gaps: capabilities that agents lack because no tool provides them. A gap found before a run is stored in the
//! transaction of the event that reports it. The others are recorded by the component that detects them. Each run
//! has at most one gap per [`GapMoment`].

use rusqlite::{Connection, Row, named_params, params};
use windlass_core::approval::TenantPrincipal;
use windlass_core::run::Event;
use windlass_spec::{AgentName, GapMoment, RunId, Timestamp, ToolGapReport};

use crate::error::Error;
use crate::rows;
use crate::store::Store;

/// A gap to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewGap<'a> {
    /// The run it was found in; none if it was found when an agent was loaded.
    pub run: Option<&'a RunId>,
    /// The identity on whose behalf the agent acts.
    pub who: &'a TenantPrincipal,
    /// The agent.
    pub agent: &'a AgentName,
    /// The phase of the run in which it was found.
    pub moment: GapMoment,
    /// When it was found.
    pub at: Timestamp,
    /// What is missing.
    pub report: &'a ToolGapReport,
}

/// A stored gap.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGap {
    /// Its number; none if only the journal of its run records it.
    pub gap: Option<i64>,
    /// The run it was found in.
    pub run: Option<RunId>,
    /// The principal on whose behalf the agent acted.
    pub principal: String,
    /// The agent.
    pub agent: String,
    /// The phase of the run in which it was found.
    pub moment: GapMoment,
    /// When it was found.
    pub noticed_at: Timestamp,
    /// The names of tools that would provide the missing capabilities.
    pub wanted: Vec<String>,
    /// The whole report. A purge removes it.
    pub report: Option<ToolGapReport>,
}

/// Which gaps to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GapFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those found in this phase of a run.
    pub moment: Option<GapMoment>,
    /// Only those found at this time or later.
    pub since: Option<Timestamp>,
    /// Only this many, the latest.
    pub limit: Option<usize>,
}

impl Store {
    /// Stores a gap and waits for the disk. Returns whether it is new: a run has one gap per moment.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record_gap(&self, new: &NewGap<'_>) -> Result<bool, Error> {
        let report = self.redactor.json(new.report, &["moment"])?;
        let run = new.run.map(|run| run.as_str().to_owned());
        let (tenant, principal) = (new.who.tenant.to_string(), new.who.principal.to_string());
        let (agent, at) = (new.agent.as_str().to_owned(), new.at.as_microseconds());
        let moment = new.moment.as_str();
        let wanted = wanted_tools(&report)?;
        self.transact("gap", move |connection| {
            let mut insert = connection.prepare_cached(
                "INSERT OR IGNORE INTO tool_gaps
                     (run, tenant, principal, agent, moment, noticed_at, wanted, report)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            let count = insert.execute(params![
                run, tenant, principal, agent, moment, at, wanted, report
            ])?;
            Ok(count > 0)
        })
    }

    /// Gaps, the latest first: the stored ones, and those that only journals record.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn gaps(&self, filter: &GapFilter) -> Result<Vec<StoredGap>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT gap, run, principal, agent, moment, noticed_at, wanted,
                     coalesce(report, CASE WHEN gap IS NULL AND attempted_task <> '' THEN json_object(
                         'missing_tools', json(missing_tools),
                         'attempted_task', attempted_task,
                         'existing_tools_checked', json(existing_tools_checked),
                         'moment', moment
                     ) END) AS report
                 FROM tool_gap_log
                 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:agent IS NULL OR agent = :agent)
                     AND (:run IS NULL OR run = :run) AND (:moment IS NULL OR moment = :moment)
                     AND (:since IS NULL OR noticed_at >= :since)
                 ORDER BY noticed_at DESC, gap DESC, run DESC LIMIT :limit",
            )?;
            let mut rows = select.query(named_params! {
                ":tenant": filter.tenant,
                ":agent": filter.agent,
                ":run": filter.run.as_ref().map(RunId::as_str),
                ":moment": filter.moment.map(GapMoment::as_str),
                ":since": filter.since.map(Timestamp::as_microseconds),
                ":limit": filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            })?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(gap_from_row(row)?);
            }
            Ok(found)
        })
    }
}

/// The gap with this number.
pub(crate) fn gap_by_number(
    connection: &Connection,
    number: i64,
) -> Result<Option<StoredGap>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT gap, run, principal, agent, moment, noticed_at, wanted, report FROM tool_gaps WHERE gap = ?1",
    )?;
    rows::first(select.query([number])?, gap_from_row)
}

fn gap_from_row(row: &Row<'_>) -> Result<StoredGap, Error> {
    let run: Option<String> = row.get("run")?;
    let moment: String = row.get("moment")?;
    let known = GapMoment::ALL
        .into_iter()
        .find(|known| known.as_str() == moment);
    let wanted: String = row.get("wanted")?;
    let report: Option<String> = row.get("report")?;
    let unreadable = |error| Error::unreadable("a gap", error);
    Ok(StoredGap {
        gap: row.get("gap")?,
        run: run.map(crate::read::run_id).transpose()?,
        principal: row.get("principal")?,
        agent: row.get("agent")?,
        moment: known.ok_or_else(|| {
            Error::unreadable("a gap", format!("`{moment}` is not a moment of a run"))
        })?,
        noticed_at: Timestamp::from_microseconds(row.get("noticed_at")?),
        wanted: serde_json::from_str(&wanted).map_err(unreadable)?,
        report: report
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(unreadable)?,
    })
}

/// The names of the tools that would provide the missing capabilities, as JSON. They come from the redacted
/// report, so they contain no secret.
fn wanted_tools(report: &str) -> Result<String, Error> {
    let report: ToolGapReport =
        serde_json::from_str(report).map_err(|error| Error::unreadable("a gap", error))?;
    let names: Vec<&str> = report
        .missing_tools()
        .iter()
        .map(|missing| {
            let detail = report
                .capabilities()
                .iter()
                .find(|detail| detail.capability == *missing);
            match detail.map(|detail| &detail.wanted_tool) {
                // Without details, the missing capability is the name of a tool.
                None => missing.as_str(),
                Some(Some(tool)) => tool.as_str(),
                Some(None) => UNNAMED,
            }
        })
        .collect();
    serde_json::to_string(&names).map_err(|error| Error::unreadable("a gap", error))
}

/// The wanted tool if no name could be derived.
const UNNAMED: &str = "unnamed";

/// The gap that an event reports, to be stored in the same transaction.
pub(crate) struct NoticedGap {
    report: String,
    wanted: String,
    at: i64,
}

impl NoticedGap {
    /// The gap of a redacted event; `None` if it reports none.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Event::Offered {
            gap: Some(gap), at, ..
        } = event
        else {
            return None;
        };
        let report = serde_json::to_string(gap).ok()?;
        Some(Self {
            wanted: wanted_tools(&report).ok()?,
            report,
            at: at.as_microseconds(),
        })
    }

    pub(crate) fn insert(&self, connection: &Connection, run: &RunId) -> Result<(), Error> {
        let mut insert = connection.prepare_cached(
            "INSERT OR IGNORE INTO tool_gaps
                 (run, tenant, principal, agent, moment, noticed_at, wanted, report)
             SELECT run, tenant, principal, agent, 'before_run', ?2, ?3, ?4 FROM runs WHERE run = ?1",
        )?;
        insert.execute(params![run.as_str(), self.at, self.wanted, self.report])?;
        Ok(())
    }
}
