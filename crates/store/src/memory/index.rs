//! The vectors of scopes in memory, loaded when they are first searched and kept in step with what this
//! process and others write.
//!
//! A scope counts its changes. Before each search the count is read; if it is another, the chunks with
//! numbers beyond the last one known are added, and those that are listed as removed are taken out. Numbers
//! are given inside the transaction that stores, and only one runs at a time, so no lower one appears later.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::Connection;
use windlass_embed::{CompactIndex, CompactVector};

use super::error::MemoryError;
use super::read::KnownScope;
use crate::Error;

/// How many vectors are kept in memory before those of scopes that were not searched lately go.
const MOST_KEPT: usize = 1_200_000;

/// The indexes of the scopes that were searched.
#[derive(Default)]
pub(super) struct Indexes(Mutex<Kept>);

struct Kept {
    scopes: HashMap<i64, (u64, Arc<RwLock<ScopeIndex>>)>,
    searches: u64,
    /// How many vectors are kept at most.
    most: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            scopes: HashMap::new(),
            searches: 0,
            most: MOST_KEPT,
        }
    }
}

/// The vectors of one scope as of one moment.
pub(super) struct ScopeIndex {
    pub(super) index: CompactIndex,
    generation: i64,
    change: i64,
    last_chunk: i64,
    last_removed: i64,
}

impl ScopeIndex {
    fn empty(dimension: usize, generation: i64, last_removed: i64) -> Self {
        Self {
            index: CompactIndex::new(dimension),
            generation,
            change: -1,
            last_chunk: 0,
            last_removed,
        }
    }
}

impl Indexes {
    /// The index of a scope, as it is in the database now.
    pub(super) fn fresh(
        &self,
        connection: &Connection,
        scope: &KnownScope,
        generation: i64,
        dimension: usize,
    ) -> Result<Arc<RwLock<ScopeIndex>>, MemoryError> {
        let kept = self.kept(scope.id, dimension);
        let is_fresh = {
            let index = kept.read().unwrap_or_else(PoisonError::into_inner);
            index.generation == generation && index.change == scope.change
        };
        if !is_fresh {
            let mut index = kept.write().unwrap_or_else(PoisonError::into_inner);
            catch_up(connection, &mut index, scope, generation, dimension)?;
        }
        Ok(kept)
    }

    fn kept(&self, scope: i64, dimension: usize) -> Arc<RwLock<ScopeIndex>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.searches += 1;
        let now = kept.searches;
        let empty = || Arc::new(RwLock::new(ScopeIndex::empty(dimension, -1, 0)));
        let (used, index) = kept.scopes.entry(scope).or_insert_with(|| (now, empty()));
        *used = now;
        let index = Arc::clone(index);
        kept.make_room();
        index
    }
}

impl Kept {
    /// Lets go of what was searched longest ago, but never of what is searched now.
    fn make_room(&mut self) {
        let size = |index: &Arc<RwLock<ScopeIndex>>| match index.try_read() {
            Ok(index) => index.index.len(),
            // It is being loaded, and is not to go.
            Err(_) => 0,
        };
        let mut all: usize = self.scopes.values().map(|(_, index)| size(index)).sum();
        while all > self.most && self.scopes.len() > 1 {
            let oldest = self.scopes.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(scope, _)| *scope) else {
                return;
            };
            if let Some((_, index)) = self.scopes.remove(&oldest) {
                all -= size(&index).min(all);
            }
        }
    }
}

/// Adds what is new and takes out what is gone; begins anew if that cannot be told. The connection is in
/// a transaction, so everything is of one moment.
fn catch_up(
    connection: &Connection,
    index: &mut ScopeIndex,
    scope: &KnownScope,
    generation: i64,
    dimension: usize,
) -> Result<(), MemoryError> {
    // Another thread may have been here first, and may have seen more than this one.
    if index.generation == generation && index.change >= scope.change {
        return Ok(());
    }
    let (removed_before, last_removed): (i64, i64) = connection.query_row(
        "SELECT removed_before,
             max(removed_before, coalesce((SELECT max(number) FROM memory_removed), 0))
         FROM memory_settings",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if index.generation != generation || index.last_removed < removed_before {
        *index = ScopeIndex::empty(dimension, generation, last_removed);
    }
    // What fails half-way must not be taken for whole.
    index.change = -1;
    let mut select = connection.prepare_cached(
        "SELECT chunk, compact FROM memory_vectors WHERE scope = ?1 AND chunk > ?2 ORDER BY chunk",
    )?;
    let mut rows = select.query([scope.id, index.last_chunk])?;
    while let Some(row) = rows.next()? {
        let chunk: i64 = row.get(0)?;
        let bytes = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let vector = CompactVector::from_bytes(bytes)
            .map_err(|error| Error::unreadable(format!("the vector of chunk {chunk}"), error))?;
        index.index.insert(chunk.unsigned_abs(), &vector)?;
        index.last_chunk = chunk;
    }
    let mut select = connection
        .prepare_cached("SELECT chunk FROM memory_removed WHERE number > ?2 AND scope = ?1")?;
    let mut rows = select.query([scope.id, index.last_removed])?;
    while let Some(row) = rows.next()? {
        let chunk: i64 = row.get(0)?;
        index.index.remove(chunk.unsigned_abs());
    }
    index.last_removed = last_removed;
    index.change = scope.change;
    Ok(())
}
