//! Search by words: BM25 over short texts.

use crate::Scored;

/// The two numbers of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25Parameters {
    /// How soon repeating a word stops helping.
    pub k1: f32,
    /// How much long texts are held against, from 0 to 1.
    pub b: f32,
}

impl Default for Bm25Parameters {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

/// An index of texts by their words. Ids are the positions of the texts.
#[derive(Debug, Clone, Default)]
pub struct Bm25Index {}

impl Bm25Index {
    /// The index of `texts` with the default parameters.
    pub fn build<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::build_with(Bm25Parameters::default(), texts)
    }

    /// The index of `texts`.
    pub fn build_with<T: AsRef<str>>(
        parameters: Bm25Parameters,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        let _ = (parameters, texts.into_iter().count());
        Self {}
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `count` best texts that share a word with `query`, best first, ties by id.
    pub fn search(&self, query: &str, count: usize) -> Vec<Scored<usize>> {
        let _ = (query, count);
        Vec::new()
    }

    /// The score of every text for `query`, by position; zero where no word is shared.
    pub fn scores(&self, query: &str) -> Vec<f32> {
        let _ = query;
        Vec::new()
    }
}
