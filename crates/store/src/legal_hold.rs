//! Legal holds: runs that nothing is removed of, with who decided that and why. A hold covers the outermost run and all
//! runs that work for it. Placing and lifting one is also recorded as a change by an administrator, in the same
//! transaction.

use rusqlite::{Row, params};
use serde_json::json;
use windlass_spec::{RunId, Timestamp};

use crate::admin::{self, AdminChange};
use crate::error::Error;
use crate::evidence::{Database, LEGAL_HOLDS};
use crate::read::run_id;
use crate::rows;
use crate::store::Store;

/// The kind of the change by an administrator that places a hold.
const PLACED: &str = "legal_hold_added";

/// The kind of the change by an administrator that lifts a hold.
const LIFTED: &str = "legal_hold_removed";

/// A legal hold that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegalHold {
    /// The outermost run.
    pub run: RunId,
    /// Why nothing of it is removed.
    pub reason: String,
    /// Who decided that.
    pub placed_by: String,
    /// When.
    pub placed_at: Timestamp,
}

/// Who places or lifts a hold, and why.
#[derive(Debug, Clone)]
pub struct LegalHoldDecision<'a> {
    /// The tenant of the run.
    pub tenant: &'a str,
    /// Who decides.
    pub by: &'a str,
    /// Why.
    pub reason: &'a str,
    /// When.
    pub at: Timestamp,
}

/// The outermost run: the ids of runs that work for it begin with its id and a dot.
pub(crate) fn outermost(run: &str) -> &str {
    run.split_once('.').map_or(run, |(outermost, _)| outermost)
}

impl Store {
    /// Places a hold on a run and the runs of its family, and waits for the disk. Returns whether there was none.
    ///
    /// # Errors
    /// If there is no such run of the tenant, or it could not be stored.
    pub fn place_legal_hold(
        &self,
        run: &RunId,
        decision: &LegalHoldDecision<'_>,
    ) -> Result<bool, Error> {
        let root = outermost(run.as_str()).to_owned();
        let (run, decided) = (run.clone(), self.change_of(PLACED, &root, decision)?);
        self.transact("legal_hold", move |database| {
            let mut select = database
                .prepare_cached("SELECT 1 FROM runs WHERE run IN (?1, ?2) AND tenant = ?3")?;
            if !select.exists((run.as_str(), &root, &decided.tenant))? {
                return Err(Error::NoSuchRun(run.clone()));
            }
            if is_held(database, &root)? {
                return Ok(false);
            }
            let mut insert = database.prepare_cached(
                "INSERT INTO legal_holds (tenant, run, reason, placed_by, placed_at)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            insert.execute(params![
                decided.tenant,
                root,
                decided.reason,
                decided.by,
                decided.change.at.as_microseconds()
            ])?;
            LEGAL_HOLDS.seal(database, database.last_insert_rowid())?;
            admin::append(database, &decided.tenant, &decided.change, &decided.body)?;
            Ok(true)
        })
    }

    /// Lifts the hold on a run and the runs of its family, and waits for the disk. Returns whether there was one.
    ///
    /// # Errors
    /// If the hold was changed outside Windlass, or it could not be stored.
    pub fn lift_legal_hold(
        &self,
        run: &RunId,
        decision: &LegalHoldDecision<'_>,
    ) -> Result<bool, Error> {
        let root = outermost(run.as_str()).to_owned();
        let decided = self.change_of(LIFTED, &root, decision)?;
        self.transact("legal_hold", move |database| {
            let mut select = database.prepare_cached(&format!(
                "{} WHERE run = ?1 AND tenant = ?2 AND lifted_at IS NULL",
                LEGAL_HOLDS.select()
            ))?;
            let mut found = select.query((&root, &decided.tenant))?;
            let Some(row) = found.next()? else {
                return Ok(false);
            };
            LEGAL_HOLDS.check(&database.evidence, row)?;
            let number: i64 = row.get("number")?;
            drop(found);
            let mut update = database.prepare_cached(
                "UPDATE legal_holds SET lifted_by = ?2, lifted_at = ?3, lift_reason = ?4 WHERE number = ?1",
            )?;
            update.execute(params![
                number,
                decided.by,
                decided.change.at.as_microseconds(),
                decided.reason
            ])?;
            LEGAL_HOLDS.seal(database, number)?;
            admin::append(database, &decided.tenant, &decided.change, &decided.body)?;
            Ok(true)
        })
    }

    /// The holds of a tenant that are in force, the latest first.
    ///
    /// # Errors
    /// If one was changed outside Windlass, or they cannot be read.
    pub fn legal_holds(&self, tenant: &str) -> Result<Vec<LegalHold>, Error> {
        self.readers.read(|database| {
            let mut select = database.prepare_cached(&format!(
                "{} WHERE tenant = ?1 AND lifted_at IS NULL ORDER BY number DESC",
                LEGAL_HOLDS.select()
            ))?;
            rows::all(select.query([tenant])?, |row| {
                LEGAL_HOLDS.check(&database.evidence, row)?;
                hold_from_row(row)
            })
        })
    }

    fn change_of(
        &self,
        kind: &str,
        root: &str,
        decision: &LegalHoldDecision<'_>,
    ) -> Result<Decided, Error> {
        let reason = self.redactor.text(decision.reason);
        let subject = json!({"run": root, "reason": reason});
        Ok(Decided {
            tenant: decision.tenant.to_owned(),
            by: decision.by.to_owned(),
            body: self.redactor.json(&subject, &[])?,
            reason,
            change: AdminChange {
                kind: kind.to_owned(),
                by: Some(decision.by.to_owned()),
                at: decision.at,
                subject,
            },
        })
    }
}

/// A decision without secrets, as it is stored.
struct Decided {
    tenant: String,
    by: String,
    reason: String,
    change: AdminChange,
    body: String,
}

fn hold_from_row(row: &Row<'_>) -> Result<LegalHold, Error> {
    Ok(LegalHold {
        run: run_id(row.get("run")?)?,
        reason: row.get("reason")?,
        placed_by: row.get("placed_by")?,
        placed_at: Timestamp::from_microseconds(row.get("placed_at")?),
    })
}

/// Whether nothing of a run may be removed.
///
/// # Errors
/// If a hold on it was changed outside Windlass, or any hold was removed: it may have been on this run.
pub(crate) fn is_held(database: &Database, run: &str) -> Result<bool, Error> {
    if let Some(reason) = missing_holds(database)? {
        return Err(Error::altered("the list of legal holds", reason));
    }
    let mut select =
        database.prepare_cached(&format!("{} WHERE run = ?1", LEGAL_HOLDS.select()))?;
    let mut rows = select.query([outermost(run)])?;
    let mut is_held = false;
    while let Some(row) = rows.next()? {
        LEGAL_HOLDS.check(&database.evidence, row)?;
        is_held |= row.get::<_, Option<i64>>("lifted_at")?.is_none();
    }
    Ok(is_held)
}

/// What is wrong with the number of holds, if anything is: each was recorded as a change by an administrator.
pub(crate) fn missing_holds(database: &Database) -> Result<Option<String>, Error> {
    let mut select = database.prepare_cached(
        "SELECT (SELECT count(*) FROM legal_holds),
                (SELECT count(*) FROM admin_changes WHERE kind = ?1)",
    )?;
    let (stored, placed): (i64, i64) =
        select.query_row([PLACED], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((stored != placed).then(|| format!("{stored} are stored, and {placed} were placed")))
}
