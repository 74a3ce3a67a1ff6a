//! Vector search among more vectors than should be in memory in full precision.
//!
//! The index holds one byte per component, a scale and an error bound for each row: a quarter of the size of
//! the vectors. It ranks all rows approximately and asks the caller for the exact similarities of the best; then,
//! once more, of every other row whose upper bound reaches the last place. So it finds the same rows as an exact
//! scan. Among thousands of nearly equal vectors this would need too many exact comparisons; there it stops at a
//! limit and reports it.

use std::collections::HashMap;

use crate::quantised::{CompactVector, QuantisedQuery, QuantisedRows, take_best};
use crate::vector_index::{DEFAULT_RESCORE, ROUNDING};
use crate::{DimensionMismatch, Embedding, Scored};

/// The most rows that are compared in full precision in the second round.
const MOST_COMPARED: usize = 4_096;

/// Embeddings by number with one byte per component, searched exactly with the help of a caller that has them in
/// full precision.
#[derive(Debug, Clone)]
pub struct CompactIndex {
    dimension: usize,
    /// The row of each number.
    places: HashMap<u64, u32>,
    /// The number of each row.
    ids: Vec<u64>,
    rows: QuantisedRows,
}

/// The result of a search of a [`CompactIndex`].
#[derive(Debug, Clone, PartialEq)]
pub struct CompactFound {
    /// The best hits, best first, ties by number.
    pub hits: Vec<Scored<u64>>,
    /// How many rows were compared in full precision.
    pub compared: usize,
    /// Whether these are certainly the best. If not, more rows than the limit could reach the last place, and only
    /// the most promising were compared.
    pub is_exact: bool,
}

impl CompactIndex {
    /// An empty index for embeddings of `dimension` components.
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            places: HashMap::new(),
            ids: Vec::new(),
            rows: QuantisedRows::new(dimension),
        }
    }

    /// Adds or replaces the vector of `id`. A zero embedding is similar to nothing, so it is not kept.
    pub fn insert(&mut self, id: u64, vector: &CompactVector) -> Result<(), DimensionMismatch> {
        self.check(vector.dimension())?;
        self.remove(id);
        if vector.is_zero() {
            return Ok(());
        }
        self.places.insert(id, self.ids.len() as u32);
        self.ids.push(id);
        self.rows.push(vector);
        Ok(())
    }

    /// Removes the vector of `id` and returns whether there was one. The last row moves to its position, so nothing
    /// of it remains.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(row) = self.places.remove(&id) else {
            return false;
        };
        let row = row as usize;
        self.ids.swap_remove(row);
        self.rows.swap_remove(row);
        if let Some(moved) = self.ids.get(row) {
            self.places.insert(*moved, row as u32);
        }
        true
    }

    /// How many embeddings there are, without zero ones.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether there is an embedding under `id`.
    pub fn contains(&self, id: u64) -> bool {
        self.places.contains_key(&id)
    }

    /// The `count` entries most similar to `query` and at least `floor` similar.
    ///
    /// `exact` receives numbers and returns the similarity of each in full precision, without those that no longer
    /// exist. It is called at most twice.
    ///
    /// # Errors
    /// If the query has another dimension or `exact` fails.
    pub fn search<E: From<DimensionMismatch>>(
        &self,
        query: &Embedding,
        count: usize,
        floor: f32,
        mut exact: impl FnMut(&[u64]) -> Result<Vec<Scored<u64>>, E>,
    ) -> Result<CompactFound, E> {
        self.check(query.dimension())?;
        let mut found = CompactFound {
            hits: Vec::new(),
            compared: 0,
            is_exact: true,
        };
        if count == 0 || query.is_zero() || self.ids.is_empty() {
            return Ok(found);
        }
        let small = QuantisedQuery::new(query.as_slice());
        let mut rest = self.rows.candidates(&small, count, floor);
        let first = take_best(&mut rest, DEFAULT_RESCORE.max(count));
        let ids: Vec<u64> = first.iter().map(|one| self.ids[one.row]).collect();
        found.compared = ids.len();
        found.hits = exact(&ids)?;
        sort(&mut found.hits);
        let last_place = found.hits.get(count - 1);
        let last_place = last_place.map_or(floor, |last| last.score.max(floor));

        let mut reaching: Vec<(f32, u64)> = Vec::new();
        for one in rest {
            let most = one.similarity + self.rows.error(one.row, &small) + ROUNDING;
            if most >= last_place {
                reaching.push((most, self.ids[one.row]));
            }
        }
        if reaching.len() > MOST_COMPARED {
            reaching.sort_unstable_by(|left, right| {
                right.0.total_cmp(&left.0).then(left.1.cmp(&right.1))
            });
            reaching.truncate(MOST_COMPARED);
            found.is_exact = false;
        }
        if !reaching.is_empty() {
            let ids: Vec<u64> = reaching.into_iter().map(|(_, id)| id).collect();
            found.compared += ids.len();
            found.hits.extend(exact(&ids)?);
        }
        found.hits.retain(|hit| hit.score >= floor);
        sort(&mut found.hits);
        found.hits.truncate(count);
        Ok(found)
    }

    fn check(&self, found: usize) -> Result<(), DimensionMismatch> {
        let expected = self.dimension;
        if found == expected {
            Ok(())
        } else {
            Err(DimensionMismatch { expected, found })
        }
    }
}

fn sort(hits: &mut [Scored<u64>]) {
    hits.sort_unstable_by(|left, right| {
        right
            .score
            .total_cmp(&left.score)
            .then(left.id.cmp(&right.id))
    });
}
