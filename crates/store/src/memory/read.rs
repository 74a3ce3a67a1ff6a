//! Reading stored documents: by id, as lists, their texts, statistics.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use windlass_spec::Timestamp;

use super::document::{MemoryScope, ScopeReach, StoredDocument};
use super::error::MemoryError;
use super::split::JoinedText;
use super::{Memory, describe_embedder};
use crate::Error;

const SELECT: &str = "SELECT d.number, d.id, s.kind, s.value, d.title, d.source, d.digest, d.bytes,
    (SELECT count(*) FROM memory_chunks c WHERE c.document = d.number), d.tainted, d.created_at,
    d.updated_at, d.metadata
    FROM memory_documents d JOIN memory_scopes s ON s.id = d.scope ";

/// The length of a whole id.
const ID_LENGTH: usize = "doc-".len() + 20;

/// The minimum length of an id prefix. A shorter prefix could match a document by accident.
const MIN_ID_PREFIX: usize = "doc-".len() + 6;

/// A scope in which a document was stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownScope {
    pub(super) id: i64,
    pub(super) chunks: i64,
    pub(super) words: i64,
    pub(super) change: i64,
}

/// The size of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScopeStatistics {
    /// The scope.
    pub scope: ScopeReach,
    /// How many documents.
    pub documents: u64,
    /// How many of them are tainted.
    pub tainted: u64,
    /// How many chunks.
    pub chunks: u64,
    /// How many bytes of text.
    pub bytes: u64,
}

/// The size of the memory of a principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryStatistics {
    /// The embedder that made the vectors; none if no document was ever stored.
    pub embedder: Option<String>,
    /// Whether all vectors were made by that embedder.
    pub is_whole: bool,
    /// Each scope that is not empty.
    pub scopes: Vec<ScopeStatistics>,
    /// The size of the whole database.
    pub database_bytes: u64,
}

impl Memory {
    /// The document in one of these scopes whose id is `id`, or the only one whose id begins with it.
    ///
    /// # Errors
    /// If there is none, or several, or the prefix is too short.
    pub fn document(
        &self,
        scopes: &[MemoryScope],
        id: &str,
    ) -> Result<StoredDocument, MemoryError> {
        let prefix = id.trim();
        if prefix.chars().count() < MIN_ID_PREFIX {
            return Err(MemoryError::ShortId(prefix.to_owned()));
        }
        let mut found = self.store.readers.read(|connection| {
            let known = known_scopes(connection, scopes)?;
            // A whole id is looked up by index; a prefix is searched for.
            let exact = find_document(connection, prefix)?;
            let exact = exact.filter(|(_, scope)| known.iter().any(|known| known.id == *scope));
            if let Some((number, _)) = exact {
                let query = format!("{SELECT} WHERE d.number = ?1");
                let mut select = connection.prepare_cached(&query)?;
                let mut rows = select.query([number])?;
                let row = rows.next()?;
                return Ok(row
                    .map(document_from_row)
                    .transpose()?
                    .into_iter()
                    .collect());
            }
            if prefix.len() >= ID_LENGTH {
                return Ok(Vec::new());
            }
            let mut found = Vec::new();
            for scope in known {
                let query =
                    format!("{SELECT} WHERE d.scope = ?1 AND substr(d.id, 1, ?3) = ?2 LIMIT 2");
                let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
                let mut select = connection.prepare_cached(&query)?;
                let mut rows = select.query(params![scope.id, prefix, length])?;
                while let Some(row) = rows.next()? {
                    found.push(document_from_row(row)?);
                }
            }
            Ok(found)
        })?;
        let last = found.pop().map(|(_, document)| document);
        match (last, found.is_empty()) {
            (Some(document), true) => Ok(document),
            (Some(_), false) => Err(MemoryError::SeveralDocuments(prefix.to_owned())),
            (None, _) => Err(MemoryError::NoSuchDocument(prefix.to_owned())),
        }
    }

    /// The documents of these scopes, the latest first, at most `limit`, without the first `skip`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn documents(
        &self,
        scopes: &[MemoryScope],
        skip: usize,
        limit: usize,
    ) -> Result<Vec<StoredDocument>, MemoryError> {
        let wanted = i64::try_from(skip.saturating_add(limit)).unwrap_or(i64::MAX);
        let mut found = self.store.readers.read(|connection| {
            let mut found = Vec::new();
            for scope in known_scopes(connection, scopes)? {
                let query = format!(
                    "{SELECT} WHERE d.scope = ?1 ORDER BY d.updated_at DESC, d.number DESC LIMIT ?2"
                );
                let mut select = connection.prepare_cached(&query)?;
                let mut rows = select.query([scope.id, wanted])?;
                while let Some(row) = rows.next()? {
                    found.push(document_from_row(row)?);
                }
            }
            Ok(found)
        })?;
        found.sort_by(|left, right| {
            let key = |(number, document): &(i64, StoredDocument)| (document.updated_at, *number);
            key(right).cmp(&key(left))
        });
        let wanted = found.into_iter().skip(skip).take(limit);
        Ok(wanted.map(|(_, document)| document).collect())
    }

    /// The whole text of a document of one of these scopes.
    ///
    /// # Errors
    /// If there is no such document, or it cannot be read.
    pub fn text(&self, scopes: &[MemoryScope], id: &str) -> Result<String, MemoryError> {
        let document = self.document(scopes, id)?;
        let text = self.store.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT c.begins, c.text FROM memory_chunks c
                 JOIN memory_documents d ON d.number = c.document WHERE d.id = ?1 ORDER BY c.place",
            )?;
            let mut rows = select.query([&document.id])?;
            let mut joined = JoinedText::default();
            while let Some(row) = rows.next()? {
                let (begins, text): (i64, String) = (row.get(0)?, row.get(1)?);
                if !usize::try_from(begins).is_ok_and(|begins| joined.add(begins, &text)) {
                    let place = format!("the document `{}`", document.id);
                    return Err(Error::unreadable(place, "its chunks leave a gap"));
                }
            }
            Ok(joined.into_text())
        })?;
        match text.is_empty() {
            true => Err(MemoryError::NoSuchDocument(id.to_owned())),
            false => Ok(text),
        }
    }

    /// The size of the memory of a principal of a tenant.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn statistics(
        &self,
        tenant: &str,
        principal: &str,
    ) -> Result<MemoryStatistics, MemoryError> {
        let statistics = self.store.readers.read(|connection| {
            let mut select = connection
                .prepare_cached("SELECT embedder, dimension, is_whole FROM memory_settings")?;
            let settings: Option<(String, i64, bool)> = select
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let mut select = connection.prepare_cached(
                "SELECT s.kind, s.value, count(*), sum(d.tainted), s.chunks, sum(d.bytes)
                 FROM memory_scopes s JOIN memory_documents d ON d.scope = s.id
                 WHERE s.tenant = ?1 AND s.principal = ?2 GROUP BY s.id ORDER BY s.kind, s.value",
            )?;
            let mut rows = select.query([tenant, principal])?;
            let mut scopes = Vec::new();
            while let Some(row) = rows.next()? {
                let kind: String = row.get(0)?;
                scopes.push(ScopeStatistics {
                    scope: reach(&kind, row.get(1)?)?,
                    documents: count(row.get(2)?),
                    tainted: count(row.get(3)?),
                    chunks: count(row.get(4)?),
                    bytes: count(row.get(5)?),
                });
            }
            let database_bytes: i64 = connection.query_row(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
                [],
                |row| row.get(0),
            )?;
            Ok(MemoryStatistics {
                is_whole: settings.as_ref().is_none_or(|(_, _, is_whole)| *is_whole),
                embedder: settings.map(|(name, dimension, _)| describe_embedder(&name, dimension)),
                scopes,
                database_bytes: count(database_bytes),
            })
        })?;
        Ok(statistics)
    }

    /// All scopes of a principal of a tenant that are not empty.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn scopes(&self, tenant: &str, principal: &str) -> Result<Vec<MemoryScope>, MemoryError> {
        let known = self.statistics(tenant, principal)?.scopes;
        Ok(known
            .into_iter()
            .map(|known| MemoryScope::new(tenant, principal, known.scope))
            .collect())
    }
}

/// The number of a document and of its scope.
pub(super) fn find_document(
    connection: &Connection,
    id: &str,
) -> Result<Option<(i64, i64)>, Error> {
    let mut select =
        connection.prepare_cached("SELECT number, scope FROM memory_documents WHERE id = ?1")?;
    Ok(select
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

/// The stored row of a scope; `None` if no document was ever stored in it.
pub(super) fn known_scope(
    connection: &Connection,
    scope: &MemoryScope,
) -> Result<Option<KnownScope>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT id, chunks, words, change FROM memory_scopes
         WHERE tenant = ?1 AND principal = ?2 AND kind = ?3 AND value = ?4",
    )?;
    let reach = &scope.reach;
    let values = params![scope.tenant, scope.principal, reach.kind(), reach.value()];
    let known = select.query_row(values, |row| {
        Ok(KnownScope {
            id: row.get(0)?,
            chunks: row.get(1)?,
            words: row.get(2)?,
            change: row.get(3)?,
        })
    });
    Ok(known.optional()?)
}

/// The scopes in which a document was stored, without duplicates.
pub(super) fn known_scopes(
    connection: &Connection,
    scopes: &[MemoryScope],
) -> Result<Vec<KnownScope>, Error> {
    let mut known: Vec<KnownScope> = Vec::new();
    for scope in scopes {
        if let Some(found) = known_scope(connection, scope)?
            && known.iter().all(|other| other.id != found.id)
        {
            known.push(found);
        }
    }
    Ok(known)
}

pub(super) fn reach(kind: &str, value: String) -> Result<ScopeReach, Error> {
    ScopeReach::from_parts(kind, value)
        .map_err(|error| Error::unreadable("the scope of a memory", error))
}

fn document_from_row(row: &Row<'_>) -> Result<(i64, StoredDocument), Error> {
    let kind: String = row.get(2)?;
    let metadata: String = row.get(12)?;
    let document = StoredDocument {
        id: row.get(1)?,
        scope: reach(&kind, row.get(3)?)?,
        title: row.get(4)?,
        source: row.get(5)?,
        digest: row.get(6)?,
        bytes: count(row.get(7)?),
        chunks: count(row.get(8)?),
        tainted: row.get(9)?,
        created_at: Timestamp::from_microseconds(row.get(10)?),
        updated_at: Timestamp::from_microseconds(row.get(11)?),
        metadata: serde_json::from_str(&metadata)
            .map_err(|error| Error::unreadable("the metadata of a document", error))?,
    };
    Ok((row.get(0)?, document))
}

pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
