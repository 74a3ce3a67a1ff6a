//! Opening the database: file permissions, durability settings, and the read-only connections, which
//! never wait for the writer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::Error;
use crate::evidence::position::{self, PositionFile};
use crate::evidence::{Database, Evidence, establish};
use crate::schema;
use crate::store::Options;

/// The default time a connection waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// The value of `auto_vacuum` that frees pages only on request.
const INCREMENTAL: i64 = 2;

/// How much of the write-ahead log is kept on disk when it is empty again.
const LOG_SIZE_LIMIT: i64 = 16 * 1024 * 1024;

/// Opens the database for writing, creates it if needed, and migrates it to the current schema.
pub(crate) fn open_writer(
    path: &Path,
    locks: &Path,
    options: &Options,
) -> Result<(Database, Option<PositionFile>), Error> {
    create_directory(path.parent().unwrap_or(Path::new(".")))?;
    create_directory(locks)?;
    // Turning on the write-ahead log and migrating are not safe in two processes at once.
    let lock_path = locks.join("store.lock");
    let lock = open_private(&lock_path)?;
    lock.lock()
        .map_err(|error| Error::file("lock", &lock_path, error))?;
    drop(open_private(path)?);
    for suffix in ["-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let name = Path::new(&name);
        // They are not opened: closing them would release the locks of other connections of this process.
        windlass_files::restrict(name).map_err(|error| Error::file("open", name, error))?;
    }
    let has_log = log_path(path).metadata().is_ok_and(|log| log.len() > 0);
    let mut connection = connect_writer(path)?;
    schema::migrate(&mut connection, path)?;
    if let Some(timeout) = options.lock_timeout {
        connection.busy_timeout(timeout)?;
    }
    if let Some(bytes) = options.max_bytes {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        connection.pragma_update_and_check(None, "max_page_count", pages.max(1), |_| Ok(()))?;
    }
    let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (database, is_new) = establish(connection, &place, &options.authentication)?;
    if !database.evidence.is_on() {
        return Ok((database, None));
    }
    let file = PositionFile::open(path)?;
    match position::examine(&database, &file, has_log, is_new) {
        Ok(()) => Ok((database, Some(file))),
        Err(error @ Error::Altered { .. }) => Ok((database.refused(error), None)),
        Err(error) => Err(error),
    }
}

/// The write-ahead log of a database.
fn log_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

/// Opens another connection that writes, for maintenance that cannot be part of a transaction.
pub(crate) fn connect_writer(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Lets a purge shrink the file. It takes effect only while the database is empty, and setting it again would
    // write a page, so that a command that only reads would wait for the disk.
    let auto_vacuum: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if auto_vacuum != INCREMENTAL {
        connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Purged data must be gone from the file, not just from the tables.
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_SIZE_LIMIT, |_| Ok(()))?;
    // Otherwise statements are planned again for every bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// The identity of the opened database file. A process that has a removed or replaced file open can still
/// write to it, and those writes are lost. So the writer checks the identity first.
pub(crate) struct DatabaseFile {
    path: PathBuf,
    #[cfg(unix)]
    identity: (u64, u64),
}

impl DatabaseFile {
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            #[cfg(unix)]
            identity: identity(path).map_err(|error| Error::file("find", path, error))?,
        })
    }

    /// Checks that the path still leads to the opened file.
    ///
    /// # Errors
    /// If the file was removed or replaced.
    pub(crate) fn check(&self) -> Result<(), Error> {
        #[cfg(unix)]
        if identity(&self.path).ok() != Some(self.identity) {
            return Err(Error::Gone(self.path.clone()));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// A pool of read-only connections.
pub(crate) struct Readers {
    path: PathBuf,
    evidence: Arc<Evidence>,
    idle: Mutex<Vec<Database>>,
}

impl Readers {
    /// How many idle connections are kept.
    const MAX_IDLE: usize = 8;

    pub(crate) fn new(path: PathBuf, evidence: Arc<Evidence>) -> Self {
        Self {
            path,
            evidence,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Calls `read` with a connection. Each statement in it sees one snapshot of the database.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Database) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Database::new(self.connect()?, Arc::clone(&self.evidence)),
        };
        let result = read(&connection);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < Self::MAX_IDLE {
            idle.push(connection);
        }
        result
    }

    pub(crate) fn connect(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    }
}

/// Opens a file that only its owner can read, and creates it if needed. The files that SQLite creates
/// next to its database get the same permissions.
pub(crate) fn open_private(path: &Path) -> Result<File, Error> {
    let mut options = windlass_files::options();
    options.read(true).write(true).create(true).truncate(false);
    windlass_files::open(&options, path).map_err(|error| Error::file("open", path, error))
}

fn create_directory(path: &Path) -> Result<(), Error> {
    windlass_files::create_directory(path)
        .map_err(|error| Error::file("create the directory", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_uses_wal_full_sync_and_foreign_keys() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let locks = directory.path().join("locks");
        let (writer, _) = open_writer(&path, &locks, &Options::default()).unwrap();
        let pragma = |name: &str| -> rusqlite::types::Value {
            writer
                .pragma_query_value(None, name, |row| row.get(0))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
        assert_eq!(pragma("synchronous"), 2.into());
        assert_eq!(pragma("foreign_keys"), 1.into());
        assert_eq!(pragma("secure_delete"), 1.into());
        assert_eq!(pragma("auto_vacuum"), 2.into());
    }

    #[test]
    fn opening_an_existing_database_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let open =
            || open_writer(&path, &directory.path().join("locks"), &Options::default()).unwrap();
        drop(open());
        let before = std::fs::read(&path).unwrap();
        let writer = open();
        let log = std::fs::metadata(directory.path().join("windlass.db-wal"));
        assert_eq!(log.unwrap().len(), 0, "nothing was logged");
        drop(writer);
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
