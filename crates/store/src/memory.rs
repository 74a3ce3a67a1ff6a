//! Memory: stored documents, searched by meaning and words.
//!
//! A document is split into chunks (`split`). Each chunk is embedded and stored with its words. Every document
//! belongs to one [`MemoryScope`], and every query names the scopes it may see. The vectors are scanned in
//! memory with one byte per component (`index`) and compared in full precision from the database. Words are
//! found by SQLite's full-text index (`words`). `search` combines both. Which caller may name which scope,
//! and what follows from a tainted memory, is decided elsewhere.

mod document;
mod error;
mod index;
mod read;
mod search;
mod sources;
mod split;
mod upkeep;
mod words;
mod write;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use windlass_embed::{Embedder, Embedding, StaticEmbedder};

use crate::store::Store;
use index::Indexes;

pub use document::{
    DEFAULT_MAX_DOCUMENT_BYTES, MemoryScope, NewDocument, RememberOutcome, RememberedDocument,
    ScopeReach, StoredDocument, document_text,
};
pub use error::MemoryError;
pub use read::{MemoryStatistics, ScopeStatistics};
pub use search::MemoryHit;
pub use upkeep::ReembedReport;

/// How many texts are embedded at a time, so that one request to a remote embedder stays small.
const EMBEDDED_AT_ONCE: usize = 256;

/// The memory in a store, with the embedder of its texts.
pub struct Memory {
    store: Arc<Store>,
    embedder: Arc<dyn Embedder>,
    max_document_bytes: u64,
    indexes: Indexes,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("store", &self.store)
            .field("embedder", &self.embedder.name())
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// The memory in `store`, with the built-in embedder. Nothing is read yet.
    #[must_use]
    pub fn new(store: Arc<Store>) -> Self {
        Self::with_embedder(store, Arc::new(StaticEmbedder::new()))
    }

    /// The memory in `store`, with another embedder. Vectors of different embedders are refused, not mixed.
    #[must_use]
    pub fn with_embedder(store: Arc<Store>, embedder: Arc<dyn Embedder>) -> Self {
        Self {
            store,
            embedder,
            max_document_bytes: DEFAULT_MAX_DOCUMENT_BYTES,
            indexes: Indexes::default(),
        }
    }

    /// Sets the maximum size of documents.
    #[must_use]
    pub fn with_max_document_bytes(mut self, bytes: u64) -> Self {
        self.max_document_bytes = bytes;
        self
    }

    /// The maximum size of a document in bytes.
    #[must_use]
    pub fn max_document_bytes(&self) -> u64 {
        self.max_document_bytes
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, MemoryError> {
        let mut embeddings = Vec::with_capacity(texts.len());
        for texts in texts.chunks(EMBEDDED_AT_ONCE) {
            let batch = wait_for(self.embedder.embed_all(texts))?;
            if batch.len() != texts.len() {
                let message = "the embedder returned a different number of vectors than texts";
                return Err(MemoryError::Embedder(message.to_owned()));
            }
            embeddings.extend(batch);
        }
        let dimension = self.embedder.dimension();
        match embeddings
            .iter()
            .find(|embedding| embedding.dimension() != dimension)
        {
            None => Ok(embeddings),
            Some(other) => Err(MemoryError::Embedder(format!(
                "the embedder declares vectors of {dimension} components but returned one of {}",
                other.dimension()
            ))),
        }
    }
}

fn describe_embedder(name: &str, dimension: impl std::fmt::Display) -> String {
    format!("`{name}` ({dimension} components)")
}

/// Blocks this thread until a future is ready.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
