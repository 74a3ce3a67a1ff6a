//! The directory of keys: `windlass/keys` in the user's state directory, readable by its owner only.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers the drafts of this process.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// The largest file of a key, in bytes.
const MAX_KEY_FILE: u64 = 64 * 1024;

/// Why a key cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file or directory cannot be read or written.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users can read or change the file.
    #[error(
        "other users can read or change `{0}`; run `chmod 600 {0}` if its content is still secret"
    )]
    NotPrivate(String),
    /// The file has another content than expected.
    #[error("`{0}` is damaged or of another version; restore it from a backup")]
    Damaged(String),
    /// A key that existed before is gone.
    #[error("the key `{0}` is missing; restore it from a backup")]
    Missing(String),
    /// A variable holds no key.
    #[error("`{0}` does not hold a key of 64 hexadecimal digits")]
    InvalidVariable(&'static str),
    /// There is no directory for keys.
    #[error("there is no directory for keys; set HOME or XDG_STATE_HOME")]
    NoDirectory,
    /// The key of an approver is protected by a passphrase, and none was given.
    #[error("the key of the approver `{0}` is protected by a passphrase")]
    PassphraseNeeded(String),
    /// The passphrase is not that of the key.
    #[error("the passphrase is not that of the approver `{0}`")]
    WrongPassphrase(String),
    /// A new passphrase is too short.
    #[error(
        "a passphrase has at least {} characters",
        crate::approver::MIN_PASSPHRASE
    )]
    ShortPassphrase,
    /// The list of approvers is signed by another installation.
    #[error("the list of approvers `{0}` is not one of this installation, or was changed")]
    ForeignList(String),
    /// A change of the list of approvers is not possible.
    #[error("{0}")]
    NotPossible(String),
    /// The system gives no random bytes.
    #[error("the operating system provides no random bytes")]
    NoRandomness,
}

impl KeyError {
    /// An error of the file system.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// A file that is damaged.
    pub(crate) fn damaged(path: &Path) -> Self {
        Self::Damaged(path.display().to_string())
    }
}

/// The directory of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDirectory {
    path: PathBuf,
}

impl KeyDirectory {
    /// The directory of the user: `windlass/keys` in `XDG_STATE_HOME`, else in `~/.local/state`. `None` if
    /// there is no home directory.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let state = set("XDG_STATE_HOME").map(PathBuf::from);
        let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")))?;
        Some(Self::new(state.join("windlass").join("keys")))
    }

    /// A directory at a path.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file, `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read, or other users can read or change it.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, KeyError> {
        let path = self.path.join(name);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(KeyError::io(&path, error)),
        };
        let metadata = file
            .metadata()
            .map_err(|error| KeyError::io(&path, error))?;
        if !metadata.is_file() || metadata.len() > MAX_KEY_FILE {
            return Err(KeyError::damaged(&path));
        }
        let own = rustix::process::geteuid().as_raw();
        if metadata.mode() & 0o077 != 0 || metadata.uid() != own {
            return Err(KeyError::NotPrivate(path.display().to_string()));
        }
        let mut content = Vec::new();
        let read = file.read_to_end(&mut content);
        read.map_err(|error| KeyError::io(&path, error))?;
        Ok(Some(content))
    }

    /// Writes a new file. Returns whether it was written: `false` if a file of this name exists, for example
    /// because another process wrote it at the same time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(&self, name: &str, content: &[u8]) -> Result<bool, KeyError> {
        let path = self.path.join(name);
        let failed = |error| KeyError::io(&path, error);
        windlass_files::create_directory(&self.path).map_err(failed)?;
        // A link to a complete file: readers see all of it or nothing.
        let (process, number) = (std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed));
        let draft = self.path.join(format!(".{name}.{process}.{number}"));
        windlass_files::replace(&draft, content).map_err(failed)?;
        let linked = fs::hard_link(&draft, &path);
        fs::remove_file(&draft).map_err(failed)?;
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads a file, and makes it first if it is missing. Processes that do this at the same time read the same.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn read_or_create(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>, KeyError>,
    ) -> Result<Vec<u8>, KeyError> {
        if let Some(content) = self.read(name)? {
            return Ok(content);
        }
        self.create(name, &make()?)?;
        let path = self.path.join(name);
        self.read(name)?.ok_or_else(|| KeyError::damaged(&path))
    }

    /// Replaces a file, so that readers see the old or the new content.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn replace(&self, name: &str, content: &[u8]) -> Result<(), KeyError> {
        let path = self.path.join(name);
        let failed = |error| KeyError::io(&path, error);
        windlass_files::create_directory(&self.path).map_err(failed)?;
        windlass_files::replace(&path, content).map_err(failed)
    }

    /// Removes a file. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, KeyError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(KeyError::io(&path, error)),
        }
    }

    /// Waits until no other process changes the files that a lock of this name protects. The lock ends with the returned
    /// file.
    ///
    /// # Errors
    /// If the lock cannot be made.
    pub(crate) fn lock(&self, name: &str) -> Result<File, KeyError> {
        let path = self.path.join(name);
        let failed = |error| KeyError::io(&path, error);
        windlass_files::create_directory(&self.path).map_err(failed)?;
        let mut options = windlass_files::options();
        options.create(true).truncate(false).read(true).write(true);
        let file = windlass_files::open(&options, &path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// A directory for a test, which is removed with the first part.
    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    pub(crate) fn temporary() -> (tempfile::TempDir, Self) {
        let directory = tempfile::tempdir().unwrap();
        let keys = Self::new(directory.path().join("keys"));
        (directory, keys)
    }
}
