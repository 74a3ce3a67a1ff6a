//! The key of an approver, which signs decisions. It is a private file in the directory of keys, protected by a
//! passphrase if the approver wants one.

use std::fmt;
use std::num::NonZeroU32;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::directory::{KeyDirectory, KeyError};
use crate::hex;
use crate::installation::{PublicKey, signature};
use crate::journal_key::{random_bytes, sha256};

/// What a key file begins with.
const PREFIX: &str = "windlass-approver-key-1";

/// What follows in the file of a key without a passphrase.
const PLAIN: &str = "plain";

/// What follows in the file of a key with a passphrase: how the passphrase becomes a key, and what the key encrypts with.
const PROTECTED: &str = "pbkdf2-hmac-sha256+chacha20-poly1305";

/// How often a passphrase is hashed for a new key.
const ROUNDS: u32 = 600_000;

/// The fewest rounds that are accepted, and the most, so that a changed file neither weakens a key nor keeps the
/// program busy.
const ACCEPTED_ROUNDS: std::ops::RangeInclusive<u32> = 100_000..=10_000_000;

/// The length of the salt of a passphrase, in bytes.
const SALT: usize = 16;

/// The shortest passphrase, in characters.
pub const MIN_PASSPHRASE: usize = 8;

/// The key of an approver, ready to sign.
pub struct ApproverKey {
    name: String,
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl fmt::Debug for ApproverKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApproverKey")
            .field("name", &self.name)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl PartialEq for ApproverKey {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.public) == (&other.name, other.public)
    }
}

impl Eq for ApproverKey {}

/// How the private key of an approver is kept on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyProtection {
    /// Whoever can read the file can use the key.
    FileMode,
    /// The key can be used only with its passphrase.
    Passphrase,
}

impl ApproverKey {
    /// Makes a key and writes its file. Returns `None` if there is a file for this name already.
    ///
    /// # Errors
    /// If the passphrase is too short, the system has no random bytes, or the file cannot be written.
    pub fn create(
        directory: &KeyDirectory,
        name: &str,
        passphrase: Option<&str>,
    ) -> Result<Option<Self>, KeyError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let document = document.map_err(|_| KeyError::NoRandomness)?;
        let content = match passphrase {
            None => format!("{PREFIX} {PLAIN} {}\n", hex::encode(document.as_ref())),
            Some(passphrase) => protect(name, document.as_ref(), passphrase)?,
        };
        let file = file_of(name);
        match directory.create(&file, content.as_bytes())? {
            true => Self::of_document(directory, name, document.as_ref()).map(Some),
            false => Ok(None),
        }
    }

    /// Reads the key of an approver; `None` if its file is not on this machine.
    ///
    /// # Errors
    /// If the file is damaged or readable by other users, or the passphrase is missing or wrong.
    pub fn read(
        directory: &KeyDirectory,
        name: &str,
        passphrase: Option<&str>,
    ) -> Result<Option<Self>, KeyError> {
        let Some(file) = KeyFile::read(directory, name)? else {
            return Ok(None);
        };
        let document = match (&file, passphrase) {
            (KeyFile::Plain(document), _) => document.clone(),
            (KeyFile::Protected { .. }, None) => {
                return Err(KeyError::PassphraseNeeded(name.to_owned()));
            }
            (KeyFile::Protected { .. }, Some(passphrase)) => file
                .open(name, passphrase)
                .ok_or_else(|| KeyError::WrongPassphrase(name.to_owned()))?,
        };
        Self::of_document(directory, name, &document).map(Some)
    }

    /// How the key of an approver is kept; `None` if its file is not on this machine.
    ///
    /// # Errors
    /// If the file is damaged or readable by other users.
    pub fn protection(
        directory: &KeyDirectory,
        name: &str,
    ) -> Result<Option<KeyProtection>, KeyError> {
        Ok(KeyFile::read(directory, name)?.map(|file| match file {
            KeyFile::Plain(_) => KeyProtection::FileMode,
            KeyFile::Protected { .. } => KeyProtection::Passphrase,
        }))
    }

    /// Removes the file of a key. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn delete(directory: &KeyDirectory, name: &str) -> Result<bool, KeyError> {
        directory.remove(&file_of(name))
    }

    fn of_document(
        directory: &KeyDirectory,
        name: &str,
        document: &[u8],
    ) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8(document);
        let pair = pair.map_err(|_| KeyError::damaged(&directory.path().join(file_of(name))))?;
        let mut bytes = [0; 32];
        bytes.copy_from_slice(pair.public_key().as_ref());
        Ok(Self {
            name: name.to_owned(),
            pair,
            public: PublicKey::new(bytes),
        })
    }

    /// The name of the approver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
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

/// What the file of a key contains.
enum KeyFile {
    Plain(Vec<u8>),
    Protected {
        rounds: NonZeroU32,
        salt: [u8; SALT],
        nonce: [u8; NONCE_LEN],
        sealed: Vec<u8>,
    },
}

impl KeyFile {
    fn read(directory: &KeyDirectory, name: &str) -> Result<Option<Self>, KeyError> {
        let file = file_of(name);
        let Some(content) = directory.read(&file)? else {
            return Ok(None);
        };
        let read = std::str::from_utf8(&content).ok().and_then(Self::parse);
        let damaged = || KeyError::damaged(&directory.path().join(&file));
        read.map(Some).ok_or_else(damaged)
    }

    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.trim_end().split(' ').collect();
        match fields.as_slice() {
            [PREFIX, PLAIN, document] => Some(Self::Plain(hex::decode_any(document)?)),
            [PREFIX, PROTECTED, rounds, salt, nonce, sealed] => {
                let rounds: u32 = rounds.parse().ok()?;
                ACCEPTED_ROUNDS.contains(&rounds).then_some(())?;
                Some(Self::Protected {
                    rounds: NonZeroU32::new(rounds)?,
                    salt: hex::decode(salt)?,
                    nonce: hex::decode(nonce)?,
                    sealed: hex::decode_any(sealed)?,
                })
            }
            _ => None,
        }
    }

    /// The private key, if the passphrase is the right one and the file was not changed.
    fn open(&self, name: &str, passphrase: &str) -> Option<Vec<u8>> {
        let Self::Protected {
            rounds,
            salt,
            nonce,
            sealed,
        } = self
        else {
            return None;
        };
        let key = derived_key(*rounds, salt, passphrase)?;
        let mut bytes = sealed.clone();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut bytes);
        Some(opened.ok()?.to_vec())
    }
}

/// The content of a file whose key is encrypted with a passphrase. The name belongs to the encrypted text, so that the
/// file of one approver does not pass as that of another.
fn protect(name: &str, document: &[u8], passphrase: &str) -> Result<String, KeyError> {
    if passphrase.chars().count() < MIN_PASSPHRASE {
        return Err(KeyError::ShortPassphrase);
    }
    let (mut salt, mut nonce) = ([0; SALT], [0; NONCE_LEN]);
    // A new salt makes a new key, so no key is used with two nonces.
    salt.copy_from_slice(&random_bytes()?[..SALT]);
    nonce.copy_from_slice(&random_bytes()?[..NONCE_LEN]);
    let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
    let key = derived_key(rounds, &salt, passphrase).ok_or(KeyError::NoRandomness)?;
    let mut sealed = document.to_vec();
    let encrypted = key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(name.as_bytes()),
        &mut sealed,
    );
    encrypted.map_err(|_| KeyError::NoRandomness)?;
    let (salt, nonce, sealed) = (
        hex::encode(&salt),
        hex::encode(&nonce),
        hex::encode(&sealed),
    );
    Ok(format!(
        "{PREFIX} {PROTECTED} {ROUNDS} {salt} {nonce} {sealed}\n"
    ))
}

fn derived_key(rounds: NonZeroU32, salt: &[u8], passphrase: &str) -> Option<LessSafeKey> {
    let mut bytes = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, rounds, salt, passphrase.as_bytes(), &mut bytes);
    let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok()?;
    Some(LessSafeKey::new(key))
}

/// The file of an approver's private key. Names that differ only in case are one person and have one file.
pub(crate) fn file_of(name: &str) -> String {
    let name = name.to_lowercase();
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    match is_plain && name.len() <= 64 {
        true => format!("approver-{name}.key"),
        false => {
            let digest = sha256(name.as_bytes());
            let digest = hex::encode(digest.get(..16).unwrap_or_default());
            format!("approver.{digest}.key")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_signs_and_is_read_back() {
        let (_directory, keys) = KeyDirectory::temporary();
        let made = ApproverKey::create(&keys, "ada", None).unwrap().unwrap();
        let read = ApproverKey::read(&keys, "Ada", None).unwrap().unwrap();
        assert_eq!(made.public(), read.public());
        assert!(made.public().has_signed(b"message", &read.sign(b"message")));
        assert!(ApproverKey::create(&keys, "ADA", None).unwrap().is_none());
        assert!(ApproverKey::read(&keys, "bob", None).unwrap().is_none());
        let mode = fs::metadata(keys.path().join("approver-ada.key")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_protected_key_needs_its_passphrase() {
        let (_directory, keys) = KeyDirectory::temporary();
        let passphrase = Some("correct horse");
        let short = ApproverKey::create(&keys, "ada", Some("short"));
        assert!(matches!(short, Err(KeyError::ShortPassphrase)), "{short:?}");
        let made = ApproverKey::create(&keys, "ada", passphrase)
            .unwrap()
            .unwrap();
        let file = fs::read_to_string(keys.path().join("approver-ada.key")).unwrap();
        assert!(file.contains(" 600000 "), "{file}");
        let read = |passphrase| ApproverKey::read(&keys, "ada", passphrase);
        let read_back = read(passphrase).unwrap().unwrap();
        assert_eq!(made.public(), read_back.public());
        let missing = read(None).unwrap_err();
        assert!(
            matches!(missing, KeyError::PassphraseNeeded(_)),
            "{missing}"
        );
        let wrong = read(Some("correct horsf")).unwrap_err();
        assert!(matches!(wrong, KeyError::WrongPassphrase(_)), "{wrong}");
        // The file of one approver does not pass as that of another.
        keys.replace("approver-bob.key", file.as_bytes()).unwrap();
        let moved = ApproverKey::read(&keys, "bob", passphrase).unwrap_err();
        assert!(matches!(moved, KeyError::WrongPassphrase(_)), "{moved}");
        let weakened = file.replace(" 600000 ", " 1 ");
        keys.replace("approver-ada.key", weakened.as_bytes())
            .unwrap();
        let damaged = read(passphrase).unwrap_err();
        assert!(matches!(damaged, KeyError::Damaged(_)), "{damaged}");
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_damaged_is_refused() {
        let (_directory, keys) = KeyDirectory::temporary();
        ApproverKey::create(&keys, "ada", None).unwrap();
        let path = keys.path().join("approver-ada.key");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = ApproverKey::read(&keys, "ada", None).unwrap_err();
        assert!(matches!(error, KeyError::NotPrivate(_)), "{error}");
        for content in ["", "windlass-approver-key-1 plain 12", "other", "\u{e9}"] {
            keys.replace("approver-ada.key", content.as_bytes())
                .unwrap();
            let error = ApproverKey::read(&keys, "ada", None).unwrap_err();
            assert!(matches!(error, KeyError::Damaged(_)), "{error}");
        }
    }

    #[test]
    fn names_have_different_files() {
        let names = ["ada", "a/da", "../ada", "ada ", "é", "user 1000", "ada.b"];
        let files: std::collections::BTreeSet<String> = names.map(file_of).into();
        assert_eq!(files.len(), names.len());
        assert!(files.iter().all(|file| !file.contains('/')), "{files:?}");
    }
}
