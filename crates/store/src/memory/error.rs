//! The errors of memory.

use windlass_embed::{DimensionMismatch, EmbedError};

use crate::Error;

/// An error of memory.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The document is empty.
    #[error("there is nothing to remember: the text is empty")]
    Empty,
    /// The query is empty.
    #[error("the search query is empty\nhint: describe in a few words what to search for")]
    EmptyQuery,
    /// The document is larger than allowed.
    #[error(
        "the document has {} bytes; the limit is {limit} bytes\n\
         hint: split it into smaller documents",
        .bytes.map_or_else(|| format!("more than {}", .limit), |bytes| bytes.to_string())
    )]
    TooLarge {
        /// Its size, if that is known without reading all of it.
        bytes: Option<u64>,
        /// The limit.
        limit: u64,
    },
    /// The document is not text.
    #[error(
        "the document is not text in UTF-8: {what} at byte {at}\nhint: convert it to text first"
    )]
    Binary {
        /// The problem that was found.
        what: &'static str,
        /// The byte offset.
        at: usize,
    },
    /// There is no such document in the scopes that were named.
    #[error("there is no document `{0}` in this scope")]
    NoSuchDocument(String),
    /// The prefix of an id is too short.
    #[error(
        "`{0}` is too short to identify a document\n\
         hint: write `doc-` and at least six more characters; `windlass memory list` shows the ids"
    )]
    ShortId(String),
    /// Several documents have an id that begins with this prefix.
    #[error("several documents have an id that begins with `{0}`; write more of the id")]
    SeveralDocuments(String),
    /// The scope is not valid.
    #[error("a scope is `agent:NAME`, `principal` or `run:ID`, not `{0}`")]
    BadScope(String),
    /// The vectors were made by another embedder.
    #[error(
        "the memory was made with the embedder {kept}, but the current embedder is {given}; their vectors cannot be compared\n\
         hint: run `windlass memory reembed` to recompute all vectors; it changes nothing else"
    )]
    OtherEmbedder {
        /// The embedder that made the vectors.
        kept: String,
        /// The embedder in use.
        given: String,
    },
    /// Re-embedding with another embedder is not finished.
    #[error(
        "re-embedding the memory for {0} is not finished\n\
         hint: run `windlass memory reembed` to resume it"
    )]
    Reembedding(String),
    /// The embedder failed.
    #[error("the text could not be embedded: {0}")]
    Embedder(String),
    /// Another process uses the database, so the file could not be compacted.
    #[error(
        "the memory cannot be compacted while another process uses it\n\
         hint: wait until it has ended, then try again; forgotten documents are already out of the tables"
    )]
    InUse,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl MemoryError {
    /// Whether the store or the embedder failed, rather than that the request is not possible.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Embedder(_) | Self::InUse)
    }
}

impl From<EmbedError> for MemoryError {
    fn from(error: EmbedError) -> Self {
        Self::Embedder(error.to_string())
    }
}

impl From<DimensionMismatch> for MemoryError {
    fn from(error: DimensionMismatch) -> Self {
        Self::Embedder(error.to_string())
    }
}

impl From<rusqlite::Error> for MemoryError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}
