//! Vectors in one byte a component, for a fast first look, with a bound on how wrong it can be.
//!
//! A row is a scale and whole numbers from -127 to 127. The loop over them is written so that the
//! compiler uses vector instructions; the query is kept in 16 bits so that it need not be widened for
//! every row. It is also rounded to 16 bits rather than 8, which costs nothing and leaves nearly all of
//! the error to the rows: the bound is half as wide, and far fewer rows reach over it.

use crate::Embedding;

/// Rows are filled up with zeros to a multiple of this, so that the loop has no remainder.
const LANES: usize = 32;

const LIMIT: f32 = 127.0;

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
#[derive(Debug, Clone)]
pub(crate) struct QuantisedRows {
    stride: usize,
    values: Vec<i8>,
    scales: Vec<f32>,
    /// How far each row is from the vector it stands for.
    errors: Vec<f32>,
}

/// The vector that is looked for.
#[derive(Debug)]
pub(crate) struct QuantisedQuery {
    values: Vec<i16>,
    scale: f32,
    /// How far it is from the vector it stands for.
    error: f32,
    length: f32,
}

impl QuantisedRows {
    pub(crate) fn new(dimension: usize) -> Self {
        let stride = dimension.next_multiple_of(LANES);
        Self {
            stride,
            values: Vec::new(),
            scales: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, vector: &CompactVector) {
        let end = self.values.len() + self.stride;
        self.values.extend_from_slice(&vector.values);
        self.values.resize(end, 0);
        self.scales.push(vector.scale);
        self.errors.push(vector.error);
    }

    pub(crate) fn swap_remove(&mut self, row: usize) {
        let last = self.values.len() - self.stride;
        self.values.copy_within(last.., row * self.stride);
        self.values.truncate(last);
        self.scales.swap_remove(row);
        self.errors.swap_remove(row);
    }

    /// The approximate similarity of every row to `query`.
    pub(crate) fn similarities(&self, query: &QuantisedQuery) -> Vec<f32> {
        let rows = self.values.chunks_exact(self.stride.max(1));
        rows.zip(&self.scales)
            .map(|(row, scale)| dot(row, &query.values) as f32 * (scale * query.scale))
            .collect()
    }

    /// How wrong the approximate similarity of `row` to `query` can be.
    ///
    /// With q and r the unit vectors and q', r' what stands for them,
    /// |q.r - q'.r'| <= |q - q'| |r| + |q'| |r - r'|.
    pub(crate) fn error(&self, row: usize, query: &QuantisedQuery) -> f32 {
        query.error + query.length * self.errors[row]
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
        let squared: f32 = values.iter().map(|&value| f32::from(value).powi(2)).sum();
        Self {
            values,
            scale,
            error: error_of(vector, scale, limit),
            length: squared.sqrt() * scale,
        }
    }
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
