//! Memory: documents that were told to be remembered, found again by meaning and words.
//!
//! A document is split into chunks (`split`); each is embedded, and stored with its words. Everything is
//! of one [`MemoryScope`], and every question names the scopes it may see. The vectors are scanned in
//! memory in one byte a component (`index`) and compared in full precision from the database; words are
//! found by the database's own index (`words`); `search` puts both together. Who may name which scope,
//! and what follows from a memory that is tainted, is decided elsewhere.

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
    DEFAULT_MAX_DOCUMENT_BYTES, MemoryScope, NewDocument, Reach, RememberOutcome, Remembered,
    StoredDocument, document_text,
};
pub use error::MemoryError;
pub use read::{MemoryStatistics, ScopeStatistics};
pub use search::MemoryHit;
pub use upkeep::Reembedded;

/// How many texts are embedded at a time, so that a remote embedder is not sent megabytes at once.
const EMBEDDED_AT_ONCE: usize = 256;

/// The memory in a store, with the embedder that understands its texts.
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
    /// The memory in `store`, with the embedder that ships inside the program. Nothing is read yet.
    #[must_use]
    pub fn new(store: Arc<Store>) -> Self {
        Self::with_embedder(store, Arc::new(StaticEmbedder::new()))
    }

    /// The memory in `store`, with another embedder. What another one stored is refused, not mixed.
    #[must_use]
    pub fn with_embedder(store: Arc<Store>, embedder: Arc<dyn Embedder>) -> Self {
        Self {
            store,
            embedder,
            max_document_bytes: DEFAULT_MAX_DOCUMENT_BYTES,
            indexes: Indexes::default(),
        }
    }

    /// The same memory with another limit to the size of documents.
    #[must_use]
    pub fn with_max_document_bytes(mut self, bytes: u64) -> Self {
        self.max_document_bytes = bytes;
        self
    }

    /// How large a document may be.
    #[must_use]
    pub fn max_document_bytes(&self) -> u64 {
        self.max_document_bytes
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, MemoryError> {
        let mut embeddings = Vec::with_capacity(texts.len());
        for texts in texts.chunks(EMBEDDED_AT_ONCE) {
            let some = wait_for(self.embedder.embed_all(texts))?;
            if some.len() != texts.len() {
                let message = "it gave another number of vectors than there are texts";
                return Err(MemoryError::Embedder(message.to_owned()));
            }
            embeddings.extend(some);
        }
        let dimension = self.embedder.dimension();
        match embeddings
            .iter()
            .find(|embedding| embedding.dimension() != dimension)
        {
            None => Ok(embeddings),
            Some(other) => Err(MemoryError::Embedder(format!(
                "it promised vectors of {dimension} components and gave one of {}",
                other.dimension()
            ))),
        }
    }
}

fn told(name: &str, dimension: impl std::fmt::Display) -> String {
    format!("`{name}` ({dimension} components)")
}

/// Waits for a future on this thread, which may wait like everything here.
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
