//! Similarity of short texts by static token vectors. It ignores word order and negation, so it only decides
//! where words and forms do not.

use windlass_embed::{Embedding, StaticEmbedder};

use crate::text::beginning;

/// The most bytes of a text that are compared.
const LONGEST: usize = 2_000;

/// Compares texts by meaning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meaning {
    embedder: StaticEmbedder,
}

impl Meaning {
    /// The vector of a text.
    pub(crate) fn of(&self, text: &str) -> Embedding {
        self.embedder.embed(beginning(text, LONGEST))
    }

    /// The similarity of two texts, from -1 to 1.
    #[cfg(test)]
    pub(crate) fn similarity(&self, one: &str, other: &str) -> f32 {
        self.of(one).cosine(&self.of(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_words_are_more_similar_than_unrelated_ones() {
        let meaning = Meaning::default();
        assert!(meaning.similarity("hobby", "jogging") > meaning.similarity("hobby", "invoice"));
    }
}
