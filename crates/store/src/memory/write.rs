//! Writing to memory: a document is stored or removed in one transaction, with its chunks, words and
//! vectors.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::approval::Digest;
use windlass_embed::{CompactVector, Embedder, search_words};

use super::document::{MemoryScope, NewDocument, RememberOutcome, RememberedDocument, check_text};
use super::error::MemoryError;
use super::read::find_document;
use super::sources::{add_source, remove_source};
use super::split::split;
use super::words::terms;
use super::{Memory, describe_embedder};
use crate::Error;
use windlass_core::redact::Redactor;

/// A chunk, ready to be stored.
struct Chunk {
    begins: usize,
    text: String,
    words: Vec<String>,
    compact: Vec<u8>,
    exact: Vec<u8>,
}

/// A document, ready to be stored. Slow work such as embedding is done, so that the writer thread has
/// little to do.
struct PreparedDocument {
    id: String,
    scope: MemoryScope,
    new: NewDocument,
    digest: String,
    metadata: String,
    chunks: Vec<Chunk>,
}

/// Identifies the embedder that makes the vectors.
#[derive(Clone)]
pub(super) struct EmbedderIdentity {
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) dimension: i64,
}

impl EmbedderIdentity {
    pub(super) fn of(embedder: &dyn Embedder) -> Self {
        Self {
            name: embedder.name().to_owned(),
            fingerprint: embedder.fingerprint().to_string(),
            dimension: i64::try_from(embedder.dimension()).unwrap_or(i64::MAX),
        }
    }

    /// The generation of the vectors, if this embedder made them; `None` if there are none.
    pub(super) fn generation(
        &self,
        connection: &Connection,
    ) -> Result<Result<Option<i64>, MemoryError>, Error> {
        let mut select = connection.prepare_cached(
            "SELECT embedder, fingerprint, dimension, generation, is_whole FROM memory_settings",
        )?;
        let found = select
            .query_row([], |row| {
                let name: String = row.get(0)?;
                let fingerprint: String = row.get(1)?;
                let dimension: i64 = row.get(2)?;
                let generation: i64 = row.get(3)?;
                let is_whole: bool = row.get(4)?;
                Ok((name, fingerprint, dimension, generation, is_whole))
            })
            .optional()?;
        let Some((name, fingerprint, dimension, generation, is_whole)) = found else {
            return Ok(Ok(None));
        };
        Ok(if !is_whole {
            Err(MemoryError::Reembedding(describe_embedder(
                &name, dimension,
            )))
        } else if fingerprint != self.fingerprint || dimension != self.dimension {
            Err(MemoryError::OtherEmbedder {
                kept: describe_embedder(&name, dimension),
                given: describe_embedder(&self.name, self.dimension),
            })
        } else {
            Ok(Some(generation))
        })
    }

    /// Like `generation`, but stores this embedder if there is none yet.
    fn generation_or_first(
        &self,
        connection: &Connection,
    ) -> Result<Result<i64, MemoryError>, Error> {
        Ok(match self.generation(connection)? {
            Ok(Some(generation)) => Ok(generation),
            Ok(None) => {
                connection.execute(
                    "INSERT INTO memory_settings (id, embedder, fingerprint, dimension)
                     VALUES (1, ?1, ?2, ?3)",
                    params![self.name, self.fingerprint, self.dimension],
                )?;
                Ok(1)
            }
            Err(error) => Err(error),
        })
    }
}

impl Memory {
    /// Stores a document, and waits for the disk. The same text in the same scope is not stored
    /// twice: its time is updated, and it becomes tainted if the new one is.
    ///
    /// # Errors
    /// If the text is empty, too large, or not text; if the memory was made by another embedder;
    /// if it could not be stored.
    pub fn remember(
        &self,
        scope: &MemoryScope,
        new: NewDocument,
    ) -> Result<RememberedDocument, MemoryError> {
        let bytes = new.text.len() as u64;
        if bytes > self.max_document_bytes {
            return Err(MemoryError::TooLarge {
                bytes: Some(bytes),
                limit: self.max_document_bytes,
            });
        }
        check_text(&new.text)?;
        check_scope(scope)?;
        let new = without_secrets(&self.store.redactor, new)?;
        if new.text.is_empty() {
            return Err(MemoryError::Empty);
        }
        let digest = Digest::of_json(&new.text.as_str().into());
        let id = scope.document_id(digest);
        // Avoids embedding a large document that is already stored. The transaction checks again.
        let is_known = self
            .store
            .readers
            .read(|connection| find_document(connection, &id))?
            .is_some();
        let chunks = match is_known {
            true => Vec::new(),
            false => self.prepare_chunks(&new.text)?,
        };
        let prepared = Arc::new(PreparedDocument {
            id,
            scope: scope.clone(),
            digest: digest.to_string(),
            metadata: serde_json::Value::Object(new.metadata.clone()).to_string(),
            new,
            chunks,
        });
        if let Some(stored) = self.store_prepared(&prepared)? {
            return Ok(stored);
        }
        // The document was forgotten since the check above.
        let prepared = Arc::new(PreparedDocument {
            id: prepared.id.clone(),
            scope: prepared.scope.clone(),
            digest: prepared.digest.clone(),
            metadata: prepared.metadata.clone(),
            new: prepared.new.clone(),
            chunks: self.prepare_chunks(&prepared.new.text)?,
        });
        let stored = self.store_prepared(&prepared)?;
        stored.ok_or_else(|| MemoryError::NoSuchDocument(prepared.id.clone()))
    }

    /// Forgets a document of one of these scopes: its text, vectors and words are removed.
    /// [`compact`](Self::compact) removes their remains from the file.
    ///
    /// # Errors
    /// If there is no such document in these scopes, or it could not be removed.
    pub fn forget(&self, scopes: &[MemoryScope], id: &str) -> Result<(), MemoryError> {
        let document = self.document(scopes, id)?;
        let found = document.id;
        let is_removed = self.store.transact("forget", move |connection| {
            match find_document(connection, &found)? {
                None => Ok(false),
                Some((number, scope)) => {
                    remove(connection, number, scope)?;
                    Ok(true)
                }
            }
        })?;
        match is_removed {
            true => Ok(()),
            false => Err(MemoryError::NoSuchDocument(id.to_owned())),
        }
    }

    fn prepare_chunks(&self, text: &str) -> Result<Vec<Chunk>, MemoryError> {
        let parts = split(text);
        let texts: Vec<&str> = parts.iter().map(|(_, chunk)| *chunk).collect();
        let embeddings = self.embed(&texts)?;
        let fingerprint = self.embedder.fingerprint();
        Ok(parts
            .into_iter()
            .zip(embeddings)
            .map(|((begins, chunk), embedding)| Chunk {
                begins,
                text: chunk.to_owned(),
                words: search_words(chunk),
                compact: CompactVector::of(&embedding).to_bytes(),
                exact: embedding.to_bytes(fingerprint),
            })
            .collect())
    }

    /// Stores a prepared document. `None` if it has no chunks because it was known, and is not any more.
    fn store_prepared(
        &self,
        prepared: &Arc<PreparedDocument>,
    ) -> Result<Option<RememberedDocument>, MemoryError> {
        let embedder = EmbedderIdentity::of(self.embedder.as_ref());
        let prepared = Arc::clone(prepared);
        self.store.transact("remember", move |connection| {
            prepared.store(connection, &embedder)
        })?
    }
}

impl PreparedDocument {
    fn store(
        &self,
        connection: &Connection,
        embedder: &EmbedderIdentity,
    ) -> Result<Result<Option<RememberedDocument>, MemoryError>, Error> {
        let generation = match embedder.generation_or_first(connection)? {
            Ok(generation) => generation,
            Err(error) => return Ok(Err(error)),
        };
        if let Some((number, scope)) = find_document(connection, &self.id)? {
            let known = self.touch(connection, number, scope)?;
            return Ok(Ok(Some(known)));
        }
        if self.chunks.is_empty() {
            return Ok(Ok(None));
        }
        let scope = scope_number(connection, &self.scope)?;
        let outcome = match self.replace(connection, scope, None)? {
            true => RememberOutcome::Replaced,
            false => RememberOutcome::Added,
        };
        let number = self.insert(connection, scope, generation)?;
        add_source(connection, scope, number, &self.new)?;
        Ok(Ok(Some(RememberedDocument {
            id: self.id.clone(),
            outcome,
            chunks: self.chunks.len(),
        })))
    }

    /// Updates the time, taint and source of a known document with the same text.
    fn touch(
        &self,
        connection: &Connection,
        number: i64,
        scope: i64,
    ) -> Result<RememberedDocument, Error> {
        let outcome = match self.replace(connection, scope, Some(number))? {
            true => RememberOutcome::Replaced,
            false => RememberOutcome::Known,
        };
        add_source(connection, scope, number, &self.new)?;
        connection
            .prepare_cached(
                "UPDATE memory_documents SET updated_at = max(updated_at, ?2), tainted = max(tainted, ?3)
                 WHERE number = ?1",
            )?
            .execute(params![
                number,
                self.new.at.as_microseconds(),
                self.new.is_tainted
            ])?;
        let chunks: i64 = connection.query_row(
            "SELECT count(*) FROM memory_chunks WHERE document = ?1",
            [number],
            |row| row.get(0),
        )?;
        Ok(RememberedDocument {
            id: self.id.clone(),
            outcome,
            chunks: usize::try_from(chunks).unwrap_or_default(),
        })
    }

    /// Removes earlier documents from the same source, if this one replaces them. Returns whether there were
    /// any.
    fn replace(
        &self,
        connection: &Connection,
        scope: i64,
        present: Option<i64>,
    ) -> Result<bool, Error> {
        match &self.new.source {
            Some(source) if self.new.replaces_source && !source.is_empty() => {
                remove_source(connection, scope, source, present)
            }
            _ => Ok(false),
        }
    }

    /// Stores the document with its chunks, and returns its number.
    fn insert(&self, connection: &Connection, scope: i64, generation: i64) -> Result<i64, Error> {
        let at = self.new.at.as_microseconds();
        connection
            .prepare_cached(
                "INSERT INTO memory_documents (id, scope, tenant, principal, source, title, digest, bytes,
                     created_at, updated_at, tainted, metadata)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11)",
            )?
            .execute(params![
                self.id,
                scope,
                self.scope.tenant,
                self.scope.principal,
                self.new.source,
                self.new.title,
                self.digest,
                i64::try_from(self.new.text.len()).unwrap_or(i64::MAX),
                at,
                self.new.is_tainted,
                self.metadata,
            ])?;
        let number = connection.last_insert_rowid();
        let mut chunk = connection.prepare_cached(
            "INSERT INTO memory_chunks (document, place, begins, words, text) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let mut words =
            connection.prepare_cached("INSERT INTO memory_terms (rowid, terms) VALUES (?1, ?2)")?;
        let mut vector = connection.prepare_cached(
            "INSERT INTO memory_vectors (scope, chunk, compact) VALUES (?1, ?2, ?3)",
        )?;
        let mut exact = connection.prepare_cached(
            "INSERT INTO memory_exact_vectors (chunk, generation, exact) VALUES (?1, ?2, ?3)",
        )?;
        let mut all_words = 0;
        for (part, place) in self.chunks.iter().zip(0i64..) {
            let begins = i64::try_from(part.begins).unwrap_or(i64::MAX);
            let count = i64::try_from(part.words.len()).unwrap_or(i64::MAX);
            chunk.execute(params![number, place, begins, count, part.text])?;
            let id = connection.last_insert_rowid();
            words.execute(params![id, terms(scope, &part.words)])?;
            vector.execute(params![scope, id, part.compact])?;
            exact.execute(params![id, generation, part.exact])?;
            all_words += count;
        }
        let chunks = i64::try_from(self.chunks.len()).unwrap_or(i64::MAX);
        count_change(connection, scope, chunks, all_words)?;
        Ok(number)
    }
}

/// Removes a document with its chunks, words, vectors and sources.
pub(super) fn remove(connection: &Connection, number: i64, scope: i64) -> Result<(), Error> {
    let (chunks, words): (i64, i64) = connection.query_row(
        "SELECT count(*), coalesce(sum(words), 0) FROM memory_chunks WHERE document = ?1",
        [number],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    connection.execute(
        "INSERT INTO memory_removed (scope, chunk)
         SELECT ?2, id FROM memory_chunks WHERE document = ?1 ORDER BY id",
        [number, scope],
    )?;
    const OF_DOCUMENT: &str = "(SELECT id FROM memory_chunks WHERE document = ?1)";
    for (table, chunk) in [("memory_terms", "rowid"), ("memory_exact_vectors", "chunk")] {
        connection.execute(
            &format!("DELETE FROM {table} WHERE {chunk} IN {OF_DOCUMENT}"),
            [number],
        )?;
    }
    connection.execute(
        &format!("DELETE FROM memory_vectors WHERE scope = ?2 AND chunk IN {OF_DOCUMENT}"),
        [number, scope],
    )?;
    for table in ["memory_chunks", "memory_sources"] {
        let query = format!("DELETE FROM {table} WHERE document = ?1");
        connection.execute(&query, [number])?;
    }
    connection.execute("DELETE FROM memory_documents WHERE number = ?1", [number])?;
    count_change(connection, scope, -chunks, -words)
}

fn count_change(connection: &Connection, scope: i64, chunks: i64, words: i64) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE memory_scopes SET chunks = chunks + ?2, words = words + ?3, change = change + 1
             WHERE id = ?1",
        )?
        .execute([scope, chunks, words])?;
    Ok(())
}

/// The number of a scope. The scope is stored if it is new.
fn scope_number(connection: &Connection, scope: &MemoryScope) -> Result<i64, Error> {
    let reach = &scope.reach;
    let values = params![scope.tenant, scope.principal, reach.kind(), reach.value()];
    connection
        .prepare_cached(
            "INSERT INTO memory_scopes (tenant, principal, kind, value) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?
        .execute(values)?;
    super::read::known_scope(connection, scope)?
        .map(|known| known.id)
        .ok_or_else(|| Error::unreadable("a scope that was just stored", "it is not there"))
}

fn check_scope(scope: &MemoryScope) -> Result<(), MemoryError> {
    let is_unnamed = matches!(&scope.reach,
        super::ScopeReach::Agent(value) | super::ScopeReach::Run(value) if value.is_empty());
    match is_unnamed || scope.tenant.is_empty() || scope.principal.is_empty() {
        true => Err(MemoryError::BadScope(scope.reach.to_string())),
        false => Ok(()),
    }
}

fn without_secrets(redactor: &Redactor, new: NewDocument) -> Result<NewDocument, Error> {
    let metadata = redactor.json(&serde_json::Value::Object(new.metadata), &[])?;
    let metadata = serde_json::from_str(&metadata)
        .map_err(|error| Error::unreadable("the metadata of a document", error))?;
    Ok(NewDocument {
        text: redactor.text(new.text.trim()),
        title: new.title.map(|title| redactor.text(&title)),
        source: new.source.map(|source| redactor.text(&source)),
        metadata,
        ..new
    })
}
