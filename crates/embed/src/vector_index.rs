//! Vector search: an exact scan of all vectors, in two passes.
//!
//! The first pass reads a copy of the vectors with one byte per component, a quarter of the memory.
//! It gives every row an approximate similarity with an error bound from the rounding of row and query.
//! The second pass compares in full precision: first the rows that look best, then every other row whose upper
//! bound reaches the last place. So the result is always that of comparing every row in full precision.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::embedding::dot;
use crate::quantised::{CompactVector, QuantisedQuery, QuantisedRows, take_best};
use crate::{Embedding, Scored};

/// How many rows are compared in full precision before the bounds are used. Enough that the last
/// place is near its final value, so that few bounds reach it.
pub(crate) const DEFAULT_RESCORE: usize = 40;

/// The tolerance of the bound, which is itself computed in f32.
pub(crate) const ROUNDING: f32 = 1e-5;

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
    rescore: usize,
    /// The row of each id. Zero embeddings have none, since no search finds them.
    places: BTreeMap<K, Option<usize>>,
    /// The id of each row.
    ids: Vec<K>,
    rows: Vec<f32>,
    quantised: QuantisedRows,
}

impl<K: Ord + Clone> VectorIndex<K> {
    /// An empty index for embeddings of `dimension` components.
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            rescore: DEFAULT_RESCORE,
            places: BTreeMap::new(),
            ids: Vec::new(),
            rows: Vec::new(),
            quantised: QuantisedRows::new(dimension),
        }
    }

    /// Sets how many rows are compared in full precision at first. It changes the cost of a search, never its
    /// result.
    #[must_use]
    pub fn with_rescore(mut self, rescore: usize) -> Self {
        self.rescore = rescore;
        self
    }

    /// Adds or replaces the embedding of `id`.
    pub fn insert(&mut self, id: K, embedding: &Embedding) -> Result<(), DimensionMismatch> {
        self.check(embedding)?;
        self.remove(&id);
        if embedding.is_zero() {
            self.places.insert(id, None);
            return Ok(());
        }
        self.places.insert(id.clone(), Some(self.ids.len()));
        self.ids.push(id);
        self.rows.extend_from_slice(embedding.as_slice());
        self.quantised.push(&CompactVector::of(embedding));
        Ok(())
    }

    /// Removes the embedding of `id` and returns whether there was one. The last row moves to its position, so
    /// no removed row is scanned.
    pub fn remove(&mut self, id: &K) -> bool {
        let Some(place) = self.places.remove(id) else {
            return false;
        };
        if let Some(row) = place {
            self.ids.swap_remove(row);
            self.quantised.swap_remove(row);
            let last = self.rows.len() - self.dimension;
            self.rows.copy_within(last.., row * self.dimension);
            self.rows.truncate(last);
            if let Some(moved) = self.ids.get(row) {
                self.places.insert(moved.clone(), Some(row));
            }
        }
        true
    }

    /// How many embeddings there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether there is an embedding under `id`.
    pub fn contains(&self, id: &K) -> bool {
        self.places.contains_key(id)
    }

    /// The similarity of the embedding of `id` to `query`; `None` if there is none. Zero if either
    /// embedding is zero or has another dimension.
    pub fn similarity(&self, id: &K, query: &Embedding) -> Option<f32> {
        let place = self.places.get(id)?;
        Some(match place {
            Some(row) if query.dimension() == self.dimension => self.exact(*row, query),
            _ => 0.0,
        })
    }

    /// The `count` entries most similar to `query` and at least `floor` similar, best first, ties by
    /// id. Zero embeddings are similar to nothing: none is found, and none finds anything.
    pub fn search(
        &self,
        query: &Embedding,
        count: usize,
        floor: f32,
    ) -> Result<Vec<Scored<K>>, DimensionMismatch> {
        self.check(query)?;
        if count == 0 || query.is_zero() || self.ids.is_empty() {
            return Ok(Vec::new());
        }
        let small = QuantisedQuery::new(query.as_slice());
        let mut rest = self.quantised.candidates(&small, count, floor);
        let first = take_best(&mut rest, self.rescore.max(count));
        let mut found: Vec<(f32, usize)> = first
            .into_iter()
            .map(|one| (self.exact(one.row, query), one.row))
            .collect();
        found.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
        let last_place = found.get(count - 1).map_or(floor, |last| last.0.max(floor));

        for one in rest {
            if one.similarity + self.quantised.error(one.row, &small) + ROUNDING >= last_place {
                found.push((self.exact(one.row, query), one.row));
            }
        }
        found.retain(|(score, _)| *score >= floor);
        found.sort_unstable_by(|left, right| self.better(*left, *right));
        found.truncate(count);
        let scored = |(score, row): (f32, usize)| Scored {
            id: self.ids[row].clone(),
            score,
        };
        Ok(found.into_iter().map(scored).collect())
    }

    fn better(&self, left: (f32, usize), right: (f32, usize)) -> Ordering {
        right
            .0
            .total_cmp(&left.0)
            .then_with(|| self.ids[left.1].cmp(&self.ids[right.1]))
    }

    fn exact(&self, row: usize, query: &Embedding) -> f32 {
        let begin = row * self.dimension;
        dot(&self.rows[begin..begin + self.dimension], query.as_slice()).clamp(-1.0, 1.0)
    }

    fn check(&self, embedding: &Embedding) -> Result<(), DimensionMismatch> {
        let (expected, found) = (self.dimension, embedding.dimension());
        if found == expected {
            Ok(())
        } else {
            Err(DimensionMismatch { expected, found })
        }
    }
}
