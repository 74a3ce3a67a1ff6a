//! Meaning by static token vectors: how alike two short texts are. Blind to word order and negation,
//! so it only ever breaks ties between what words and forms leave open.

use windlass_embed::{Embedding, StaticEmbedder};

use crate::text::beginning;

/// How much of a text is compared.
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

    /// How alike two texts are, from -1 to 1.
    #[cfg(test)]
    pub(crate) fn likeness(&self, one: &str, other: &str) -> f32 {
        self.of(one).cosine(&self.of(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kindred_words_are_more_alike_than_strange_ones() {
        let meaning = Meaning::default();
        assert!(meaning.likeness("hobby", "jogging") > meaning.likeness("hobby", "invoice"));
    }
}
