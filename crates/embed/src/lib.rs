//! Meaning without a model: texts become vectors, vectors and words are searched, both searches are
//! fused into one ranking. Everything here is pure computation on data that ships inside the binary:
//! no IO, no download, no start-up cost.
//!
//! [`StaticEmbedder`] is the embedder every other room gets by default. [`Embedder`] is the port that a
//! remote one can stand behind. [`Bm25Index`] finds words, [`VectorIndex`] finds meanings,
//! [`HybridIndex`] finds both. [`CompactIndex`] finds meanings among more vectors than should be in memory
//! in full precision: whoever keeps them is asked for the few that matter.
//!
//! ```
//! use windlass_embed::StaticEmbedder;
//!
//! let embedder = StaticEmbedder::new();
//! let [task, tool, other] =
//!     ["delete a file", "remove documents", "weather forecast"].map(|text| embedder.embed(text));
//! assert!(task.cosine(&tool) > task.cosine(&other));
//! ```
//!
//! A static embedder knows neither word order nor negation: "delete it" and "do not delete it" are
//! nearly the same to it. Never let it alone decide anything that matters.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests read files"
    )
)]

mod bm25;
mod compact_index;
mod embedder;
mod embedding;
mod hybrid;
mod identifier;
mod quantised;
mod static_embedder;
mod vector_index;
mod vocabulary;
mod words;

pub use bm25::{Bm25Index, Bm25Parameters, search_words};
pub use compact_index::{CompactFound, CompactIndex};
pub use embedder::{BoxFuture, EmbedError, Embedder, EmbedderHash, EmbedderHashError};
pub use embedding::{Embedding, NotFinite, StoredEmbeddingError};
pub use hybrid::{HybridHit, HybridIndex, HybridParameters};
pub use identifier::{split_identifier, tool_text, tool_text_with_parameters};
pub use quantised::{CompactVector, DamagedVector};
pub use static_embedder::StaticEmbedder;
pub use vector_index::{DimensionMismatch, VectorIndex};

/// An entry that a search found and how well it fits; more is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored<K> {
    /// What was found.
    pub id: K,
    /// How well it fits.
    pub score: f32,
}
