//! The database schema and its migrations. Migrations are only ever added. Each runs once, in a
//! transaction that also increments the schema version.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Error;

const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_journal.sql"),
    include_str!("migrations/0002_approvals.sql"),
    include_str!("migrations/0003_logs.sql"),
    include_str!("migrations/0004_registry.sql"),
    include_str!("migrations/0005_servers.sql"),
    include_str!("migrations/0006_plans.sql"),
    include_str!("migrations/0007_memory.sql"),
    include_str!("migrations/0008_gaps.sql"),
    include_str!("migrations/0009_variants.sql"),
    include_str!("migrations/0010_purged_plans.sql"),
    include_str!("migrations/0011_memory_terms.sql"),
    include_str!("migrations/0012_memory_sources.sql"),
    include_str!("migrations/0013_resumable.sql"),
    include_str!("migrations/0014_refusals.sql"),
    include_str!("migrations/0015_files.sql"),
    include_str!("migrations/0016_evidence.sql"),
    include_str!("migrations/0017_answer_notices.sql"),
    include_str!("migrations/0018_serving.sql"),
    include_str!("migrations/0019_purged_recall.sql"),
    include_str!("migrations/0020_stops.sql"),
    include_str!("migrations/0021_chat.sql"),
    include_str!("migrations/0022_webhooks.sql"),
    include_str!("migrations/0023_durations.sql"),
    include_str!("migrations/0024_usage.sql"),
    include_str!("migrations/0025_retention.sql"),
    include_str!("migrations/0026_open_exchanges.sql"),
];

/// Marks the file as a Windlass database, for `file` and for the check below: "Wndl".
const APPLICATION_ID: i64 = 0x576e_646c;

/// Migrates the database to the current schema.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found == 0 && !is_empty(&transaction)? {
            return Err(Error::ForeignDatabase(path.to_owned()));
        }
        let id: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if found != 0 && id != APPLICATION_ID {
            return Err(Error::ForeignDatabase(path.to_owned()));
        }
        if found > known {
            return Err(Error::NewerDatabase {
                path: path.to_owned(),
                found,
                known,
            });
        }
        let next = usize::try_from(found).unwrap_or(usize::MAX);
        let pending = MIGRATIONS.get(next..).unwrap_or_default();
        // A new database has no data to convert, so one transaction is enough, with one wait for the disk.
        let (applied, version) = match found {
            0 => (pending, known),
            _ => (pending.get(..1).unwrap_or_default(), found + 1),
        };
        if applied.is_empty() {
            return Ok(());
        }
        for migration in applied {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
}

fn is_empty(connection: &Connection) -> Result<bool, Error> {
    let count: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(count == 0)
}
