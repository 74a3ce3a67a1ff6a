//! Embeddings and search: texts become vectors, vectors and words are searched, and both searches are
//! fused into one ranking. Everything here is pure computation on data that ships inside the binary:
//! no IO, no download, no start-up cost.
//!
//! [`StaticEmbedder`] is the default embedder of all crates. [`Embedder`] is the trait that a remote embedder
//! can implement. [`Bm25Index`] searches words, [`VectorIndex`] searches embeddings, and [`HybridIndex`] searches
//! both. [`CompactIndex`] searches more embeddings than should be in memory in full precision: the caller supplies
//! the exact vectors of the few best.
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
//! A static embedder ignores word order and negation: its vectors of "delete it" and "do not delete it" are
//! nearly the same. Never base a decision that matters on it alone.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

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

/// A search result with its score; higher is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored<K> {
    /// The entry that was found.
    pub id: K,
    /// The score.
    pub score: f32,
}
