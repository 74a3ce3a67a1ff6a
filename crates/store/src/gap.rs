//! Gaps: what agents could not do for want of a tool. Those that show before a run are kept beside the
//! event that says so; the others are recorded by whoever noticed. A run counts once a moment.

use rusqlite::{Connection, Row, named_params, params};
use windlass_core::approval::Identity;
use windlass_core::run::Event;
use windlass_spec::{AgentName, GapMoment, RunId, Timestamp, ToolGapReport};

use crate::error::Error;
use crate::store::Store;

/// A gap to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewGap<'a> {
    /// The run it showed in; none if it showed when an agent was loaded.
    pub run: Option<&'a RunId>,
    /// On whose behalf.
    pub who: &'a Identity,
    /// Of which agent.
    pub agent: &'a AgentName,
    /// When it showed in the life of a run.
    pub moment: GapMoment,
    /// When it was noticed.
    pub at: Timestamp,
    /// What is missing.
    pub report: &'a ToolGapReport,
}

/// A gap that was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGap {
    /// Its number; none if only the journal of its run tells of it.
    pub gap: Option<i64>,
    /// The run it showed in.
    pub run: Option<RunId>,
    /// On whose behalf.
    pub principal: String,
    /// Of which agent.
    pub agent: String,
    /// When it showed in the life of a run.
    pub moment: GapMoment,
    /// When it was noticed.
    pub noticed_at: Timestamp,
    /// The names of tools that would do what is missing.
    pub wanted: Vec<String>,
    /// The whole report. Gone after a purge.
    pub report: Option<ToolGapReport>,
}

/// Which gaps to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GapFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those that showed at this moment.
    pub moment: Option<GapMoment>,
    /// Only those that were noticed then or later.
    pub since: Option<Timestamp>,
    /// Only so many, the latest.
    pub limit: Option<usize>,
}

impl Store {
    /// Keeps a gap and waits for the disk. Whether it is new: of a run, one is kept for each moment.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record_gap(&self, new: &NewGap<'_>) -> Result<bool, Error> {
        let report = self.redactor.json(new.report, &["moment"])?;
        let run = new.run.map(|run| run.as_str().to_owned());
        let (tenant, principal) = (new.who.tenant.to_string(), new.who.principal.to_string());
        let (agent, at) = (new.agent.as_str().to_owned(), new.at.as_microseconds());
        let moment = new.moment.as_str();
        let wanted = wanted(&report)?;
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

    /// Gaps, the latest first: those that were kept, and those that only journals tell of.
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
                found.push(stored(row)?);
            }
            Ok(found)
        })
    }
}

fn stored(row: &Row<'_>) -> Result<StoredGap, Error> {
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
            Error::unreadable("a gap", format!("`{moment}` is no moment of a run"))
        })?,
        noticed_at: Timestamp::from_microseconds(row.get("noticed_at")?),
        wanted: serde_json::from_str(&wanted).map_err(unreadable)?,
        report: report
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(unreadable)?,
    })
}

/// The names of the tools that would do what is missing, as JSON. Made of what is stored, so that no
/// secret comes in by this way.
fn wanted(report: &str) -> Result<String, Error> {
    let report: ToolGapReport =
        serde_json::from_str(report).map_err(|error| Error::unreadable("a gap", error))?;
    let names: Vec<&str> = report
        .missing_tools()
        .iter()
        .map(|missing| {
            let told = report
                .capabilities()
                .iter()
                .find(|told| told.capability == *missing);
            match told.map(|told| &told.wanted_tool) {
                // What is only named is the name of a tool.
                None => missing.as_str(),
                Some(Some(tool)) => tool.as_str(),
                Some(None) => UNNAMED,
            }
        })
        .collect();
    serde_json::to_string(&names).map_err(|error| Error::unreadable("a gap", error))
}

/// What is wanted where no words give a name.
const UNNAMED: &str = "unnamed";

/// The gap that an event tells of, to be kept beside it.
pub(crate) struct Noticed {
    report: String,
    wanted: String,
    at: i64,
}

impl Noticed {
    /// Of an event from which the secrets were taken; nothing if it tells of none.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Event::Offered {
            gap: Some(gap), at, ..
        } = event
        else {
            return None;
        };
        let report = serde_json::to_string(gap).ok()?;
        Some(Self {
            wanted: wanted(&report).ok()?,
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
