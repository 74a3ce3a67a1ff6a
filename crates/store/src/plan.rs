//! Lists plans. Their progress is in the journals of their runs.

use rusqlite::Row;
use windlass_spec::{CallId, Timestamp};

use crate::conditions::Conditions;
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
    /// The plans of a tenant, the newest first; with `after`, those after this plan in the list. Plans of
    /// purged runs are not listed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn plans(
        &self,
        tenant: &str,
        limit: u32,
        after: Option<&CallId>,
    ) -> Result<Vec<StoredPlan>, Error> {
        let after = after.map(CallId::to_string);
        let conditions = Conditions::default().equal("tenant", Some(tenant)).after(
            "plans",
            ("made_at", "plan"),
            after.as_deref(),
        );
        let select = "SELECT plan, goal, tasks, made_at, run_state FROM plans";
        let query = conditions.query(select, "made_at DESC, plan DESC", Some(limit));
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            let rows = select.query_map(conditions.values(), |row| Ok(plan_from_row(row)))?;
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
