//! Opening the database: who may read the file, how safely it is written, and the connections that
//! only read, which never wait for the writer.

use std::fs::{DirBuilder, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::Error;
use crate::schema;
use crate::store::Options;

/// How long a connection waits for another process that writes, unless something else is said.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// How much of the write-ahead log is kept on disk when it is empty again.
const LOG_SIZE_LIMIT: i64 = 16 * 1024 * 1024;

/// Opens the database for writing, making it if there is none, in the present form.
pub(crate) fn open_writer(
    path: &Path,
    locks: &Path,
    options: &Options,
) -> Result<Connection, Error> {
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    make_directory(locks)?;
    // Turning on the write-ahead log and migrating are not made for two processes at once.
    let guard_path = locks.join("store.lock");
    let guard = open_private(&guard_path)?;
    guard
        .lock()
        .map_err(|error| Error::file("lock", &guard_path, error))?;
    drop(open_private(path)?);
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
    Ok(connection)
}

/// A further connection that writes, for upkeep that cannot be part of a transaction.
pub(crate) fn connect_writer(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Only heeded while the database is empty; lets a purge give its space back.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // What is purged must be gone from the file, not just from the tables.
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_SIZE_LIMIT, |_| Ok(()))?;
    // Otherwise statements are planned anew for every value they are given.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Which file was opened under a path. A file that is removed or replaced can still be written to by
/// who has it open, and what is written is lost; so whoever writes looks first.
pub(crate) struct Place {
    path: PathBuf,
    #[cfg(unix)]
    identity: (u64, u64),
}

impl Place {
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            #[cfg(unix)]
            identity: identity(path).map_err(|error| Error::file("find", path, error))?,
        })
    }

    /// # Errors
    /// If the file is not there any more.
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

/// Connections that only read, opened as needed and used again.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// How many connections are kept for the next reader.
    const KEPT: usize = 8;

    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Reads. What `read` sees in one statement is one moment of the database.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let result = read(&connection);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < Self::KEPT {
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

/// Opens a file that only its owner can read, making it if there is none. The files SQLite puts
/// beside its database get the same permissions.
pub(crate) fn open_private(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .map_err(|error| Error::file("open", path, error))
}

fn make_directory(path: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .map_err(|error| Error::file("make the directory", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_writes_ahead_in_full_and_minds_references() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let writer =
            open_writer(&path, &directory.path().join("locks"), &Options::default()).unwrap();
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
}
