//! The trait of all embedders, whether they compute in this process or call a server, and the fingerprint that
//! distinguishes their vectors.

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Embedding;

/// A boxed future, as trait objects need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of embeddings.
///
/// The trait embeds a batch and may fail, because a remote embedder needs a round trip and the network is
/// not reliable. [`StaticEmbedder`](crate::StaticEmbedder) needs neither and has an infallible inherent `embed`.
/// Through this trait it is ready at the first poll, so a caller without a runtime can use any executor.
pub trait Embedder: Send + Sync {
    /// One embedding per text, in the same order, each with [`dimension`](Self::dimension) components.
    fn embed_all<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Embedding>, EmbedError>>;

    /// The name for people.
    fn name(&self) -> &str;

    /// How many components each embedding has.
    fn dimension(&self) -> usize;

    /// Identifies the embedder. Vectors with different fingerprints must never be compared, and
    /// thresholds for one embedder do not apply to another.
    fn fingerprint(&self) -> &EmbedderHash;
}

/// Why texts could not be embedded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The embedder could not be reached or refused; trying again later may help.
    #[error("the embedder is unavailable: {message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// The underlying error, if any.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The embedder answered, but not with what was asked for; trying again will not help.
    #[error("the embedder's answer cannot be used: {message}")]
    Malformed {
        /// What was wrong with the answer.
        message: String,
    },
}

/// A fingerprint of an embedder: of its vectors, its vocabulary and its tokeniser.
///
/// It protects against mistakes, not against attacks: 128 bits of FNV-1a over length-prefixed parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EmbedderHash([u8; Self::BYTES]);

impl EmbedderHash {
    /// How many bytes a fingerprint has.
    pub const BYTES: usize = 16;

    /// The fingerprint of an embedder that is identified by `parts`: for a remote one, for example, its
    /// address, the model's name and the dimension.
    pub fn of(parts: &[&[u8]]) -> Self {
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let mut state = OFFSET;
        let mut feed = |bytes: &[u8]| {
            for &byte in bytes {
                state = (state ^ u128::from(byte)).wrapping_mul(PRIME);
            }
        };
        for part in parts {
            // The length first, so that ("ab", "c") and ("a", "bc") differ.
            feed(&(part.len() as u64).to_le_bytes());
            feed(part);
        }
        Self(state.to_be_bytes())
    }

    /// A fingerprint that was stored as bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for EmbedderHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for EmbedderHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EmbedderHash({self})")
    }
}

/// A text that is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an embedder's fingerprint is 32 hexadecimal digits, not {0:?}")]
pub struct EmbedderHashError(String);

impl FromStr for EmbedderHash {
    type Err = EmbedderHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || EmbedderHashError(text.chars().take(40).collect());
        // `from_str_radix` alone would let a sign through.
        if text.len() != 2 * Self::BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let value = u128::from_str_radix(text, 16).map_err(|_| wrong())?;
        Ok(Self(value.to_be_bytes()))
    }
}

impl From<EmbedderHash> for String {
    fn from(hash: EmbedderHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for EmbedderHash {
    type Error = EmbedderHashError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
