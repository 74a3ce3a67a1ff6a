//! Keys of requests that start a run. A request that is repeated with its key starts no second run.

use rusqlite::{Connection, params};
use windlass_core::approval::TenantPrincipal;
use windlass_spec::{RunId, Timestamp};

use crate::error::Error;
use crate::read::run_id;
use crate::rows;
use crate::store::Store;

/// How long a key is known, in microseconds: 7 days.
const KEPT: i64 = 7 * 24 * 3_600 * 1_000_000;

/// What is known of the key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// The id of the run that the request starts. The run may not exist yet.
    pub run: RunId,
    /// The digest of what was requested with the key.
    pub digest: [u8; 32],
}

impl Store {
    /// The run that a request with this key starts: `new` for a key that is not known, whose request has this
    /// digest. Waits for the disk.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn reserve_request_key(
        &self,
        who: &TenantPrincipal,
        key: &str,
        new: &RequestKey,
        now: Timestamp,
    ) -> Result<RequestKey, Error> {
        let (tenant, principal) = (who.tenant.to_string(), who.principal.to_string());
        let (key, new, now) = (key.to_owned(), new.clone(), now.as_microseconds());
        self.transact("request_key", move |database| {
            let mut delete = database.prepare_cached("DELETE FROM request_keys WHERE at < ?1")?;
            delete.execute([now.saturating_sub(KEPT)])?;
            let mut insert = database.prepare_cached(
                "INSERT OR IGNORE INTO request_keys (tenant, principal, key, digest, run, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            insert.execute(params![
                tenant,
                principal,
                key,
                new.digest,
                new.run.as_str(),
                now
            ])?;
            find(database, &tenant, &principal, &key)?.ok_or(Error::Closed)
        })
    }

    /// What is known of a key, if it is known.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn request_key(
        &self,
        who: &TenantPrincipal,
        key: &str,
    ) -> Result<Option<RequestKey>, Error> {
        self.readers
            .read(|database| find(database, who.tenant.as_str(), who.principal.as_str(), key))
    }
}

fn find(
    database: &Connection,
    tenant: &str,
    principal: &str,
    key: &str,
) -> Result<Option<RequestKey>, Error> {
    let mut select = database.prepare_cached(
        "SELECT run, digest FROM request_keys WHERE tenant = ?1 AND principal = ?2 AND key = ?3",
    )?;
    rows::first(select.query([tenant, principal, key])?, |row| {
        Ok(RequestKey {
            run: run_id(row.get(0)?)?,
            digest: row.get(1)?,
        })
    })
}
