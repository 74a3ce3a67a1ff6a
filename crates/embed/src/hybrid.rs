//! Search by words and embeddings at once.
//!
//! The score is `cosine + lexical_weight * bm25`: a weighted sum of scores, not of ranks. Reciprocal rank
//! fusion needs no weight, but loses how much better one text is than another. Among the two to four tools an agent
//! usually has, ranks are nearly all ties, and it chose worse (.975 against .995 of 200 tasks); among hundreds of
//! tools it is about as good. A sum also keeps its parts, so that a caller can set a floor for the cosine.
//!
//! BM25 is not normalised by the best score: a query that shares only "the" with every text must not count as a
//! perfect match of words.

use crate::{Bm25Index, Bm25Parameters, DimensionMismatch, Embedding, Scored, VectorIndex};

/// The least number of candidates from each search.
const MIN_CANDIDATES: usize = 64;

/// The weights of both searches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HybridParameters {
    /// The parameters of the search by words.
    pub bm25: Bm25Parameters,
    /// The weight of BM25 relative to the cosine. The default was found with the built-in vectors;
    /// other embedders have other distributions of cosines.
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
    /// The cosine similarity of the embeddings.
    pub cosine: f32,
    /// The BM25 score.
    pub bm25: f32,
}

/// Texts with their embeddings, searched by words and meaning. Ids are the positions of the texts.
#[derive(Debug, Clone)]
pub struct HybridIndex {
    lexical_weight: f32,
    words: Bm25Index,
    meanings: VectorIndex<usize>,
}

impl HybridIndex {
    /// The index of texts with their embeddings, which have `dimension` components.
    pub fn build<T: AsRef<str>>(
        parameters: HybridParameters,
        dimension: usize,
        entries: impl IntoIterator<Item = (T, Embedding)>,
    ) -> Result<Self, DimensionMismatch> {
        let weight = parameters.lexical_weight;
        let mut index = Self {
            // Scores stay finite for any weight.
            lexical_weight: if weight.is_finite() {
                weight.clamp(0.0, 1e3)
            } else {
                0.0
            },
            words: Bm25Index::build_with(parameters.bm25, std::iter::empty::<&str>()),
            meanings: VectorIndex::new(dimension),
        };
        for (text, embedding) in entries {
            index.push(text.as_ref(), &embedding)?;
        }
        Ok(index)
    }

    /// Adds a text and returns its id, which is the number of texts before.
    pub fn push(&mut self, text: &str, embedding: &Embedding) -> Result<usize, DimensionMismatch> {
        self.meanings.insert(self.words.len(), embedding)?;
        Ok(self.words.push(text))
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The `count` best texts for a query and its embedding, best first, ties by id. Texts that share
    /// neither a word with the query nor any meaning are not found.
    ///
    /// The candidates are the best of each search, several times as many as are wanted. In a large index
    /// a text that ranks low in both is not considered.
    pub fn search(
        &self,
        query: &str,
        embedding: &Embedding,
        count: usize,
    ) -> Result<Vec<HybridHit>, DimensionMismatch> {
        let wanted = count.saturating_mul(4).max(MIN_CANDIDATES);
        let by_meaning = self.meanings.search(embedding, wanted, f32::MIN_POSITIVE)?;
        let scores = self.words.scores(query);
        let by_word = Bm25Index::best(&scores, wanted);

        let ids = |found: &[Scored<usize>]| found.iter().map(|hit| hit.id).collect::<Vec<_>>();
        let mut candidates = [ids(&by_meaning), ids(&by_word)].concat();
        candidates.sort_unstable();
        candidates.dedup();

        let mut hits: Vec<HybridHit> = candidates
            .into_iter()
            .map(|id| {
                let cosine = self.meanings.similarity(&id, embedding).unwrap_or_default();
                let bm25 = scores[id];
                HybridHit {
                    id,
                    score: cosine + self.lexical_weight * bm25,
                    cosine,
                    bm25,
                }
            })
            .collect();
        hits.sort_by(|left, right| {
            right
                .score
                .total_cmp(&left.score)
                .then(left.id.cmp(&right.id))
        });
        hits.truncate(count);
        Ok(hits)
    }
}
