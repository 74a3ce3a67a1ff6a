//! Standing approvals: stored, listed and revoked. Which calls one covers is decided in `windlass-core`.

use rusqlite::{Row, named_params, params};
use windlass_core::approval::{Reach, StandingApproval, StandingCall, TenantPrincipal};
use windlass_spec::{Timestamp, ToolName};

use crate::crash::CrashPoints;
use crate::error::Error;
use crate::evidence::{Database, STANDING};
use crate::rows;
use crate::store::Store;
use crate::writer::Work;

windlass_core::numbered_id! {
    /// The id of a standing approval.
    StandingId
}

/// A stored standing approval.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStanding {
    /// Its id.
    pub id: StandingId,
    /// The standing approval.
    pub standing: StandingApproval,
}

/// Which standing approvals to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those for calls on behalf of this principal.
    pub principal: Option<String>,
    /// Only those for this tool.
    pub tool: Option<ToolName>,
    /// Only those that are neither revoked nor expired at this time.
    pub in_force_at: Option<Timestamp>,
}

impl Store {
    /// Stores a standing approval and waits for the disk.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn grant_standing(&self, standing: &StandingApproval) -> Result<StandingId, Error> {
        let (standing, body) = (standing.clone(), to_json(standing)?);
        let id = self
            .writer
            .wait_for(Work::new(CrashPoints::of("grant"), move |connection| {
                let mut insert = connection.prepare_cached(
                    "INSERT INTO standing_approvals
                     (tenant, principal, tool, granted_at, revoked_at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                insert.execute(params![
                    standing.principal().tenant.as_str(),
                    standing.principal().principal.as_str(),
                    standing.tool_name().as_str(),
                    standing.granted_at().as_microseconds(),
                    standing
                        .revoked()
                        .map(|revoked| revoked.at.as_microseconds()),
                    body
                ])?;
                let id = connection.last_insert_rowid();
                STANDING.seal(connection, id)?;
                Ok(id)
            }))?;
        Ok(StandingId(id))
    }

    /// Standing approvals, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn standing(&self, filter: &StandingFilter) -> Result<Vec<StoredStanding>, Error> {
        let mut found = self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "{} WHERE (:tenant IS NULL OR tenant = :tenant)
                     AND (:principal IS NULL OR principal = :principal)
                     AND (:tool IS NULL OR tool = :tool) ORDER BY id",
                STANDING.select()
            ))?;
            let rows = select.query(named_params! {
                ":tenant": filter.tenant,
                ":principal": filter.principal,
                ":tool": filter.tool.as_ref().map(ToolName::as_str),
            })?;
            rows::all(rows, |row| from_row(connection, row))
        })?;
        if let Some(at) = filter.in_force_at {
            found.retain(|stored| is_in_force(&stored.standing, at));
        }
        Ok(found)
    }

    /// The first standing approval that covers a call, if there is one.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn covering(&self, call: &StandingCall<'_>) -> Result<Option<StoredStanding>, Error> {
        let candidates = self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "{} WHERE tenant = ?1 AND principal = ?2 AND tool = ?3
                     AND revoked_at IS NULL ORDER BY id",
                STANDING.select()
            ))?;
            let rows = select.query((
                call.principal.tenant.as_str(),
                call.principal.principal.as_str(),
                call.tool.as_str(),
            ))?;
            rows::all(rows, |row| from_row(connection, row))
        })?;
        let mut candidates = candidates.into_iter();
        Ok(candidates.find(|stored| stored.standing.covers(call)))
    }

    /// Revokes a standing approval. One that was revoked before stays unchanged.
    ///
    /// # Errors
    /// If there is none with this id, also for other tenants, or it could not be stored.
    pub fn revoke_standing(
        &self,
        id: StandingId,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Result<StandingApproval, Error> {
        let by = by.clone();
        self.transact("revoke", move |connection| {
            let mut standing = find(connection, id)?;
            if standing.principal().tenant != by.tenant {
                return Err(Error::NoSuchStanding(id.0));
            }
            if standing.revoke(&by.principal, now) {
                let mut update = connection.prepare_cached(
                    "UPDATE standing_approvals SET revoked_at = ?2, body = ?3 WHERE id = ?1",
                )?;
                update.execute((id.0, now.as_microseconds(), to_json(&standing)?))?;
                STANDING.seal(connection, id.0)?;
            }
            Ok(standing)
        })
    }
}

fn is_in_force(standing: &StandingApproval, at: Timestamp) -> bool {
    let is_expired = match standing.reach() {
        Reach::Run { .. } => false,
        Reach::Until { until } => at >= *until,
    };
    standing.revoked().is_none() && !is_expired
}

fn find(connection: &Database, id: StandingId) -> Result<StandingApproval, Error> {
    let mut select = connection.prepare_cached(&format!("{} WHERE id = ?1", STANDING.select()))?;
    let found = rows::first(select.query([id.0])?, |row| from_row(connection, row))?;
    let found = found.ok_or(Error::NoSuchStanding(id.0))?;
    Ok(found.standing)
}

fn from_row(connection: &Database, row: &Row<'_>) -> Result<StoredStanding, Error> {
    STANDING.check(&connection.evidence, row)?;
    let (id, body): (i64, String) = (row.get("id")?, row.get("body")?);
    let standing = serde_json::from_str(&body)
        .map_err(|error| Error::unreadable(format!("the standing approval {id}"), error))?;
    Ok(StoredStanding {
        id: StandingId(id),
        standing,
    })
}

fn to_json(standing: &StandingApproval) -> Result<String, Error> {
    serde_json::to_string(standing)
        .map_err(|error| Error::unreadable("the standing approval", error))
}
