//! The key that authenticates the rows of journals.
//!
//! It is a secret of the installation. Workers on several machines that share one journal share the key too: its file
//! or its value is named by an environment variable.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::directory::{KeyDirectory, KeyError};
use crate::hex;
use crate::installation::InstallationKey;

/// The variable that holds the key itself.
const KEY_VARIABLE: &str = "WINDLASS_JOURNAL_KEY";

/// The variable that names the file of the key.
const FILE_VARIABLE: &str = "WINDLASS_JOURNAL_KEY_FILE";

/// The file of the key in the directory of keys.
const FILE: &str = "journal.key";

/// What a key file begins with.
const PREFIX: &str = "windlass-journal-key-1 ";

/// The length of the key and of a tag, in bytes.
const LENGTH: usize = 32;

/// What the key makes of a record: only a holder of the key can compute or check it.
pub type Tag = [u8; LENGTH];

/// The key that authenticates the rows of journals.
#[derive(Clone)]
pub struct JournalKey {
    key: hmac::Key,
    id: String,
    /// Where the authenticated journals are listed.
    directory: Option<KeyDirectory>,
}

impl fmt::Debug for JournalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JournalKey").field(&self.id).finish()
    }
}

impl JournalKey {
    /// The key of this user: the one that the environment names, else the one in the directory of keys, which is made
    /// with the installation.
    ///
    /// # Errors
    /// If the key is missing, damaged, or readable by other users, or cannot be written.
    pub fn of_user() -> Result<Self, KeyError> {
        let directory = KeyDirectory::of_user();
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let named = match (set(KEY_VARIABLE), set(FILE_VARIABLE)) {
            (Some(value), _) => {
                let text = value.to_string_lossy();
                let key = hex::decode(text.trim());
                Some(key.ok_or(KeyError::InvalidVariable(KEY_VARIABLE))?)
            }
            (None, Some(path)) => Some(read_named(&PathBuf::from(path))?),
            (None, None) => None,
        };
        match (named, directory) {
            (Some(bytes), directory) => Ok(Self::new(&bytes).listing_in(directory)),
            (None, Some(directory)) => Self::of_installation(&directory),
            (None, None) => Err(KeyError::NoDirectory),
        }
    }

    /// The key in a directory. It is made when the directory has no keys yet. One that is missing later is not replaced,
    /// because a new key could not check what the missing one authenticated.
    ///
    /// # Errors
    /// If it is missing, damaged, or readable by other users, or cannot be written.
    pub fn of_installation(directory: &KeyDirectory) -> Result<Self, KeyError> {
        let path = directory.path().join(FILE);
        let content = match directory.read(FILE)? {
            Some(content) => content,
            None if InstallationKey::exists(directory) => {
                return Err(KeyError::Missing(path.display().to_string()));
            }
            None => directory.read_or_create(FILE, new_file)?,
        };
        // Made second: from now on a missing journal key is an error.
        InstallationKey::read_or_create(directory)?;
        let bytes = from_file(&content).ok_or_else(|| KeyError::damaged(&path))?;
        Ok(Self::new(&bytes).listing_in(Some(directory.clone())))
    }

    /// A key made of these bytes.
    #[must_use]
    pub fn new(bytes: &Tag) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let tag = hmac::sign(&key, b"windlass key id");
        let id = hex::encode(tag.as_ref().get(..8).unwrap_or_default());
        Self {
            key,
            id,
            directory: None,
        }
    }

    fn listing_in(mut self, directory: Option<KeyDirectory>) -> Self {
        self.directory = directory;
        self
    }

    /// The key pair of the installation that this key belongs to; `None` if the key is not of an installation.
    ///
    /// # Errors
    /// If the key pair is damaged or readable by other users.
    pub fn installation(&self) -> Result<Option<InstallationKey>, KeyError> {
        let directory = self.directory.as_ref();
        directory.map(InstallationKey::read_or_create).transpose()
    }

    /// A key for one purpose, derived from this one.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Self {
        let tag = hmac::sign(&self.key, purpose.as_bytes());
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, tag.as_ref()),
            id: self.id.clone(),
            directory: self.directory.clone(),
        }
    }

    /// The public name of the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tag of a record.
    #[must_use]
    pub fn authenticate(&self, record: &[u8]) -> Tag {
        let tag = hmac::sign(&self.key, record);
        let mut bytes = [0; LENGTH];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Whether a tag is that of a record.
    #[must_use]
    pub fn is_authentic(&self, record: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.key, record, tag).is_ok()
    }

    /// Whether a journal at this path was authenticated before, so that one without evidence there is not an old one.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn knows_journal(&self, path: &Path) -> Result<bool, KeyError> {
        match &self.directory {
            Some(directory) => Ok(directory.read(&journal_name(path))?.is_some()),
            None => Ok(false),
        }
    }

    /// Lists the journal at this path as authenticated.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn remember_journal(&self, path: &Path) -> Result<(), KeyError> {
        if let Some(directory) = &self.directory {
            let name = journal_name(path);
            directory.read_or_create(&name, || Ok(path.display().to_string().into_bytes()))?;
        }
        Ok(())
    }
}

/// Where keys of this user are: the directory of keys, and the file that the environment names.
#[must_use]
pub fn key_files() -> Vec<PathBuf> {
    let directory = KeyDirectory::of_user().map(|directory| directory.path().to_owned());
    let named = env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty());
    directory
        .into_iter()
        .chain(named.map(PathBuf::from))
        .collect()
}

/// The SHA-256 of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Tag {
    let mut digest_bytes = [0; LENGTH];
    digest_bytes.copy_from_slice(digest(&SHA256, bytes).as_ref());
    digest_bytes
}

/// Bytes that cannot be guessed.
///
/// # Errors
/// If the system has none.
pub fn random_bytes() -> Result<Tag, KeyError> {
    let mut bytes = [0; LENGTH];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| KeyError::NoRandomness)?;
    Ok(bytes)
}

/// The name of the file that lists a journal.
fn journal_name(path: &Path) -> String {
    let digest = sha256(path.as_os_str().as_encoded_bytes());
    let name = hex::encode(digest.get(..16).unwrap_or_default());
    format!("journal-{name}.path")
}

fn new_file() -> Result<Vec<u8>, KeyError> {
    let key = hex::encode(&random_bytes()?);
    Ok(format!("{PREFIX}{key}\n").into_bytes())
}

fn from_file(content: &[u8]) -> Option<Tag> {
    let text = std::str::from_utf8(content).ok()?;
    hex::decode(text.strip_prefix(PREFIX)?.trim_end())
}

/// Reads the key from a file that a variable names.
fn read_named(path: &Path) -> Result<Tag, KeyError> {
    let (parent, name) = (path.parent(), path.file_name());
    let directory = KeyDirectory::new(parent.unwrap_or(Path::new("")).to_owned());
    let name = name.unwrap_or_default().to_string_lossy();
    let content = directory.read(&name)?;
    let content = content.ok_or_else(|| KeyError::Missing(path.display().to_string()))?;
    from_file(&content).ok_or_else(|| KeyError::damaged(path))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_stays_the_same() {
        let (_directory, keys) = KeyDirectory::temporary();
        let one = JournalKey::of_installation(&keys).unwrap();
        let other = JournalKey::of_installation(&keys).unwrap();
        let tag = one.authenticate(b"record");
        assert!(other.is_authentic(b"record", &tag));
        assert!(!other.is_authentic(b"another", &tag));
        assert_eq!(one.id(), other.id());
        let named = read_named(&keys.path().join(FILE)).unwrap();
        assert!(JournalKey::new(&named).is_authentic(b"record", &tag));
    }

    #[test]
    fn a_derived_key_makes_other_tags() {
        let key = JournalKey::new(&[7; LENGTH]);
        let tag = key.derive("one").authenticate(b"record");
        assert!(key.derive("one").is_authentic(b"record", &tag));
        assert!(!key.derive("other").is_authentic(b"record", &tag));
        assert!(!key.is_authentic(b"record", &tag));
    }

    #[test]
    fn a_missing_key_is_not_replaced() {
        let (_directory, keys) = KeyDirectory::temporary();
        JournalKey::of_installation(&keys).unwrap();
        fs::remove_file(keys.path().join(FILE)).unwrap();
        let error = JournalKey::of_installation(&keys).unwrap_err();
        assert!(matches!(error, KeyError::Missing(_)), "{error}");
        assert!(!keys.path().join(FILE).exists());
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let (_directory, keys) = KeyDirectory::temporary();
        JournalKey::of_installation(&keys).unwrap();
        fs::set_permissions(keys.path().join(FILE), Permissions::from_mode(0o640)).unwrap();
        let error = JournalKey::of_installation(&keys).unwrap_err();
        assert!(matches!(error, KeyError::NotPrivate(_)), "{error}");
    }

    #[test]
    fn a_damaged_key_is_refused() {
        let (_directory, keys) = KeyDirectory::temporary();
        JournalKey::of_installation(&keys).unwrap();
        for content in [
            &b""[..],
            b"windlass-journal-key-1 12",
            b"\xff\xff",
            b"other",
        ] {
            keys.replace(FILE, content).unwrap();
            let error = JournalKey::of_installation(&keys).unwrap_err();
            assert!(matches!(error, KeyError::Damaged(_)), "{error}");
        }
    }

    #[test]
    fn journals_are_listed_by_path() {
        let (_directory, keys) = KeyDirectory::temporary();
        let key = JournalKey::of_installation(&keys).unwrap();
        let (one, other) = (Path::new("/data/one.db"), Path::new("/data/other.db"));
        assert!(!key.knows_journal(one).unwrap());
        key.remember_journal(one).unwrap();
        key.remember_journal(one).unwrap();
        assert!(key.knows_journal(one).unwrap());
        assert!(!key.knows_journal(other).unwrap());
    }
}
