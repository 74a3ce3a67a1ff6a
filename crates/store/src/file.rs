//! Files: those that runs were bound to, and those that tools of agents wrote. What follows from a change is
//! decided elsewhere.

use std::path::Path;

use rusqlite::{Connection, Row};
use serde_json::{Map, Value};
use windlass_spec::{RunId, Timestamp};

use crate::error::Error;
use crate::read::run_id;
use crate::rows;
use crate::store::Store;

/// A file as a run used or wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The digest of its content.
    pub digest: String,
    /// The run.
    pub run: RunId,
    /// When.
    pub at: Timestamp,
}

impl Store {
    /// The file as the latest run of a tenant used it, if one did.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn used_file(&self, tenant: &str, path: &Path) -> Result<Option<StoredFile>, Error> {
        let path = path.to_string_lossy();
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT digest, run, used_at FROM used_files WHERE tenant = ?1 AND path = ?2",
            )?;
            rows::first(select.query([tenant, &path])?, file_from_row)
        })
    }

    /// Records that a tool of a run is about to write a file, and waits for the disk.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn record_written_file(&self, path: &Path, file: &StoredFile) -> Result<(), Error> {
        let (path, file) = (path.to_string_lossy().into_owned(), file.clone());
        self.transact("written_file", move |connection| {
            let mut insert = connection.prepare_cached(
                "INSERT OR REPLACE INTO written_files (path, digest, run, written_at)
                 VALUES (?1, ?2, ?3, ?4)",
            )?;
            let at = file.at.as_microseconds();
            insert.execute((&path, &file.digest, file.run.as_str(), at))?;
            Ok(())
        })
    }

    /// Whether tools wrote files that no user has accepted since.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn has_written_files(&self) -> Result<bool, Error> {
        self.readers.read(|connection| {
            let mut select =
                connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM written_files)")?;
            Ok(select.query_row([], |row| row.get(0))?)
        })
    }

    /// What a tool wrote to this path, or wrote elsewhere with this content, if no user has accepted it since.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn written_file(&self, path: &Path, digest: &str) -> Result<Option<StoredFile>, Error> {
        let path = path.to_string_lossy();
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT digest, run, written_at FROM written_files
                 WHERE path = ?1 OR (digest = ?2 AND ?2 != '')
                 ORDER BY path = ?1 DESC, written_at DESC",
            )?;
            rows::first(select.query([&path, digest])?, file_from_row)
        })
    }

    /// Forgets that tools wrote these files, each with the digest of its content: a user has accepted them.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn accept_written_files(&self, files: Vec<(String, String)>) -> Result<(), Error> {
        self.transact("written_file", move |connection| {
            let mut delete = connection.prepare_cached(
                "DELETE FROM written_files WHERE path = ?1 OR (digest = ?2 AND ?2 != '')",
            )?;
            for (path, digest) in &files {
                delete.execute([path, digest])?;
            }
            Ok(())
        })
    }
}

/// The files that a run was bound to, each with the digest of its content.
pub(crate) fn files_of(assembly: &Map<String, Value>) -> Vec<(String, String)> {
    let binding = assembly.get("binding");
    let lists = ["agent_file", "files"].map(|name| binding.and_then(|binding| binding.get(name)));
    let files = lists.into_iter().flatten().filter_map(Value::as_object);
    files
        .flatten()
        .filter_map(|(path, digest)| Some((path.clone(), digest.as_str()?.to_owned())))
        .collect()
}

/// Stores that a run uses these files.
pub(crate) fn record_used(
    connection: &Connection,
    files: &[(String, String)],
    tenant: &str,
    run: &RunId,
    at: i64,
) -> Result<(), Error> {
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO used_files (tenant, path, digest, run, used_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (path, digest) in files {
        insert.execute((tenant, path, digest, run.as_str(), at))?;
    }
    Ok(())
}

fn file_from_row(row: &Row<'_>) -> Result<StoredFile, Error> {
    Ok(StoredFile {
        digest: row.get(0)?,
        run: run_id(row.get(1)?)?,
        at: Timestamp::from_microseconds(row.get(2)?),
    })
}
