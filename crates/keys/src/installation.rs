//! The key pair of an installation. Its private key signs what outsiders check; its public key is given to them.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::directory::{KeyDirectory, KeyError};
use crate::hex;
use crate::journal_key::sha256;

/// The file of the private key, as PKCS #8.
const PRIVATE_FILE: &str = "installation.key";

/// The file of the public key.
const PUBLIC_FILE: &str = "installation.pub";

/// What the text of a public key begins with.
const PREFIX: &str = "windlass-ed25519 ";

/// The key pair of an installation.
pub struct InstallationKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InstallationKey")
            .field(&self.public)
            .finish()
    }
}

impl InstallationKey {
    /// The key pair of this user's installation, which is made when it is missing.
    ///
    /// # Errors
    /// If it is damaged or readable by other users, or cannot be written.
    pub fn of_user() -> Result<Self, KeyError> {
        let directory = KeyDirectory::of_user().ok_or(KeyError::NoDirectory)?;
        Self::read_or_create(&directory)
    }

    /// The key pair in a directory, which is made when it is missing.
    ///
    /// # Errors
    /// If it is damaged or readable by other users, or cannot be written.
    pub fn read_or_create(directory: &KeyDirectory) -> Result<Self, KeyError> {
        let content = directory.read_or_create(PRIVATE_FILE, || {
            let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
            let document = document.map_err(|_| KeyError::NoRandomness)?;
            Ok(document.as_ref().to_vec())
        })?;
        let pair = Ed25519KeyPair::from_pkcs8(&content);
        let pair = pair.map_err(|_| KeyError::damaged(&directory.path().join(PRIVATE_FILE)))?;
        let mut bytes = [0; 32];
        bytes.copy_from_slice(pair.public_key().as_ref());
        let public = PublicKey(bytes);
        // For those who give the key away. What it says is never read back.
        directory.read_or_create(PUBLIC_FILE, || Ok(format!("{public}\n").into_bytes()))?;
        Ok(Self { pair, public })
    }

    /// Whether a directory has a key pair.
    #[must_use]
    pub fn exists(directory: &KeyDirectory) -> bool {
        directory.path().join(PRIVATE_FILE).exists()
    }

    /// Its public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        signature(&self.pair, message)
    }
}

/// The signature of a message with a key pair.
pub(crate) fn signature(pair: &Ed25519KeyPair, message: &[u8]) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes.copy_from_slice(pair.sign(message).as_ref());
    bytes
}

/// The public key of an installation. Its text is `windlass-ed25519` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    pub(crate) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key of a text; `None` if it is none. The word at the beginning may be left out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        hex::decode(text.strip_prefix(PREFIX).unwrap_or(text).trim()).map(Self)
    }

    /// Whether a signature is one of this key for a message.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(message, signature).is_ok()
    }

    /// A short text to compare the key by: the first half of its SHA-256, in groups.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digits = hex::encode(sha256(&self.0).get(..16).unwrap_or_default());
        let groups: Vec<&str> = (0..digits.len())
            .step_by(4)
            .filter_map(|start| digits.get(start..start + 4))
            .collect();
        groups.join(":")
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("it is no public key"))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(&self.0))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_key_is_needed_to_check_a_signature() {
        let directory = tempfile::tempdir().unwrap();
        let keys = KeyDirectory::new(directory.path().join("keys"));
        let pair = InstallationKey::read_or_create(&keys).unwrap();
        let signature = pair.sign(b"message");
        let text = keys.read(PUBLIC_FILE).unwrap().unwrap();
        let public = PublicKey::parse(&String::from_utf8(text).unwrap()).unwrap();
        assert_eq!(public, pair.public());
        assert!(public.has_signed(b"message", &signature));
        assert!(!public.has_signed(b"another", &signature));
        let again = InstallationKey::read_or_create(&keys).unwrap();
        assert_eq!(again.public(), public);
        assert_eq!(public.fingerprint().len(), 39);
        assert_eq!(PublicKey::parse("windlass-ed25519 12"), None);
    }

    #[test]
    fn another_installation_has_another_key() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| {
            let keys = KeyDirectory::new(directory.path().join(name));
            InstallationKey::read_or_create(&keys).unwrap()
        });
        assert_ne!(one.public(), other.public());
        let signature = one.sign(b"message");
        assert!(!other.public().has_signed(b"message", &signature));
    }
}
