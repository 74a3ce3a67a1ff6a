//! Tests that vectors of two embedders are never mixed, and of re-embedding.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_embed::{BoxFuture, EmbedError, Embedder, EmbedderHash, Embedding};
use windlass_store::{Memory, MemoryError, NewDocument, Store};

use super::{at, found, opened, scope};

/// An embedder that counts letters, and fails after a number of texts.
struct LetterEmbedder {
    hash: EmbedderHash,
    left: AtomicUsize,
}

impl LetterEmbedder {
    fn with_text_limit(texts: usize) -> Arc<Self> {
        Arc::new(Self {
            hash: EmbedderHash::of(&[b"letters"]),
            left: AtomicUsize::new(texts),
        })
    }
}

impl Embedder for LetterEmbedder {
    fn embed_all<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Embedding>, EmbedError>> {
        Box::pin(async move {
            if self.left.fetch_sub(
                texts.len().min(self.left.load(Ordering::SeqCst)),
                Ordering::SeqCst,
            ) < texts.len()
            {
                let message = "the server went away".to_owned();
                return Err(EmbedError::Unavailable {
                    message,
                    source: None,
                });
            }
            let letters = |text: &&str| {
                let mut counts = vec![0.0; 26];
                for byte in text.bytes().filter(u8::is_ascii_alphabetic) {
                    counts[usize::from(byte.to_ascii_lowercase() - b'a')] += 1.0;
                }
                Embedding::new(counts)
            };
            let embeddings: Result<Vec<_>, _> = texts.iter().map(letters).collect();
            embeddings.map_err(|error| EmbedError::Malformed {
                message: error.to_string(),
            })
        })
    }

    fn name(&self) -> &str {
        "letters"
    }

    fn dimension(&self) -> usize {
        26
    }

    fn fingerprint(&self) -> &EmbedderHash {
        &self.hash
    }
}

#[test]
fn a_memory_of_another_embedder_is_refused_and_names_both() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("principal")];
    memory
        .remember(
            &own[0],
            NewDocument::new("The mill stands by the river.", at(1)),
        )
        .unwrap();
    let store = Arc::new(Store::open(directory.path().join("windlass.db")).unwrap());
    let other = Memory::with_embedder(store, LetterEmbedder::with_text_limit(100));
    let refused = other.search(&own, "mill", 5).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the memory was made with the embedder `static-256` (256 components), but the current embedder is \
         `letters` (26 components); their vectors cannot be compared\n\
         hint: run `windlass memory reembed` to recompute all vectors; it changes nothing else"
    );
    let refused = other
        .remember(&own[0], NewDocument::new("Another.", at(2)))
        .unwrap_err();
    assert!(matches!(refused, MemoryError::OtherEmbedder { .. }));
    assert_eq!(found(&memory, &own, "mill").len(), 1);
}

#[test]
fn re_embedding_resumes_where_it_was_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("principal")];
    for number in 0..600 {
        let what = format!("Lot {number} is kept.");
        memory
            .remember(&own[0], NewDocument::new(what, at(1)))
            .unwrap();
    }
    assert_eq!(found(&memory, &own, "lot").len(), 10);
    let with = |embedder: Arc<LetterEmbedder>| {
        let store = Arc::new(Store::open(directory.path().join("windlass.db")).unwrap());
        Memory::with_embedder(store, embedder)
    };
    let broken = with(LetterEmbedder::with_text_limit(300));
    let mut progress = Vec::new();
    let failure = broken
        .reembed(|done, all| progress.push((done, all)))
        .unwrap_err();
    assert!(
        failure.to_string().contains("the server went away"),
        "{failure}"
    );
    assert_eq!(progress, [(256, 600)]);
    for half in [&memory, &with(LetterEmbedder::with_text_limit(9))] {
        let refused = half.search(&own, "lot", 5).unwrap_err();
        assert!(matches!(refused, MemoryError::Reembedding(_)), "{refused}");
    }
    let other = with(LetterEmbedder::with_text_limit(2_000));
    assert_eq!(other.reembed(|_, _| ()).unwrap().chunks, 600 - 256);
    let hits = other.search(&own, "Lot 599 is kept.", 5).unwrap();
    assert!((hits[0].cosine - 1.0).abs() < 1e-4);
    assert_eq!(hits[0].text, "Lot 599 is kept.");
    assert_eq!(other.reembed(|_, _| ()).unwrap().chunks, 0);
    let refused = memory.search(&own, "lot", 5).unwrap_err();
    assert!(matches!(refused, MemoryError::OtherEmbedder { .. }));
    // Back to the first embedder, in the first process.
    assert_eq!(memory.reembed(|_, _| ()).unwrap().chunks, 600);
    assert_eq!(found(&memory, &own, "lot 17")[0], "Lot 17 is kept.");
}
