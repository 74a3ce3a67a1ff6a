//! Begins the evidence of a database: signs what is there when it is first opened with the key.
//!
//! Events of runs that have not ended are signed too, because such a run continues. Those of ended runs are left
//! unsigned, which the MAC of the run's row records. So no later run and no resumed one can pass as unsigned.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use windlass_keys::{JournalKey, hex, random_bytes, sha256};

use super::chain::sign_all;
use super::position;
use super::{
    APPROVALS, Authentication, Belonging, COMMANDS, Database, Evidence, HOLDS, LEGAL_HOLDS, RUNS,
    Record, STANDING, STOPS, SealedTable, TOKENS,
};
use crate::error::Error;
use crate::read::run_id;

/// Finds out how the rows of a database are authenticated, and signs those of an older one. Returns whether it did.
pub(crate) fn establish(
    connection: Connection,
    path: &Path,
    authentication: &Authentication,
) -> Result<(Database, bool), Error> {
    let with = |connection, evidence| Ok((Database::new(connection, Arc::new(evidence)), false));
    let found = StoredEvidence::read(&connection)?;
    match (authentication, found) {
        (Authentication::None, None) => with(connection, Evidence::Off),
        (Authentication::None, Some(_)) => with(connection, Evidence::Unchecked),
        (Authentication::Unusable(reason), _) => {
            let error = Error::KeyUnusable(reason.clone());
            with(connection, Evidence::Refused(error))
        }
        (Authentication::Key(key), Some(found)) => {
            let evidence = found.evidence(key, path)?;
            with(connection, evidence)
        }
        (Authentication::Key(key), None) => {
            if has_rows(&connection)? && key.knows_journal(path)? {
                let place = format!("the evidence of `{}`", path.display());
                let error = Error::altered(place, "it was removed");
                return with(connection, Evidence::Refused(error));
            }
            let database = begin(connection, key)?;
            key.remember_journal(path)?;
            Ok((database, true))
        }
    }
}

/// The row that says with which key the rows are authenticated.
struct StoredEvidence {
    journal: String,
    key_id: String,
    mac: Vec<u8>,
}

impl StoredEvidence {
    fn read(connection: &Connection) -> Result<Option<Self>, Error> {
        let found = connection.query_row("SELECT journal, key_id, mac FROM evidence", [], |row| {
            Ok(Self {
                journal: row.get(0)?,
                key_id: row.get(1)?,
                mac: row.get(2)?,
            })
        });
        Ok(found.optional()?)
    }

    fn evidence(&self, key: &JournalKey, path: &Path) -> Result<Evidence, Error> {
        if self.key_id != key.id() {
            return Ok(Evidence::Refused(Error::KeyUnusable(format!(
                "`{}` is authenticated with the key {}, and this installation has the key {}",
                path.display(),
                self.key_id,
                key.id()
            ))));
        }
        let record = evidence_record(&self.journal, &self.key_id).0;
        if !key.is_authentic(&record, &self.mac) {
            let place = format!("the evidence of `{}`", path.display());
            return Ok(Evidence::Refused(Error::altered(
                place,
                super::foreign(false),
            )));
        }
        if !key.knows_journal(path)? {
            key.remember_journal(path)?;
        }
        Ok(Evidence::On(derived(key, &self.journal)))
    }
}

fn evidence_record(journal: &str, key_id: &str) -> Record {
    Record::new("evidence")
        .text("journal", journal)
        .text("key_id", key_id)
}

/// The key of one journal, so that no row of another one fits.
fn derived(key: &JournalKey, journal: &str) -> JournalKey {
    key.derive(&format!("windlass journal {journal}"))
}

fn has_rows(connection: &Connection) -> Result<bool, Error> {
    let query = "SELECT EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM standing_approvals)
                     OR EXISTS (SELECT 1 FROM admin_changes)
                     OR EXISTS (SELECT 1 FROM tokens)";
    Ok(connection.query_row(query, [], |row| row.get(0))?)
}

/// Signs what is in a database, in one transaction.
fn begin(connection: Connection, key: &JournalKey) -> Result<Database, Error> {
    let random = random_bytes()?;
    let journal = hex::encode(random.get(..16).unwrap_or_default());
    let evidence = Evidence::On(derived(key, &journal));
    let database = Database::new(connection, Arc::new(evidence));
    database.execute_batch("BEGIN IMMEDIATE")?;
    let signed = sign_database(&database, key, &journal);
    if signed.is_err() && !database.is_autocommit() {
        let _ = database.execute_batch("ROLLBACK");
    }
    signed?;
    database.execute_batch("COMMIT")?;
    Ok(database)
}

fn sign_database(database: &Database, key: &JournalKey, journal: &str) -> Result<(), Error> {
    let mac = key.authenticate(&evidence_record(journal, key.id()).0);
    database.execute(
        "INSERT INTO evidence (only_row, journal, key_id, mac) VALUES (1, ?1, ?2, ?3)",
        (journal, key.id(), mac),
    )?;
    for belonging in Belonging::ALL {
        let (column, table) = (belonging.column(), belonging.table().name);
        database.execute_batch(&format!(
            "UPDATE runs SET {column} = counted.number
             FROM (SELECT run, count(*) AS number FROM {table} GROUP BY run) AS counted
             WHERE counted.run = runs.run"
        ))?;
    }
    database.execute_batch(
        "UPDATE runs SET last_event = found.last, unsigned_events = found.last
         FROM (SELECT runs.run AS run, coalesce(max(seq), 0) AS last
               FROM runs LEFT JOIN events ON events.run = runs.run GROUP BY runs.run) AS found
         WHERE found.run = runs.run",
    )?;
    sign_open_runs(database)?;
    sign_bodies(database)?;
    for table in [
        &APPROVALS,
        &HOLDS,
        &COMMANDS,
        &STANDING,
        &TOKENS,
        &STOPS,
        &LEGAL_HOLDS,
        &RUNS,
    ] {
        seal_all(database, table)?;
    }
    crate::admin::sign_all(database)?;
    position::begin(database)
}

/// Signs the events of the runs that have not ended.
fn sign_open_runs(database: &Database) -> Result<(), Error> {
    let mut select = database.prepare("SELECT run FROM runs WHERE state <> 'ended'")?;
    let runs = select.query_map([], |row| row.get(0))?;
    let runs: Vec<String> = runs.collect::<Result<_, _>>()?;
    let mut update = database.prepare("UPDATE runs SET head = ?2 WHERE run = ?1")?;
    for run in runs {
        let head = sign_all(database, &run_id(run.clone())?)?;
        update.execute((run, head))?;
    }
    Ok(())
}

/// Adds the digests of the bodies of commands.
fn sign_bodies(database: &Database) -> Result<(), Error> {
    let mut select = database.prepare("SELECT id, body FROM mailbox WHERE body IS NOT NULL")?;
    let bodies = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let bodies: Vec<(i64, String)> = bodies.collect::<Result<_, _>>()?;
    let mut update = database.prepare("UPDATE mailbox SET digest = ?2 WHERE id = ?1")?;
    for (id, body) in bodies {
        update.execute((id, sha256(body.as_bytes())))?;
    }
    Ok(())
}

fn seal_all(database: &Database, table: &SealedTable) -> Result<(), Error> {
    let mut select = database.prepare(&format!("SELECT rowid FROM {}", table.name))?;
    let rows = select.query_map([], |row| row.get(0))?;
    let rows: Vec<i64> = rows.collect::<Result<_, _>>()?;
    rows.into_iter()
        .try_for_each(|row| table.seal(database, row))
}
