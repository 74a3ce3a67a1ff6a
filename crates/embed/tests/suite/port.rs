//! The trait `Embedder` fits an embedder in this process and a remote one.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use windlass_embed::{BoxFuture, EmbedError, Embedder, EmbedderHash, Embedding, StaticEmbedder};

/// Runs a future that is ready at the first poll.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// A remote embedder: whole batches, another dimension, failures.
struct RemoteEmbedder(EmbedderHash);

impl Embedder for RemoteEmbedder {
    fn embed_all<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Embedding>, EmbedError>> {
        Box::pin(async move {
            if texts.is_empty() {
                let source = Some(std::io::Error::other("connection refused").into());
                let message = "127.0.0.1:8080 does not answer".to_owned();
                return Err(EmbedError::Unavailable { message, source });
            }
            let embed = |text: &&str| Embedding::new(vec![text.len() as f32, 1.0]);
            let embeddings: Result<Vec<_>, _> = texts.iter().map(embed).collect();
            embeddings.map_err(|error| EmbedError::Malformed {
                message: error.to_string(),
            })
        })
    }

    fn name(&self) -> &str {
        "remote"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn fingerprint(&self) -> &EmbedderHash {
        &self.0
    }
}

#[test]
fn static_and_remote_embedders_implement_the_trait() {
    let remote = RemoteEmbedder(EmbedderHash::of(&[
        b"http://127.0.0.1:8080",
        b"model",
        b"2",
    ]));
    let embedders: [Box<dyn Embedder>; 2] = [Box::new(StaticEmbedder::new()), Box::new(remote)];
    for embedder in &embedders {
        let embeddings = ready(embedder.embed_all(&["one", "two words"])).unwrap();
        assert_eq!(embeddings.len(), 2);
        assert!(
            embeddings
                .iter()
                .all(|one| one.dimension() == embedder.dimension())
        );
    }
    assert_ne!(embedders[0].fingerprint(), embedders[1].fingerprint());
    let error = ready(embedders[1].embed_all(&[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the embedder is unavailable: 127.0.0.1:8080 does not answer"
    );
}

#[test]
fn trait_and_inherent_method_agree() {
    let embedder = StaticEmbedder::new();
    let texts = ["send a mail", "", "日本語"];
    let expected = texts.map(|text| embedder.embed(text));
    assert_eq!(ready(embedder.embed_all(&texts)).unwrap(), expected);
}
