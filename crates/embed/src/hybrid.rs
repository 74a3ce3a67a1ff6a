//! Search by words and meaning at once.

use crate::{Bm25Parameters, Embedding};

/// How both searches are weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HybridParameters {
    /// The parameters of the search by words.
    pub bm25: Bm25Parameters,
    /// What one unit of BM25 is worth beside a cosine.
    pub lexical_weight: f32,
}

impl Default for HybridParameters {
    fn default() -> Self {
        Self {
            bm25: Bm25Parameters::default(),
            lexical_weight: 0.03,
        }
    }
}

/// A text that was found, with both parts of its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HybridHit {
    /// The position of the text.
    pub id: usize,
    /// `cosine + lexical_weight * bm25`.
    pub score: f32,
    /// How similar in meaning.
    pub cosine: f32,
    /// How similar in words.
    pub bm25: f32,
}

/// Texts with their embeddings, searched by words and meaning. Ids are the positions of the texts.
#[derive(Debug, Clone)]
pub struct HybridIndex {}

impl HybridIndex {
    /// The index of texts with their embeddings.
    pub fn build<T: AsRef<str>>(
        parameters: HybridParameters,
        entries: impl IntoIterator<Item = (T, Embedding)>,
    ) -> Self {
        let _ = (parameters, entries.into_iter().count());
        Self {}
    }

    /// The `count` best texts for a query and its embedding, best first, ties by id.
    pub fn search(&self, query: &str, embedding: &Embedding, count: usize) -> Vec<HybridHit> {
        let _ = (query, embedding, count);
        Vec::new()
    }
}
