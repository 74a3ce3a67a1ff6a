//! Maintenance of memory: re-embedding for another embedder, and removing forgotten documents from the
//! file.

use rusqlite::{OptionalExtension, params};
use windlass_embed::CompactVector;

use super::Memory;
use super::error::MemoryError;
use super::write::EmbedderIdentity;
use crate::Error;
use crate::connection;

/// How many chunks are re-embedded in one transaction.
const BATCH_SIZE: i64 = 256;

/// The result of re-embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReembedReport {
    /// How many chunks were embedded.
    pub chunks: u64,
}

/// A chunk to re-embed: its number, its scope, its text.
type StaleChunk = (i64, i64, String);

impl Memory {
    /// Recomputes all vectors with this embedder, if another one made them, in batches. If it is
    /// interrupted, searches fail until it is called again, which resumes where it stopped.
    /// `progress` is called with the number of finished chunks and the total.
    ///
    /// # Errors
    /// If the embedder or the store fails. Finished batches stay.
    pub fn reembed(
        &self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<ReembedReport, MemoryError> {
        let embedder = EmbedderIdentity::of(self.embedder.as_ref());
        let Some(generation) = self.begin_generation(&embedder)? else {
            return Ok(ReembedReport { chunks: 0 });
        };
        let all: i64 = self.store.readers.read(|connection| {
            let count = "SELECT count(*) FROM memory_exact_vectors";
            Ok(connection.query_row(count, [], |row| row.get(0))?)
        })?;
        let (mut last, mut done, mut embedded) = (0, 0, 0);
        loop {
            let (batch, checked) = self.stale_chunks(last, generation)?;
            let Some(&next) = checked.last() else {
                break;
            };
            if !batch.is_empty() {
                embedded += batch.len() as u64;
                self.reembed_batch(batch, generation)?;
            }
            last = next;
            done += checked.len() as u64;
            progress(done, all.unsigned_abs());
        }
        self.store.transact("reembedded", move |connection| {
            let whole = "UPDATE memory_settings SET is_whole = 1 WHERE generation = ?1";
            connection.execute(whole, [generation])?;
            connection.execute("UPDATE memory_scopes SET change = change + 1", [])?;
            Ok(())
        })?;
        Ok(ReembedReport { chunks: embedded })
    }

    /// The generation of the vectors to compute; `None` if this embedder made them already.
    fn begin_generation(&self, embedder: &EmbedderIdentity) -> Result<Option<i64>, MemoryError> {
        let embedder = embedder.clone();
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
            if fingerprint == embedder.fingerprint && dimension == embedder.dimension {
                return Ok((!is_whole).then_some(generation));
            }
            connection.execute(
                "UPDATE memory_settings SET embedder = ?1, fingerprint = ?2, dimension = ?3,
                     generation = generation + 1, is_whole = 0",
                params![embedder.name, embedder.fingerprint, embedder.dimension],
            )?;
            Ok(Some(generation + 1))
        })?;
        Ok(generation)
    }

    /// The next chunks after `last`: those of an older generation, and the numbers of all that were
    /// checked.
    fn stale_chunks(
        &self,
        last: i64,
        generation: i64,
    ) -> Result<(Vec<StaleChunk>, Vec<i64>), MemoryError> {
        let found = self.store.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT e.chunk, e.generation, d.scope, c.text FROM memory_exact_vectors e
                 JOIN memory_chunks c ON c.id = e.chunk JOIN memory_documents d ON d.number = c.document
                 WHERE e.chunk > ?1 ORDER BY e.chunk LIMIT ?2",
            )?;
            let mut rows = select.query([last, BATCH_SIZE])?;
            let (mut batch, mut checked) = (Vec::new(), Vec::new());
            while let Some(row) = rows.next()? {
                let (chunk, chunk_generation): (i64, i64) = (row.get(0)?, row.get(1)?);
                checked.push(chunk);
                if chunk_generation < generation {
                    batch.push((chunk, row.get(2)?, row.get(3)?));
                }
            }
            Ok((batch, checked))
        })?;
        Ok(found)
    }

    fn reembed_batch(&self, batch: Vec<StaleChunk>, generation: i64) -> Result<(), MemoryError> {
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
            // A chunk that was forgotten meanwhile has no row, so nothing is updated.
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
                "another process has started to re-embed the memory with another embedder"
                    .to_owned(),
            )),
        }
    }

    /// Removes forgotten documents from the file and its write-ahead log, and makes the file as small
    /// as possible. Other processes can continue, but a long read blocks it.
    ///
    /// # Errors
    /// If another process blocks it, or the database fails.
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
