//! Access tokens: stored by their digest, found by it, and revoked. Who may create one is decided elsewhere.

use rusqlite::{Row, params};
use windlass_spec::Timestamp;

use crate::error::Error;
use crate::evidence::{Database, TOKENS};
use crate::rows;
use crate::store::Store;

/// The digest of a token.
pub type TokenDigest = [u8; 32];

/// An access token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Its id, which is no secret.
    pub id: String,
    /// The tenant of its holder.
    pub tenant: String,
    /// The principal that its holder acts as.
    pub principal: String,
    /// What it is called.
    pub name: String,
    /// The names of its scopes.
    pub scopes: Vec<String>,
    /// Who created it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When it expires; `None` if it does not.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Who revoked it.
    pub revoked_by: Option<String>,
}

impl Store {
    /// Stores a new token with its digest, and waits for the disk.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn add_token(&self, token: &StoredToken, digest: TokenDigest) -> Result<(), Error> {
        let token = token.clone();
        self.transact("token", move |database| {
            let mut insert = database.prepare_cached(
                "INSERT INTO tokens (id, digest, tenant, principal, name, scopes, created_by, created_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?;
            insert.execute(params![
                token.id,
                digest,
                token.tenant,
                token.principal,
                token.name,
                token.scopes.join(" "),
                token.created_by,
                token.created_at.as_microseconds(),
                token.expires_at.map(Timestamp::as_microseconds),
            ])?;
            TOKENS.seal(database, database.last_insert_rowid())
        })
    }

    /// The token with that digest, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, or its row was changed outside Windlass.
    pub fn token_by_digest(&self, digest: &TokenDigest) -> Result<Option<StoredToken>, Error> {
        self.readers.read(|database| {
            let mut select =
                database.prepare_cached(&format!("{} WHERE digest = ?1", TOKENS.select()))?;
            rows::first(select.query([digest])?, |row| from_row(database, row))
        })
    }

    /// All tokens, also revoked ones, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read, or a row was changed outside Windlass.
    pub fn tokens(&self) -> Result<Vec<StoredToken>, Error> {
        self.readers.read(|database| {
            let mut select =
                database.prepare_cached(&format!("{} ORDER BY created_at, id", TOKENS.select()))?;
            rows::all(select.query([])?, |row| from_row(database, row))
        })
    }

    /// Revokes a token and returns it. One that was revoked before stays unchanged. `None` if there is none
    /// with that id.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn revoke_token(
        &self,
        id: &str,
        by: &str,
        now: Timestamp,
    ) -> Result<Option<StoredToken>, Error> {
        let (id, by) = (id.to_owned(), by.to_owned());
        self.transact("token", move |database| {
            let find = || -> Result<Option<(StoredToken, i64)>, Error> {
                let mut select =
                    database.prepare_cached(&format!("{} WHERE id = ?1", TOKENS.select()))?;
                rows::first(select.query([&id])?, |row| {
                    Ok((from_row(database, row)?, row.get("rowid")?))
                })
            };
            let Some((token, row)) = find()? else {
                return Ok(None);
            };
            if token.revoked_at.is_some() {
                return Ok(Some(token));
            }
            let mut update = database.prepare_cached(
                "UPDATE tokens SET revoked_at = ?2, revoked_by = ?3 WHERE id = ?1",
            )?;
            update.execute(params![id, now.as_microseconds(), by])?;
            TOKENS.seal(database, row)?;
            Ok(find()?.map(|(token, _)| token))
        })
    }
}

fn from_row(database: &Database, row: &Row<'_>) -> Result<StoredToken, Error> {
    TOKENS.check(&database.evidence, row)?;
    let time = |column: &str| -> Result<Option<Timestamp>, Error> {
        let time: Option<i64> = row.get(column)?;
        Ok(time.map(Timestamp::from_microseconds))
    };
    let scopes: String = row.get("scopes")?;
    Ok(StoredToken {
        id: row.get("id")?,
        tenant: row.get("tenant")?,
        principal: row.get("principal")?,
        name: row.get("name")?,
        scopes: scopes.split_whitespace().map(str::to_owned).collect(),
        created_by: row.get("created_by")?,
        created_at: Timestamp::from_microseconds(row.get("created_at")?),
        expires_at: time("expires_at")?,
        revoked_at: time("revoked_at")?,
        revoked_by: row.get("revoked_by")?,
    })
}
