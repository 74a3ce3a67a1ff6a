//! Classes by their embeddings: the mean of each class in a whitened space, in which the examples of a
//! class have the same variance in all directions, and the embeddings of the examples themselves.

/// The weight of one example against one dimension in the covariance estimate. With few examples the
/// covariance is mostly noise, so it is shrunk to a sphere.
const EXAMPLE_WEIGHT: f32 = 0.1;

/// How many of the nearest examples are averaged.
const NEAREST: usize = 3;

/// The means of classes in a whitened space.
#[derive(Debug, Clone)]
pub(super) struct Means {
    dimension: usize,
    whitener: Whitener,
    /// One row per class, whitened.
    means: Vec<f32>,
}

/// The transform after which the examples of a class have unit variance in all directions.
#[derive(Debug, Clone)]
enum Whitener {
    /// A scalar: the covariance is taken to be a sphere.
    Factor(f32),
    /// The inverse of the covariance's Cholesky factor, row by row; above the diagonal are zeros.
    Triangle(Vec<f32>),
}

impl Means {
    /// Trains on `vectors`; every class must have at least one.
    pub(super) fn train(vectors: &Rows, labels: &[usize], classes: usize) -> Self {
        let dimension = vectors.dimension;
        let mut means = vec![0.0f32; classes * dimension];
        let mut counts = vec![0.0f32; classes];
        for (vector, &label) in vectors.iter().zip(labels) {
            counts[label] += 1.0;
            let mean = &mut means[label * dimension..(label + 1) * dimension];
            for (sum, value) in mean.iter_mut().zip(vector) {
                *sum += value;
            }
        }
        for (mean, count) in means.chunks_exact_mut(dimension).zip(counts) {
            mean.iter_mut().for_each(|sum| *sum /= count.max(1.0));
        }
        let mut model = Self {
            dimension,
            whitener: Whitener::train(vectors, labels, &means),
            means: Vec::new(),
        };
        let whitened = means
            .chunks_exact(dimension)
            .flat_map(|mean| model.whiten(mean));
        model.means = whitened.collect();
        model
    }

    /// A vector in the whitened space.
    pub(super) fn whiten(&self, vector: &[f32]) -> Vec<f32> {
        match &self.whitener {
            Whitener::Factor(factor) => vector.iter().map(|value| value * factor).collect(),
            Whitener::Triangle(rows) => rows
                .chunks_exact(self.dimension)
                .enumerate()
                .map(|(at, row)| dot(&row[..=at], &vector[..=at]))
                .collect(),
        }
    }

    /// The squared distance of a whitened vector to the mean of one class.
    pub(super) fn distance_to(&self, whitened: &[f32], class: usize) -> f32 {
        let begin = class * self.dimension;
        squared_distance(&self.means[begin..begin + self.dimension], whitened)
    }

    /// The squared distance of a whitened vector to every mean.
    pub(super) fn distances(&self, whitened: &[f32]) -> Vec<f32> {
        self.means
            .chunks_exact(self.dimension)
            .map(|mean| squared_distance(mean, whitened))
            .collect()
    }
}

impl Whitener {
    fn train(vectors: &Rows, labels: &[usize], means: &[f32]) -> Self {
        let dimension = vectors.dimension;
        let centred = |(vector, &label): (&[f32], &usize)| {
            squared_distance(vector, &means[label * dimension..(label + 1) * dimension])
        };
        let spread: f32 = vectors.iter().zip(labels).map(centred).sum();
        // Never zero, even if all examples of a class are equal.
        let sphere = (spread / vectors.len().max(1) as f32 / dimension as f32).max(1e-6);
        // Fewer examples than dimensions cannot estimate a covariance.
        if vectors.len() < dimension {
            return Self::Factor(sphere.sqrt().recip());
        }
        let covariance = covariance_within(vectors, labels, means, sphere);
        Self::Triangle(inverse_factor(covariance, dimension))
    }
}

/// The covariance within classes, shrunk to a sphere; the lower triangle.
fn covariance_within(vectors: &Rows, labels: &[usize], means: &[f32], sphere: f32) -> Vec<f32> {
    let dimension = vectors.dimension;
    let mut covariance = vec![0.0f32; dimension * dimension];
    let mut centred = vec![0.0f32; dimension];
    for (vector, &label) in vectors.iter().zip(labels) {
        let mean = &means[label * dimension..(label + 1) * dimension];
        for ((centred, value), mean) in centred.iter_mut().zip(vector).zip(mean) {
            *centred = value - mean;
        }
        for (row, &factor) in centred.iter().enumerate() {
            let sums = &mut covariance[row * dimension..=row * dimension + row];
            for (sum, value) in sums.iter_mut().zip(&centred) {
                *sum += factor * value;
            }
        }
    }
    let count = vectors.len().max(1) as f32;
    let shrinkage = dimension as f32 / (dimension as f32 + EXAMPLE_WEIGHT * count);
    for sum in &mut covariance {
        *sum *= (1.0 - shrinkage) / count;
    }
    for row in 0..dimension {
        covariance[row * dimension + row] += shrinkage * sphere;
    }
    covariance
}

/// The inverse of the Cholesky factor of a positive definite matrix, given its lower triangle.
fn inverse_factor(mut matrix: Vec<f32>, size: usize) -> Vec<f32> {
    for row in 0..size {
        for column in 0..=row {
            let (own, other) = (row * size, column * size);
            let done = dot(&matrix[own..own + column], &matrix[other..other + column]);
            let rest = matrix[own + column] - done;
            matrix[own + column] = if row == column {
                rest.max(1e-12).sqrt()
            } else {
                rest / matrix[other + column]
            };
        }
    }
    // Transposed while it is computed, so that the factors of a product are contiguous.
    let mut transposed = vec![0.0f32; size * size];
    for column in 0..size {
        let begin = column * size;
        transposed[begin + column] = matrix[begin + column].recip();
        for row in column + 1..size {
            let own = row * size;
            let done = dot(
                &matrix[own + column..own + row],
                &transposed[begin + column..begin + row],
            );
            transposed[begin + row] = -done / matrix[own + row];
        }
    }
    let mut inverse = vec![0.0f32; size * size];
    for row in 0..size {
        for column in 0..=row {
            inverse[row * size + column] = transposed[column * size + row];
        }
    }
    inverse
}

/// Vectors of the same length, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    dimension: usize,
    values: Vec<f32>,
}

impl Rows {
    pub(super) fn new(dimension: usize) -> Self {
        Self {
            dimension: dimension.max(1),
            values: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, vector: &[f32]) {
        self.values.extend_from_slice(vector);
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() / self.dimension
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimension)
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dimension..(row + 1) * self.dimension]
    }

    /// The mean similarity of `vector` to its nearest rows, without the row `except`.
    pub(super) fn nearness(
        &self,
        vector: &[f32],
        rows: impl Iterator<Item = usize>,
        except: Option<usize>,
    ) -> f32 {
        let mut best = [f32::NEG_INFINITY; NEAREST];
        for row in rows.filter(|&row| Some(row) != except) {
            let mut similarity = dot(self.row(row), vector);
            for place in &mut best {
                if similarity > *place {
                    std::mem::swap(place, &mut similarity);
                }
            }
        }
        let found = best.iter().filter(|best| best.is_finite());
        let count = found.clone().count();
        if count == 0 {
            0.0
        } else {
            found.sum::<f32>() / count as f32
        }
    }
}

/// Sums in lanes, which the compiler turns into vector instructions.
fn lane_sum(left: &[f32], right: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    const LANES: usize = 16;
    let (lefts, left_rest) = left.as_chunks::<LANES>();
    let (rights, right_rest) = right.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for (left, right) in lefts.iter().zip(rights) {
        for lane in 0..LANES {
            lanes[lane] += term(left[lane], right[lane]);
        }
    }
    let rest = left_rest.iter().zip(right_rest);
    lanes.iter().sum::<f32>() + rest.map(|(left, right)| term(*left, *right)).sum::<f32>()
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    lane_sum(left, right, |left, right| left * right)
}

fn squared_distance(left: &[f32], right: &[f32]) -> f32 {
    lane_sum(left, right, |left, right| (left - right) * (left - right))
}
