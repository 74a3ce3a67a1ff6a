//! The in-memory vectors of scopes, loaded at the first search and kept up to date with the writes of
//! all processes.
//!
//! A scope counts its changes. Before each search the count is read. If it has changed, the chunks with
//! numbers above the last known one are added, and those that are listed as removed are removed. Numbers
//! are assigned inside the write transaction, and only one runs at a time, so no lower number appears later.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::Connection;
use windlass_embed::{CompactIndex, CompactVector};

use super::error::MemoryError;
use super::read::KnownScope;
use crate::Error;

/// How many vectors are kept in memory before the least recently searched scopes are evicted.
const MAX_CACHED_VECTORS: usize = 1_200_000;

/// The indexes of the scopes that were searched.
#[derive(Default)]
pub(super) struct Indexes(Mutex<IndexCache>);

struct IndexCache {
    scopes: HashMap<i64, (u64, Arc<RwLock<ScopeIndex>>)>,
    searches: u64,
    /// How many vectors are kept at most.
    max_vectors: usize,
}

impl Default for IndexCache {
    fn default() -> Self {
        Self {
            scopes: HashMap::new(),
            searches: 0,
            max_vectors: MAX_CACHED_VECTORS,
        }
    }
}

/// The vectors of one scope at one change count.
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
    /// The index of a scope, up to date with the database.
    pub(super) fn fresh(
        &self,
        connection: &Connection,
        scope: &KnownScope,
        generation: i64,
        dimension: usize,
    ) -> Result<Arc<RwLock<ScopeIndex>>, MemoryError> {
        let cached = self.cached(scope.id, dimension);
        let is_fresh = {
            let index = cached.read().unwrap_or_else(PoisonError::into_inner);
            index.generation == generation && index.change == scope.change
        };
        if !is_fresh {
            let mut index = cached.write().unwrap_or_else(PoisonError::into_inner);
            update_index(connection, &mut index, scope, generation, dimension)?;
        }
        Ok(cached)
    }

    fn cached(&self, scope: i64, dimension: usize) -> Arc<RwLock<ScopeIndex>> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.searches += 1;
        let now = cache.searches;
        let empty = || Arc::new(RwLock::new(ScopeIndex::empty(dimension, -1, 0)));
        let (used, index) = cache.scopes.entry(scope).or_insert_with(|| (now, empty()));
        *used = now;
        let index = Arc::clone(index);
        cache.evict();
        index
    }
}

impl IndexCache {
    /// Evicts the least recently searched indexes, but never the one that is searched now.
    fn evict(&mut self) {
        let size = |index: &Arc<RwLock<ScopeIndex>>| match index.try_read() {
            Ok(index) => index.index.len(),
            // It is being loaded, so it is in use.
            Err(_) => 0,
        };
        let mut all: usize = self.scopes.values().map(|(_, index)| size(index)).sum();
        while all > self.max_vectors && self.scopes.len() > 1 {
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

/// Adds new chunks and removes deleted ones; reloads the index if the list of deletions does not reach back far
/// enough. The connection is in a transaction, so all reads see one snapshot.
fn update_index(
    connection: &Connection,
    index: &mut ScopeIndex,
    scope: &KnownScope,
    generation: i64,
    dimension: usize,
) -> Result<(), MemoryError> {
    // Another thread may have updated the index meanwhile, from a newer snapshot.
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
    // An update that fails half-way must not count as complete.
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
