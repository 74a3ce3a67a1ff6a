//! Vectors in one byte a component, for a fast first look, with a bound on how wrong it can be.
//!
//! A row is a scale and whole numbers from -127 to 127. The loop over them is written so that the
//! compiler uses vector instructions; the query is kept in 16 bits so that it need not be widened for
//! every row.

/// Rows are filled up with zeros to a multiple of this, so that the loop has no remainder.
const LANES: usize = 32;

const LIMIT: f32 = 127.0;

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

    pub(crate) fn push(&mut self, vector: &[f32]) {
        let scale = scale_of(vector);
        let end = self.values.len() + self.stride;
        self.values
            .extend(vector.iter().map(|&value| quantise(value, scale) as i8));
        self.values.resize(end, 0);
        self.scales.push(scale);
        self.errors.push(error_of(vector, scale));
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
        let scale = scale_of(vector);
        let mut values: Vec<i16> = vector
            .iter()
            .map(|&value| quantise(value, scale) as i16)
            .collect();
        values.resize(vector.len().next_multiple_of(LANES), 0);
        let squared: f32 = values.iter().map(|&value| f32::from(value).powi(2)).sum();
        Self {
            values,
            scale,
            error: error_of(vector, scale),
            length: squared.sqrt() * scale,
        }
    }
}

fn scale_of(vector: &[f32]) -> f32 {
    let largest = vector
        .iter()
        .fold(0.0f32, |largest, value| largest.max(value.abs()));
    // Never zero, so that nothing divides by it.
    (largest / LIMIT).max(f32::MIN_POSITIVE)
}

fn quantise(value: f32, scale: f32) -> f32 {
    (value / scale).round().clamp(-LIMIT, LIMIT)
}

fn error_of(vector: &[f32], scale: f32) -> f32 {
    let squared: f32 = vector
        .iter()
        .map(|&value| (value - quantise(value, scale) * scale).powi(2))
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
