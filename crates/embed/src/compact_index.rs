//! Search by meaning among more vectors than should be in memory in full precision.
//!
//! The index holds one byte a component, a scale and a bound on the error of each row: a quarter of what
//! the vectors take. It ranks all rows by that, and asks whoever keeps the vectors in full precision how
//! similar the best really are; then, once more, every other row whose bound still reaches the last
//! place. So it finds what comparing all rows in full precision would find. Only among thousands of
//! vectors that are nearly the same would that ask for too much; there it stops at a limit, and says so.

use std::collections::HashMap;

use crate::quantised::{CompactVector, QuantisedQuery, QuantisedRows, take_best};
use crate::vector_index::{DEFAULT_RESCORE, ROUNDING};
use crate::{DimensionMismatch, Embedding, Scored};

/// How many rows are compared in full precision at most, beyond those that were asked for.
const MOST_COMPARED: usize = 4_096;

/// Embeddings by number in one byte a component, searched exactly with the help of whoever keeps them in
/// full precision.
#[derive(Debug, Clone)]
pub struct CompactIndex {
    dimension: usize,
    /// Where the row of each number is.
    places: HashMap<u64, u32>,
    /// The number of each row.
    ids: Vec<u64>,
    rows: QuantisedRows,
}

/// What a search of a [`CompactIndex`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactFound {
    /// The best, best first, ties by number.
    pub hits: Vec<Scored<u64>>,
    /// How many rows were compared in full precision.
    pub compared: usize,
    /// Whether these are certainly the best. If not, more rows than the limit were nearly as good as the
    /// last, and those that looked best were compared.
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

    /// Adds what stands for an embedding under `id`, in place of what was there. A zero embedding is
    /// similar to nothing, so it is not kept.
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

    /// Removes what is under `id`; whether there was anything. The last row takes the place of the one
    /// that goes, so nothing of it is left.
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

    /// How many embeddings there are, zero ones not counted.
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
    /// `exact` is told numbers and says how similar each is in full precision; those that are gone by
    /// now it leaves out. It is asked twice at most.
    ///
    /// # Errors
    /// If the query has another dimension, or `exact` fails.
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
        let mut rest = self.rows.reaching(&small, count, floor);
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
