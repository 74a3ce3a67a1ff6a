//! Vectors in one byte a component, for a fast first look, with a bound on how wrong it can be.
//!
//! A row is a scale and whole numbers from -127 to 127. The loop over them is written so that the
//! compiler uses vector instructions; the query is kept in 16 bits so that it need not be widened for
//! every row. It is also rounded to 16 bits rather than 8, which costs nothing and leaves nearly all of
//! the error to the rows: the bound is half as wide, and far fewer rows reach over it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::Embedding;
use crate::vector_index::ROUNDING;

/// Rows are filled up with zeros to a multiple of this, so that the loop has no remainder.
const LANES: usize = 32;

const LIMIT: f32 = 127.0;

/// How many rows are decided about before their second parts are looked at. Deciding and looking by turns
/// would have the processor wait for each row; and what is known of a block stays in the fastest memory,
/// where that of a million rows would be written and read back.
const BLOCK: usize = 512;

/// Of the query. Products with rows must not overflow when they are summed.
fn query_limit(stride: usize) -> f32 {
    let products = 127 * i32::try_from(stride.max(1)).unwrap_or(i32::MAX / 127);
    (i32::MAX / products).min(i32::from(i16::MAX)) as f32
}

/// A vector in one byte a component, as it is stored: a scale, how far it is from the vector it stands
/// for, and whole numbers from -127 to 127.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactVector {
    scale: f32,
    error: f32,
    values: Box<[i8]>,
}

/// Bytes that are no compact vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored compact vector is damaged: {0}")]
pub struct DamagedVector(&'static str);

impl CompactVector {
    /// What stands for `embedding`.
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

    /// Whether it stands for the embedding of a text in which nothing is known.
    pub fn is_zero(&self) -> bool {
        self.values.iter().all(|&value| value == 0)
    }

    /// The bytes to store: scale and error, little endian, then a byte a component.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.values.len());
        bytes.extend(self.scale.to_le_bytes());
        bytes.extend(self.error.to_le_bytes());
        bytes.extend(self.values.iter().map(|&value| value as u8));
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) stored.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedVector> {
        let (scale, rest) = bytes
            .split_first_chunk()
            .ok_or(DamagedVector("it has no scale"))?;
        let (error, values) = rest
            .split_first_chunk()
            .ok_or(DamagedVector("it has no error"))?;
        let (scale, error) = (f32::from_le_bytes(*scale), f32::from_le_bytes(*error));
        // A unit vector has no larger ones. Written so that NaN fails too.
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

/// Many vectors in one byte a component.
///
/// A scan is as fast as memory is read, so it is made to read less: each row is kept in two parts, and how
/// long the second is. The product of the first parts and the lengths of the second ones bound the whole
/// product; most rows are out of question by that alone.
#[derive(Debug, Clone)]
pub(crate) struct QuantisedRows {
    /// How many components the first and the second part have.
    head: usize,
    tail: usize,
    heads: Vec<i8>,
    tails: Vec<i8>,
    facts: Vec<Facts>,
    /// The largest error there ever was.
    most_error: f32,
}

/// What is known of a row besides its components.
#[derive(Debug, Clone, Copy)]
struct Facts {
    scale: f32,
    /// How far the row is from the vector it stands for.
    error: f32,
    /// How long its second part is.
    tail_length: f32,
}

/// A row that may be among the most similar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaching {
    pub(crate) row: usize,
    /// How similar it is, approximately.
    pub(crate) similarity: f32,
}

/// Takes the `count` rows that look most similar out of all; in no order.
pub(crate) fn take_best(all: &mut Vec<Reaching>, count: usize) -> Vec<Reaching> {
    if count < all.len() {
        all.select_nth_unstable_by(count, |left, right| {
            let order = right.similarity.total_cmp(&left.similarity);
            order.then(left.row.cmp(&right.row))
        });
    }
    let rest = all.split_off(count.min(all.len()));
    std::mem::replace(all, rest)
}

/// The vector that is looked for.
#[derive(Debug)]
pub(crate) struct QuantisedQuery {
    head: Vec<i16>,
    tail: Vec<i16>,
    scale: f32,
    /// How far it is from the vector it stands for.
    error: f32,
    length: f32,
    tail_length: f32,
}

/// How many components the first part has: so many that few rows are in question after it, which is
/// cheaper than to read less first and more of the others. Embedders that put what matters most first, as
/// ours does, gain most.
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
        self.facts.push(Facts {
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

    /// Every row that can be among the `count` most similar to `query` and at least `floor` similar, with
    /// its approximate similarity; a few that cannot, too.
    ///
    /// Let t be the `count`th best approximate similarity so far. The `count`th best of all is really at
    /// least t less the largest error. A row that reaches not even that, with all that its second part
    /// and its own error may add, is not among the best.
    pub(crate) fn reaching(
        &self,
        query: &QuantisedQuery,
        count: usize,
        floor: f32,
    ) -> Vec<Reaching> {
        let mut best = Best::new(count);
        let mut found = Vec::new();
        let of_query = query.error + ROUNDING;
        let most_error = of_query + query.length * self.most_error;
        let mut heads = [0.0; BLOCK];
        let mut reaching = [0; BLOCK];
        for (block, facts) in self.facts.chunks(BLOCK).enumerate() {
            let begin = block * BLOCK;
            // The first parts of a block in one go: a loop that decides nothing is not held up by decisions
            // that come out otherwise than guessed, and reads ahead.
            let rows = self.heads[begin * self.head..].chunks_exact(self.head.max(1));
            for ((similarity, row), facts) in heads.iter_mut().zip(rows).zip(facts) {
                *similarity = dot(row, &query.head) as f32 * (facts.scale * query.scale);
            }
            let reached = (best.last() - most_error).max(floor) - of_query;
            let mut count = 0;
            for (row, (similarity, facts)) in heads.iter().zip(facts).enumerate() {
                let most =
                    similarity + facts.tail_length * query.tail_length + query.length * facts.error;
                reaching[count] = row;
                count += usize::from(most >= reached);
            }
            for &row in &reaching[..count] {
                let tail = (begin + row) * self.tail;
                let tail = &self.tails[tail..tail + self.tail];
                let factor = facts[row].scale * query.scale;
                let similarity = heads[row] + dot(tail, &query.tail) as f32 * factor;
                best.take(similarity);
                found.push(Reaching {
                    row: begin + row,
                    similarity,
                });
            }
        }
        found
    }

    /// How wrong the approximate similarity of `row` to `query` can be.
    ///
    /// With q and r the unit vectors and q', r' what stands for them,
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
struct Best {
    count: usize,
    /// The worst of them first.
    heap: BinaryHeap<Reverse<Similarity>>,
}

impl Best {
    fn new(count: usize) -> Self {
        Self {
            count,
            heap: BinaryHeap::with_capacity(count.min(1_024)),
        }
    }

    /// The last of them; less than anything while there are fewer than were asked for.
    fn last(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(Similarity(last))) if self.heap.len() >= self.count => *last,
            _ => f32::NEG_INFINITY,
        }
    }

    fn take(&mut self, similarity: f32) {
        if self.heap.len() < self.count {
            self.heap.push(Reverse(Similarity(similarity)));
        } else if similarity > self.last() {
            self.heap.pop();
            self.heap.push(Reverse(Similarity(similarity)));
        }
    }
}

/// In the order of numbers, so that a heap can be kept of them.
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

/// In blocks of a known length and with one plain sum, which the compiler turns into multiply-and-add
/// instructions of eight products each; sums by lane, or without blocks, take twice as long.
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
