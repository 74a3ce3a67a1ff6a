//! One embedding: a vector of unit length, or the zero vector if nothing is known. No other vector can
//! be constructed, so callers never see a NaN and never normalise.

use std::fmt;

use crate::EmbedderHash;

/// How far from 1 the squared length of a stored vector may be. Rounding to f32 stays far below it.
const UNIT_TOLERANCE: f64 = 1e-3;

/// The embedding of a text: a vector of unit length, or zero if nothing in the text is known.
#[derive(Clone, PartialEq)]
pub struct Embedding(Box<[f32]>);

/// A vector with a component that is infinite or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("component {index} of the vector is not a finite number")]
pub struct NotFinite {
    /// The index of the component.
    pub index: usize,
}

/// Why stored bytes are not an embedding that may be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredEmbeddingError {
    /// Another embedder made it.
    #[error("the vector was made by embedder {found}, not {expected}; embed the text again")]
    OtherEmbedder {
        /// The embedder whose vector is wanted.
        expected: EmbedderHash,
        /// The embedder that made the vector.
        found: EmbedderHash,
    },
    /// The bytes are not an embedding.
    #[error("the stored vector is damaged ({reason}); embed the text again")]
    Damaged {
        /// What is wrong with them.
        reason: &'static str,
    },
}

impl Embedding {
    /// The embedding in the direction of `values`; zero if all of them are zero.
    pub fn new(mut values: Vec<f32>) -> Result<Self, NotFinite> {
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(NotFinite { index });
        }
        normalise(&mut values);
        Ok(Self(values.into()))
    }

    /// The embedding of a text in which nothing is known: similar to nothing, not even to itself.
    pub fn zero(dimension: usize) -> Self {
        Self(vec![0.0; dimension].into())
    }

    /// The components.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// How many components there are.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }

    /// Whether it is the zero vector.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&value| value == 0.0)
    }

    /// The cosine similarity of two embeddings, from -1 to 1. Zero if either is zero, and zero between
    /// embeddings of different dimensions, which come from different embedders.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.dimension() != other.dimension() {
            return 0.0;
        }
        dot(&self.0, &other.0).clamp(-1.0, 1.0)
    }

    /// The bytes to store: the fingerprint of the embedder, then the components, little endian.
    pub fn to_bytes(&self, embedder: &EmbedderHash) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(EmbedderHash::BYTES + 4 * self.0.len());
        bytes.extend_from_slice(embedder.as_bytes());
        bytes.extend(self.0.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, if `embedder` made it.
    pub fn from_bytes(bytes: &[u8], embedder: &EmbedderHash) -> Result<Self, StoredEmbeddingError> {
        let damaged = |reason| StoredEmbeddingError::Damaged { reason };
        let (fingerprint, components) = bytes
            .split_first_chunk()
            .ok_or(damaged("too short for a fingerprint"))?;
        let found = EmbedderHash::from_bytes(*fingerprint);
        if found != *embedder {
            return Err(StoredEmbeddingError::OtherEmbedder {
                expected: *embedder,
                found,
            });
        }
        let (components, rest) = components.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(damaged("its length is not a whole number of components"));
        }
        let values: Box<[f32]> = components
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect();
        let squared = squared_length(&values);
        // Written so that NaN fails too.
        if squared == 0.0 || (squared - 1.0).abs() <= UNIT_TOLERANCE {
            Ok(Self(values))
        } else {
            Err(damaged("it is neither of unit length nor zero"))
        }
    }

    /// Normalises a sum that is known to be finite.
    pub(crate) fn from_finite(mut values: Vec<f32>) -> Self {
        normalise(&mut values);
        Self(values.into())
    }
}

impl fmt::Debug for Embedding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All components would make a failed assertion unreadable.
        let shown = &self.0[..self.0.len().min(4)];
        write!(
            formatter,
            "Embedding({} components: {shown:?}..)",
            self.0.len()
        )
    }
}

/// The sum of products, in lanes so that the compiler may use vector instructions: it must not
/// reorder a plain float sum by itself.
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (left_chunks, left_rest) = left.as_chunks::<LANES>();
    let (right_chunks, right_rest) = right.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for (left, right) in left_chunks.iter().zip(right_chunks) {
        for lane in 0..LANES {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest
        .iter()
        .zip(right_rest)
        .map(|(left, right)| left * right)
        .sum();
    lanes.iter().sum::<f32>() + rest
}

/// Squares in f64: no finite f32 overflows or vanishes there.
fn squared_length(values: &[f32]) -> f64 {
    values
        .iter()
        .map(|&value| f64::from(value) * f64::from(value))
        .sum()
}

fn normalise(values: &mut [f32]) {
    let squared = squared_length(values);
    if squared > 0.0 {
        let factor = squared.sqrt().recip();
        for value in values {
            *value = (f64::from(*value) * factor) as f32;
        }
    }
}
