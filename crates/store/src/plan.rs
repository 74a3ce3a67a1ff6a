//! Lists plans. Their progress is in the journals of their runs.

use rusqlite::Row;
use windlass_spec::{CallId, Timestamp};

use crate::error::Error;
use crate::read::{RunState, run_state};
use crate::store::Store;

/// A stored plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPlan {
    /// Its id: the call that made it.
    pub plan: CallId,
    /// Its goal, if it has one.
    pub goal: Option<String>,
    /// How many tasks it had when it was made.
    pub tasks: u32,
    /// When it was made.
    pub made_at: Timestamp,
    /// The state of the run that made it.
    pub run_state: RunState,
}

impl Store {
    /// The plans of a tenant, the newest first. Plans of purged runs are not listed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn plans(&self, tenant: &str, limit: u32) -> Result<Vec<StoredPlan>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT plan, goal, tasks, made_at, run_state FROM plans
                 WHERE tenant = ?1 ORDER BY made_at DESC, plan DESC LIMIT ?2",
            )?;
            let rows = select.query_map((tenant, limit), |row| Ok(plan_from_row(row)))?;
            rows.map(|row| row?).collect()
        })
    }
}

fn plan_from_row(row: &Row<'_>) -> Result<StoredPlan, Error> {
    let plan: String = row.get("plan")?;
    let state: String = row.get("run_state")?;
    Ok(StoredPlan {
        goal: row.get("goal")?,
        tasks: row.get("tasks")?,
        made_at: Timestamp::from_microseconds(row.get("made_at")?),
        run_state: run_state(&state)?,
        plan: plan
            .parse()
            .map_err(|error| Error::unreadable(format!("the plan `{plan}`"), error))?,
    })
}
