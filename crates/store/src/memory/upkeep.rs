//! Upkeep of memory: making the vectors anew for another embedder, and taking out of the file what was
//! forgotten.

use rusqlite::{OptionalExtension, params};
use windlass_embed::CompactVector;

use super::Memory;
use super::error::MemoryError;
use super::write::Made;
use crate::Error;
use crate::connection;

/// How many chunks are embedded anew in one transaction.
const AT_ONCE: i64 = 256;

/// What came of making the vectors anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reembedded {
    /// How many chunks were embedded.
    pub chunks: u64,
}

/// A chunk to embed anew: its number, its scope, its text.
type Stale = (i64, i64, String);

impl Memory {
    /// Makes all vectors anew with this embedder, if another made them, a few at a time. If it is broken
    /// off, the memory refuses to be searched until it is called again, which goes on where it stopped.
    /// `progress` is told how many chunks are done, of how many.
    ///
    /// # Errors
    /// If the embedder or the store fails. What was done is done.
    pub fn reembed(&self, mut progress: impl FnMut(u64, u64)) -> Result<Reembedded, MemoryError> {
        let made = Made::by(self.embedder.as_ref());
        let Some(generation) = self.begin_generation(&made)? else {
            return Ok(Reembedded { chunks: 0 });
        };
        let all: i64 = self.store.readers.read(|connection| {
            let count = "SELECT count(*) FROM memory_exact_vectors";
            Ok(connection.query_row(count, [], |row| row.get(0))?)
        })?;
        let (mut last, mut done, mut embedded) = (0, 0, 0);
        loop {
            let (batch, looked_at) = self.stale(last, generation)?;
            let Some(&next) = looked_at.last() else {
                break;
            };
            if !batch.is_empty() {
                embedded += batch.len() as u64;
                self.embed_anew(batch, generation)?;
            }
            last = next;
            done += looked_at.len() as u64;
            progress(done, all.unsigned_abs());
        }
        self.store.transact("reembedded", move |connection| {
            let whole = "UPDATE memory_settings SET is_whole = 1 WHERE generation = ?1";
            connection.execute(whole, [generation])?;
            connection.execute("UPDATE memory_scopes SET change = change + 1", [])?;
            Ok(())
        })?;
        Ok(Reembedded { chunks: embedded })
    }

    /// The generation of vectors to make; nothing if they are this embedder's already.
    fn begin_generation(&self, made: &Made) -> Result<Option<i64>, MemoryError> {
        let made = made.clone();
        let generation = self.store.transact("reembed", move |connection| {
            let found: Option<(String, i64, i64, bool)> = connection
                .query_row(
                    "SELECT fingerprint, dimension, generation, is_whole FROM memory_settings",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
                )
                .optional()?;
            let Some((fingerprint, dimension, generation, is_whole)) = found else {
                return Ok(None);
            };
            if fingerprint == made.fingerprint && dimension == made.dimension {
                return Ok((!is_whole).then_some(generation));
            }
            connection.execute(
                "UPDATE memory_settings SET embedder = ?1, fingerprint = ?2, dimension = ?3,
                     generation = generation + 1, is_whole = 0",
                params![made.name, made.fingerprint, made.dimension],
            )?;
            Ok(Some(generation + 1))
        })?;
        Ok(generation)
    }

    /// The next chunks after `last`: the texts of those that are of an older generation, and the numbers
    /// of all that were looked at.
    fn stale(&self, last: i64, generation: i64) -> Result<(Vec<Stale>, Vec<i64>), MemoryError> {
        let found = self.store.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT e.chunk, e.generation, d.scope, c.text FROM memory_exact_vectors e
                 JOIN memory_chunks c ON c.id = e.chunk JOIN memory_documents d ON d.number = c.document
                 WHERE e.chunk > ?1 ORDER BY e.chunk LIMIT ?2",
            )?;
            let mut rows = select.query([last, AT_ONCE])?;
            let (mut batch, mut looked_at) = (Vec::new(), Vec::new());
            while let Some(row) = rows.next()? {
                let (chunk, of): (i64, i64) = (row.get(0)?, row.get(1)?);
                looked_at.push(chunk);
                if of < generation {
                    batch.push((chunk, row.get(2)?, row.get(3)?));
                }
            }
            Ok((batch, looked_at))
        })?;
        Ok(found)
    }

    fn embed_anew(&self, batch: Vec<Stale>, generation: i64) -> Result<(), MemoryError> {
        let texts: Vec<&str> = batch.iter().map(|(_, _, text)| text.as_str()).collect();
        let embeddings = self.embed(&texts)?;
        let fingerprint = self.embedder.fingerprint();
        let vectors: Vec<(i64, i64, Vec<u8>, Vec<u8>)> = batch
            .iter()
            .zip(embeddings)
            .map(|((chunk, scope, _), embedding)| {
                let compact = CompactVector::of(&embedding).to_bytes();
                (*chunk, *scope, compact, embedding.to_bytes(fingerprint))
            })
            .collect();
        let is_current = self.store.transact("reembed_batch", move |connection| {
            let current: i64 =
                connection.query_row("SELECT generation FROM memory_settings", [], |row| {
                    row.get(0)
                })?;
            if current != generation {
                return Ok(false);
            }
            // A chunk that was forgotten meanwhile is not there to be changed.
            let mut compact_row = connection.prepare_cached(
                "UPDATE memory_vectors SET compact = ?3 WHERE scope = ?1 AND chunk = ?2",
            )?;
            let mut exact_row = connection.prepare_cached(
                "UPDATE memory_exact_vectors SET generation = ?2, exact = ?3 WHERE chunk = ?1",
            )?;
            for (chunk, scope, compact, exact) in &vectors {
                compact_row.execute(params![scope, chunk, compact])?;
                exact_row.execute(params![chunk, generation, exact])?;
            }
            Ok(true)
        })?;
        match is_current {
            true => Ok(()),
            false => Err(MemoryError::Embedder(
                "somebody else began to re-embed the memory with another embedder".to_owned(),
            )),
        }
    }

    /// Takes out of the file, and of the log beside it, what was forgotten, and makes the file as small
    /// as it can be. Others can go on meanwhile, but whoever reads for long is in the way.
    ///
    /// # Errors
    /// If somebody is in the way, or the database fails.
    pub fn compact(&self) -> Result<(), MemoryError> {
        self.store.transact("compact", |connection| {
            connection.execute(
                "INSERT INTO memory_terms (memory_terms) VALUES ('optimize')",
                [],
            )?;
            connection.execute(
                "UPDATE memory_settings SET removed_before =
                     max(removed_before, coalesce((SELECT max(number) FROM memory_removed), 0))",
                [],
            )?;
            connection.execute("DELETE FROM memory_removed", [])?;
            Ok(())
        })?;
        self.shrink().map_err(|error| match error {
            Error::Busy => MemoryError::InUse,
            other => other.into(),
        })
    }

    fn shrink(&self) -> Result<(), Error> {
        let connection = connection::connect_writer(&self.store.path)?;
        if let Some(timeout) = self.store.lock_timeout {
            connection.busy_timeout(timeout)?;
        }
        connection.execute_batch("VACUUM")?;
        let is_busy: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        match is_busy {
            true => Err(Error::Busy),
            false => Ok(()),
        }
    }
}
