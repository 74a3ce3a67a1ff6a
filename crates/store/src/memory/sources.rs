//! The sources of documents. The same text may come from several sources. It is still one document, and it
//! stays as long as one of its sources has it.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::approval::Digest;

use super::Memory;
use super::document::{MemoryScope, NewDocument};
use super::error::MemoryError;
use super::write::remove;
use crate::Error;

/// The stored source of a document without one.
const NONE: &str = "";

impl Memory {
    /// The id of the document with this text, if storing it again would change nothing but its time. That is, it
    /// already has this source and, if it replaces its source, no other document has that source.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn unchanged(
        &self,
        scope: &MemoryScope,
        new: &NewDocument,
    ) -> Result<Option<String>, MemoryError> {
        let redactor = &self.store.redactor;
        let text = redactor.text(new.text.trim());
        let source = new.source.as_deref().map(|source| redactor.text(source));
        let source = source.as_deref().unwrap_or(NONE);
        let id = scope.document_id(Digest::of_json(&text.as_str().into()));
        let replaces = new.replaces_source && source != NONE;
        let is_unchanged = self.store.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT (d.tainted OR NOT ?4)
                     AND EXISTS (SELECT 1 FROM memory_sources
                         WHERE scope = d.scope AND source = ?2 AND document = d.number)
                     AND NOT (?3 AND EXISTS (SELECT 1 FROM memory_sources
                         WHERE scope = d.scope AND source = ?2 AND document <> d.number))
                 FROM memory_documents d WHERE d.id = ?1",
            )?;
            let values = params![id, source, replaces, new.is_tainted];
            let found: Option<bool> = select.query_row(values, |row| row.get(0)).optional()?;
            Ok(found.unwrap_or_default())
        })?;
        Ok(is_unchanged.then_some(id))
    }
}

/// Records that a document came from a source, with its title there.
pub(super) fn add_source(
    connection: &Connection,
    scope: i64,
    document: i64,
    new: &NewDocument,
) -> Result<(), Error> {
    let source = new.source.as_deref().unwrap_or(NONE);
    connection
        .prepare_cached(
            "INSERT INTO memory_sources (scope, source, document, title) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![scope, source, document, new.title])?;
    Ok(())
}

/// Removes a source from all documents that have it, except `present`. Documents without another source are
/// deleted. Returns whether there were any.
pub(super) fn remove_source(
    connection: &Connection,
    scope: i64,
    source: &str,
    present: Option<i64>,
) -> Result<bool, Error> {
    let mut documents = documents_of(connection, scope, source)?;
    documents.retain(|document| Some(*document) != present);
    for &document in &documents {
        connection
            .prepare_cached(
                "DELETE FROM memory_sources WHERE scope = ?1 AND source = ?2 AND document = ?3",
            )?
            .execute(params![scope, source, document])?;
        match another_source(connection, document)? {
            None => remove(connection, document, scope)?,
            Some((other, title)) => {
                connection
                    .prepare_cached(
                        "UPDATE memory_documents SET source = nullif(?3, ''), title = ?4
                         WHERE number = ?1 AND source = ?2",
                    )?
                    .execute(params![document, source, other, title])?;
            }
        }
    }
    Ok(!documents.is_empty())
}

/// Another source of a document, with its title there. A named source comes before the unnamed one.
fn another_source(
    connection: &Connection,
    document: i64,
) -> Result<Option<(String, Option<String>)>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT source, title FROM memory_sources WHERE document = ?1
         ORDER BY source = '', source LIMIT 1",
    )?;
    let found = select.query_row([document], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

fn documents_of(connection: &Connection, scope: i64, source: &str) -> Result<Vec<i64>, Error> {
    let mut select = connection
        .prepare_cached("SELECT document FROM memory_sources WHERE scope = ?1 AND source = ?2")?;
    let rows = select.query_map(params![scope, source], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
