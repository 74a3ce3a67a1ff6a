//! What administrators changed: trust, pins, configuration, approvers, retention. The changes of a tenant are one chain,
//! like the events of a run.

use rusqlite::Row;
use serde_json::Value;
use windlass_keys::Tag;
use windlass_spec::Timestamp;

use crate::error::Error;
use crate::evidence::{Database, Record, blob, foreign};
use crate::read::count;
use crate::rows;
use crate::store::Store;

/// What the first change follows.
const BEGINNING: Tag = [0; 32];

/// A change by an administrator.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminChange {
    /// What kind of change it is, such as `project_trusted`.
    pub kind: String,
    /// Who made it; `None` if no person did.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
    /// What was changed, with digests of what it was changed to.
    pub subject: Value,
}

/// A recorded change by an administrator.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedAdminChange {
    /// Its number in the chain of the tenant. The first one is 1.
    pub seq: u64,
    /// The change.
    pub change: AdminChange,
}

impl Store {
    /// Records a change by an administrator of a tenant, and waits for the disk. Returns its number.
    ///
    /// # Errors
    /// If it could not be stored, or the chain was changed.
    pub fn record_admin_change(&self, tenant: &str, change: &AdminChange) -> Result<u64, Error> {
        let body = self.redactor.json(&change.subject, &[])?;
        let (tenant, change) = (tenant.to_owned(), change.clone());
        self.transact("admin_change", move |database| {
            append(database, &tenant, &change, &body)
        })
    }

    /// The changes by administrators of a tenant, in order. Their chain is checked.
    ///
    /// # Errors
    /// If the chain was changed, or cannot be read.
    pub fn admin_changes(&self, tenant: &str) -> Result<Vec<RecordedAdminChange>, Error> {
        self.readers.read(|database| {
            let transaction = database.unchecked_transaction()?;
            let mut found = Vec::new();
            each(database, tenant, |row| {
                found.push(change_from_row(row)?);
                Ok(())
            })?;
            drop(transaction);
            Ok(found)
        })
    }

    /// The latest change of a kind by administrators of a tenant, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last_admin_change(
        &self,
        tenant: &str,
        kind: &str,
    ) -> Result<Option<RecordedAdminChange>, Error> {
        self.readers.read(|database| {
            let mut select = database.prepare_cached(&format!(
                "{SELECT} WHERE tenant = ?1 AND kind = ?2 ORDER BY seq DESC LIMIT 1"
            ))?;
            rows::first(select.query([tenant, kind])?, change_from_row)
        })
    }
}

/// Adds a change to the chain of a tenant. `body` is its subject without secrets. Returns its number.
pub(crate) fn append(
    database: &Database,
    tenant: &str,
    change: &AdminChange,
    body: &str,
) -> Result<u64, Error> {
    let before = Head::read(database, tenant)?;
    let row = ChangeRow {
        tenant,
        seq: before.last + 1,
        kind: &change.kind,
        by: change.by.as_deref(),
        at: change.at.as_microseconds(),
        body,
    };
    let mac = database.evidence.sign(&row.record(before.previous()));
    let mut insert = database.prepare_cached(
        "INSERT INTO admin_changes (tenant, seq, kind, changed_by, at, body, mac)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute(rusqlite::params![
        row.tenant, row.seq, row.kind, row.by, row.at, row.body, mac
    ])?;
    let head = Head {
        last: row.seq,
        head: mac.map(|mac| mac.to_vec()),
    };
    head.store(database, tenant)?;
    Ok(count(head.last))
}

const SELECT: &str = "SELECT seq, kind, changed_by, at, body, mac FROM admin_changes";

/// A change as it is stored.
struct ChangeRow<'r> {
    tenant: &'r str,
    seq: i64,
    kind: &'r str,
    by: Option<&'r str>,
    at: i64,
    body: &'r str,
}

impl ChangeRow<'_> {
    fn record(&self, previous: &[u8]) -> Record {
        let record = Record::new("admin_change")
            .text("tenant", self.tenant)
            .number("seq", self.seq)
            .text("kind", self.kind)
            .number("at", self.at)
            .text("body", self.body)
            .bytes("previous", previous);
        match self.by {
            Some(by) => record.text("by", by),
            None => record,
        }
    }
}

/// The end of a tenant's chain.
struct Head {
    last: i64,
    head: Option<Vec<u8>>,
}

impl Head {
    fn record(&self, tenant: &str) -> Record {
        Record::new("admin_head")
            .text("tenant", tenant)
            .number("last", self.last)
            .bytes("head", self.previous())
    }

    fn previous(&self) -> &[u8] {
        self.head.as_deref().unwrap_or(&BEGINNING)
    }

    fn read(database: &Database, tenant: &str) -> Result<Self, Error> {
        let mut select =
            database.prepare_cached("SELECT last, head, mac FROM admin_heads WHERE tenant = ?1")?;
        let mut rows = select.query([tenant])?;
        let Some(row) = rows.next()? else {
            let mut select = database
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM admin_changes WHERE tenant = ?1)")?;
            let has_changes: bool = select.query_row([tenant], |row| row.get(0))?;
            return match has_changes {
                true => Err(Error::altered(place(tenant), "its end is missing")),
                false => Ok(Self {
                    last: 0,
                    head: None,
                }),
            };
        };
        let head = Self {
            last: row.get(0)?,
            head: blob(row, 1)?.map(<[u8]>::to_vec),
        };
        let mac = blob(row, 2)?;
        database
            .evidence
            .check(&head.record(tenant), mac, || place(tenant))?;
        Ok(head)
    }

    fn store(&self, database: &Database, tenant: &str) -> Result<(), Error> {
        let mac = database.evidence.sign(&self.record(tenant));
        let mut insert = database.prepare_cached(
            "INSERT OR REPLACE INTO admin_heads (tenant, last, head, mac) VALUES (?1, ?2, ?3, ?4)",
        )?;
        insert.execute((tenant, self.last, &self.head, mac))?;
        Ok(())
    }
}

fn place(tenant: &str) -> String {
    format!("the record of changes by administrators of `{tenant}`")
}

/// Passes the rows of a chain to `take`, and checks them.
fn each(
    database: &Database,
    tenant: &str,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let head = Head::read(database, tenant)?;
    let mut select =
        database.prepare_cached(&format!("{SELECT} WHERE tenant = ?1 ORDER BY seq"))?;
    let mut rows = select.query([tenant])?;
    let mut previous = BEGINNING.to_vec();
    let mut next = 1;
    let altered = |seq: i64, reason: &str| {
        Error::altered(
            format!("change {seq} by an administrator of `{tenant}`"),
            reason,
        )
    };
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        if seq != next {
            return Err(altered(next, "it is missing"));
        }
        let (kind, by, body): (String, Option<String>, String) =
            (row.get(1)?, row.get(2)?, row.get(4)?);
        let record = ChangeRow {
            tenant,
            seq,
            kind: &kind,
            by: by.as_deref(),
            at: row.get(3)?,
            body: &body,
        };
        let mac = blob(row, 5)?;
        if !database
            .evidence
            .is_authentic(&record.record(&previous), mac)?
        {
            return Err(altered(seq, foreign(mac.is_none())));
        }
        previous = mac.unwrap_or(&BEGINNING).to_vec();
        take(row)?;
        next += 1;
    }
    match next == head.last + 1 && (previous == head.previous() || !database.evidence.is_on()) {
        true => Ok(()),
        false => Err(altered(next, "it is missing")),
    }
}

/// Checks all chains, and returns the errors.
pub(crate) fn check_all(database: &Database) -> Result<Vec<Error>, Error> {
    let mut select = database.prepare(
        "SELECT DISTINCT tenant FROM admin_changes UNION SELECT tenant FROM admin_heads",
    )?;
    let tenants = select.query_map([], |row| row.get(0))?;
    let tenants: Vec<String> = tenants.collect::<Result<_, _>>()?;
    let checked = tenants
        .iter()
        .filter_map(|tenant| each(database, tenant, |_| Ok(())).err());
    Ok(checked.collect())
}

/// Signs the changes that were recorded without a key.
pub(crate) fn sign_all(database: &Database) -> Result<(), Error> {
    let mut select = database.prepare(
        "SELECT tenant, seq, kind, changed_by, at, body FROM admin_changes ORDER BY tenant, seq",
    )?;
    let mut update =
        database.prepare("UPDATE admin_changes SET mac = ?3 WHERE tenant = ?1 AND seq = ?2")?;
    let mut rows = select.query([])?;
    let mut heads: Vec<(String, Head)> = Vec::new();
    let mut signed = Vec::new();
    while let Some(row) = rows.next()? {
        let (tenant, kind, body): (String, String, String) =
            (row.get(0)?, row.get(2)?, row.get(5)?);
        let by: Option<String> = row.get(3)?;
        if heads.last().is_none_or(|(last, _)| *last != tenant) {
            let head = Head {
                last: 0,
                head: None,
            };
            heads.push((tenant.clone(), head));
        }
        let Some((_, head)) = heads.last_mut() else {
            continue;
        };
        let change = ChangeRow {
            tenant: &tenant,
            seq: row.get(1)?,
            kind: &kind,
            by: by.as_deref(),
            at: row.get(4)?,
            body: &body,
        };
        let seq = change.seq;
        let mac = database.evidence.sign(&change.record(head.previous()));
        *head = Head {
            last: seq,
            head: mac.map(|mac| mac.to_vec()),
        };
        signed.push((tenant, seq, mac));
    }
    drop(rows);
    for change in signed {
        update.execute(change)?;
    }
    heads
        .iter()
        .try_for_each(|(tenant, head)| head.store(database, tenant))
}

fn change_from_row(row: &Row<'_>) -> Result<RecordedAdminChange, Error> {
    let seq: i64 = row.get(0)?;
    let body: String = row.get(4)?;
    let subject = serde_json::from_str(&body)
        .map_err(|error| Error::unreadable(format!("change {seq} by an administrator"), error))?;
    Ok(RecordedAdminChange {
        seq: count(seq),
        change: AdminChange {
            kind: row.get(1)?,
            by: row.get(2)?,
            at: Timestamp::from_microseconds(row.get(3)?),
            subject,
        },
    })
}
