//! What can be wrong with what is to be remembered or looked for.

use windlass_embed::{DimensionMismatch, EmbedError};

use crate::Error;

/// Why memory did not do what it was asked to.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no text.
    #[error("there is nothing to remember: the text is empty")]
    Empty,
    /// There is nothing to look for.
    #[error(
        "there is nothing to look for: the query is empty\nhint: say in a few words what it is about"
    )]
    EmptyQuery,
    /// The document is larger than allowed.
    #[error(
        "the document has {} bytes, and at most {limit} are taken\n\
         hint: split it into smaller documents",
        .bytes.map_or_else(|| format!("more than {}", .limit), |bytes| bytes.to_string())
    )]
    TooLarge {
        /// How large it is, if that is known without reading all of it.
        bytes: Option<u64>,
        /// The limit.
        limit: u64,
    },
    /// The document is no text.
    #[error(
        "the document is not text in UTF-8: {what} at byte {at}\nhint: convert it to text first"
    )]
    Binary {
        /// What was found.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// There is no such document in the scopes that were named.
    #[error("there is no document `{0}` in this scope")]
    NoSuchDocument(String),
    /// So little of an id names no document.
    #[error(
        "`{0}` is too short to name a document\n\
         hint: write `doc-` and at least six characters more; `windlass memory list` shows them"
    )]
    ShortId(String),
    /// Several documents have an id that begins like this.
    #[error("several documents have an id that begins with `{0}`; write more of it")]
    SeveralDocuments(String),
    /// A scope is not named as it must be.
    #[error("a scope is `agent:NAME`, `principal` or `run:ID`, not `{0}`")]
    BadScope(String),
    /// The vectors were made by another embedder.
    #[error(
        "the memory was made with the embedder {kept}, and this is {given}; their vectors cannot be compared\n\
         hint: `windlass memory reembed` makes all vectors anew; nothing else is changed"
    )]
    OtherEmbedder {
        /// The one that made them.
        kept: String,
        /// The one in use.
        given: String,
    },
    /// One embedder is taking over from another.
    #[error(
        "the memory is being re-embedded for {0}, and was not finished\n\
         hint: `windlass memory reembed` goes on with it"
    )]
    Reembedding(String),
    /// The embedder failed.
    #[error("the text could not be embedded: {0}")]
    Embedder(String),
    /// Others use the database, so it could not be made smaller.
    #[error(
        "the memory cannot be compacted while another process uses it\n\
         hint: wait until it has ended, then try again; what was forgotten is already out of the tables"
    )]
    InUse,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl MemoryError {
    /// Whether the store failed, rather than that what was wanted is not possible.
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
