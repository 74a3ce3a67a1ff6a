//! Vectors with one byte per component, for a fast approximate scan with an error bound.
//!
//! A row is a scale and integers from -127 to 127. The loop over them is written so that the
//! compiler uses vector instructions. The query is kept in 16 bits, so that it need not be widened for
//! every row. It is also rounded to 16 bits rather than 8, which costs nothing and halves the error bound, so
//! that far fewer rows pass it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::Embedding;
use crate::vector_index::ROUNDING;

/// Rows are padded with zeros to a multiple of this, so that the loop has no remainder.
const LANES: usize = 32;

const LIMIT: f32 = 127.0;

/// How many rows are filtered before their second parts are read. Filtering and reading alternately would make
/// the processor wait for each row. The intermediate values of a block stay in the fastest cache; those of a
/// million rows would not.
const BLOCK: usize = 512;

/// The largest integer of a quantised query. Sums of products with rows must not overflow.
fn query_limit(stride: usize) -> f32 {
    let products = 127 * i32::try_from(stride.max(1)).unwrap_or(i32::MAX / 127);
    (i32::MAX / products).min(i32::from(i16::MAX)) as f32
}

/// A stored vector with one byte per component: a scale, its distance to the original vector, and integers from
/// -127 to 127.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactVector {
    scale: f32,
    error: f32,
    values: Box<[i8]>,
}

/// Bytes that are not a compact vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored compact vector is damaged: {0}")]
pub struct DamagedVector(&'static str);

impl CompactVector {
    /// Quantises `embedding`.
    pub fn of(embedding: &Embedding) -> Self {
        let vector = embedding.as_slice();
        let scale = scale_of(vector, LIMIT);
        let values = vector.iter();
        let values = values.map(|&value| quantise(value, scale, LIMIT) as i8);
        Self {
            scale,
            error: error_of(vector, scale, LIMIT),
            values: values.collect(),
        }
    }

    /// How many components there are.
    pub fn dimension(&self) -> usize {
        self.values.len()
    }

    /// Whether it is the zero vector.
    pub fn is_zero(&self) -> bool {
        self.values.iter().all(|&value| value == 0)
    }

    /// The bytes to store: scale and error, little endian, then one byte per component.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.values.len());
        bytes.extend(self.scale.to_le_bytes());
        bytes.extend(self.error.to_le_bytes());
        bytes.extend(self.values.iter().map(|&value| value as u8));
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedVector> {
        let (scale, rest) = bytes
            .split_first_chunk()
            .ok_or(DamagedVector("it has no scale"))?;
        let (error, values) = rest
            .split_first_chunk()
            .ok_or(DamagedVector("it has no error"))?;
        let (scale, error) = (f32::from_le_bytes(*scale), f32::from_le_bytes(*error));
        // A unit vector has no larger values. Written so that NaN fails too.
        if !(scale > 0.0 && scale <= 1.0 && (0.0..=1.0).contains(&error)) {
            return Err(DamagedVector("its scale or error is out of range"));
        }
        let values = values.iter().map(|&byte| byte as i8).collect();
        Ok(Self {
            scale,
            error,
            values,
        })
    }
}

/// Many vectors with one byte per component.
///
/// A scan is limited by memory bandwidth, so each row is stored in two parts with the length of the second. The
/// product of the first parts and the lengths of the second ones bound the whole product, which excludes most rows
/// without reading their second part.
#[derive(Debug, Clone)]
pub(crate) struct QuantisedRows {
    /// The number of components of the first and the second part.
    head: usize,
    tail: usize,
    heads: Vec<i8>,
    tails: Vec<i8>,
    facts: Vec<RowFacts>,
    /// The largest error of any row so far.
    most_error: f32,
}

/// The properties of a row besides its components.
#[derive(Debug, Clone, Copy)]
struct RowFacts {
    scale: f32,
    /// The distance of the row to the original vector.
    error: f32,
    /// The length of its second part.
    tail_length: f32,
}

/// A row that may be among the most similar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateRow {
    pub(crate) row: usize,
    /// The approximate similarity.
    pub(crate) similarity: f32,
}

/// Removes the `count` rows with the highest approximate similarity and returns them, in no order.
pub(crate) fn take_best(all: &mut Vec<CandidateRow>, count: usize) -> Vec<CandidateRow> {
    if count < all.len() {
        all.select_nth_unstable_by(count, |left, right| {
            let order = right.similarity.total_cmp(&left.similarity);
            order.then(left.row.cmp(&right.row))
        });
    }
    let rest = all.split_off(count.min(all.len()));
    std::mem::replace(all, rest)
}

/// A query vector.
#[derive(Debug)]
pub(crate) struct QuantisedQuery {
    head: Vec<i16>,
    tail: Vec<i16>,
    scale: f32,
    /// Its distance to the original vector.
    error: f32,
    length: f32,
    tail_length: f32,
}

/// The number of components of the first part: so many that few rows remain after it, which is cheaper than a
/// shorter first part with more remaining rows. Embedders that order components by importance, as ours does,
/// gain most.
fn head_of(stride: usize) -> usize {
    (stride * 5 / 8).next_multiple_of(LANES).min(stride)
}

impl QuantisedRows {
    pub(crate) fn new(dimension: usize) -> Self {
        let stride = dimension.next_multiple_of(LANES);
        let head = head_of(stride);
        Self {
            head,
            tail: stride - head,
            heads: Vec::new(),
            tails: Vec::new(),
            facts: Vec::new(),
            most_error: 0.0,
        }
    }

    pub(crate) fn push(&mut self, vector: &CompactVector) {
        let (head, tail) = vector.values.split_at(self.head.min(vector.values.len()));
        let end = self.heads.len() + self.head;
        self.heads.extend_from_slice(head);
        self.heads.resize(end, 0);
        let end = self.tails.len() + self.tail;
        self.tails.extend_from_slice(tail);
        self.tails.resize(end, 0);
        self.facts.push(RowFacts {
            scale: vector.scale,
            error: vector.error,
            tail_length: length(tail.iter().map(|&value| f32::from(value))) * vector.scale,
        });
        self.most_error = self.most_error.max(vector.error);
    }

    pub(crate) fn swap_remove(&mut self, row: usize) {
        for (values, stride) in [(&mut self.heads, self.head), (&mut self.tails, self.tail)] {
            let last = values.len() - stride;
            values.copy_within(last.., row * stride);
            values.truncate(last);
        }
        self.facts.swap_remove(row);
    }

    /// Every row that can be among the `count` most similar to `query` with at least the similarity `floor`, and a few
    /// that cannot, with approximate similarities.
    ///
    /// Let t be the `count`th best approximate similarity so far. The exact `count`th best is at least t minus the
    /// largest error. A row whose upper bound, from its second part and its own error, is below that is not among
    /// the best.
    pub(crate) fn candidates(
        &self,
        query: &QuantisedQuery,
        count: usize,
        floor: f32,
    ) -> Vec<CandidateRow> {
        let mut best = BestSimilarities::new(count);
        let mut found = Vec::new();
        let query_error = query.error + ROUNDING;
        let most_error = query_error + query.length * self.most_error;
        let mut heads = [0.0; BLOCK];
        let mut passing = [0; BLOCK];
        for (block, facts) in self.facts.chunks(BLOCK).enumerate() {
            let begin = block * BLOCK;
            // The first parts of a block in one loop: without branches there are no mispredictions, and the
            // memory is prefetched.
            let rows = self.heads[begin * self.head..].chunks_exact(self.head.max(1));
            for ((similarity, row), facts) in heads.iter_mut().zip(rows).zip(facts) {
                *similarity = dot(row, &query.head) as f32 * (facts.scale * query.scale);
            }
            let least = (best.last() - most_error).max(floor) - query_error;
            let mut count = 0;
            for (row, (similarity, facts)) in heads.iter().zip(facts).enumerate() {
                let most =
                    similarity + facts.tail_length * query.tail_length + query.length * facts.error;
                passing[count] = row;
                count += usize::from(most >= least);
            }
            for &row in &passing[..count] {
                let tail = (begin + row) * self.tail;
                let tail = &self.tails[tail..tail + self.tail];
                let factor = facts[row].scale * query.scale;
                let similarity = heads[row] + dot(tail, &query.tail) as f32 * factor;
                best.insert(similarity);
                found.push(CandidateRow {
                    row: begin + row,
                    similarity,
                });
            }
        }
        found
    }

    /// The error bound of the approximate similarity of `row` to `query`.
    ///
    /// With q and r the unit vectors and q', r' their quantised forms,
    /// |q.r - q'.r'| <= |q - q'| |r| + |q'| |r - r'|.
    pub(crate) fn error(&self, row: usize, query: &QuantisedQuery) -> f32 {
        query.error + query.length * self.facts[row].error
    }
}

impl QuantisedQuery {
    pub(crate) fn new(vector: &[f32]) -> Self {
        let stride = vector.len().next_multiple_of(LANES);
        let limit = query_limit(stride);
        let scale = scale_of(vector, limit);
        let mut values: Vec<i16> = vector
            .iter()
            .map(|&value| quantise(value, scale, limit) as i16)
            .collect();
        values.resize(stride, 0);
        let whole = length(values.iter().map(|&value| f32::from(value)));
        let tail = values.split_off(head_of(stride));
        Self {
            tail_length: length(tail.iter().map(|&value| f32::from(value))) * scale,
            head: values,
            tail,
            scale,
            error: error_of(vector, scale, limit),
            length: whole * scale,
        }
    }
}

/// The best similarities so far.
struct BestSimilarities {
    count: usize,
    /// A heap with the worst of them on top.
    heap: BinaryHeap<Reverse<Similarity>>,
}

impl BestSimilarities {
    fn new(count: usize) -> Self {
        Self {
            count,
            heap: BinaryHeap::with_capacity(count.min(1_024)),
        }
    }

    /// The worst of them; negative infinity while there are fewer than `count`.
    fn last(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(Similarity(last))) if self.heap.len() >= self.count => *last,
            _ => f32::NEG_INFINITY,
        }
    }

    fn insert(&mut self, similarity: f32) {
        if self.heap.len() < self.count {
            self.heap.push(Reverse(Similarity(similarity)));
        } else if similarity > self.last() {
            self.heap.pop();
            self.heap.push(Reverse(Similarity(similarity)));
        }
    }
}

/// A similarity with a total order, for a heap.
#[derive(PartialEq)]
struct Similarity(f32);

impl Eq for Similarity {}

impl Ord for Similarity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Similarity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn length(values: impl Iterator<Item = f32>) -> f32 {
    values.map(|value| value * value).sum::<f32>().sqrt()
}

fn scale_of(vector: &[f32], limit: f32) -> f32 {
    let largest = vector
        .iter()
        .fold(0.0f32, |largest, value| largest.max(value.abs()));
    // Never zero, so that nothing divides by it.
    (largest / limit).max(f32::MIN_POSITIVE)
}

fn quantise(value: f32, scale: f32, limit: f32) -> f32 {
    (value / scale).round().clamp(-limit, limit)
}

fn error_of(vector: &[f32], scale: f32, limit: f32) -> f32 {
    let squared: f32 = vector
        .iter()
        .map(|&value| (value - quantise(value, scale, limit) * scale).powi(2))
        .sum();
    squared.sqrt()
}

/// A dot product in blocks of a known length with one sum, which the compiler turns into multiply-and-add
/// instructions of eight products each. Sums by lane, or without blocks, take twice as long.
#[inline(always)]
fn dot(row: &[i8], query: &[i16]) -> i32 {
    let (row, _) = row.as_chunks::<LANES>();
    let (query, _) = query.as_chunks::<LANES>();
    let mut sum = 0;
    for (row, query) in row.iter().zip(query) {
        for lane in 0..LANES {
            sum += i32::from(row[lane]) * i32::from(query[lane]);
        }
    }
    sum
}
