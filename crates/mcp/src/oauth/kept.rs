//! What a login left: one file for each server and guard, readable by its owner only, replaced as a
//! whole. A token is for the address it was given for; a server that moved has none.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use windlass_spec::server::{ServerName, ServerSettings, Transport};

use super::error::OAuthError;
use super::secret;
use crate::Secret;

/// A token is renewed this long before it is over, so that it does not end on its way.
const SPARE_SECONDS: u64 = 30;

/// What a login left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The address the token is for.
    pub(super) url: String,
    /// Who gave it.
    pub(super) issuer: String,
    /// Who this program is there.
    pub(super) client_id: String,
    /// What proves it, if the guard made it up; one from the settings is not kept.
    #[serde(default, with = "secret::maybe")]
    pub(super) client_secret: Option<Secret>,
    /// Where browsers came back to.
    pub(super) redirect: String,
    #[serde(with = "secret")]
    pub(super) access_token: Secret,
    #[serde(default, with = "secret::maybe")]
    pub(super) refresh_token: Option<Secret>,
    /// In seconds since 1970, if the guard says.
    #[serde(default)]
    pub(super) ends_at: Option<u64>,
    pub(super) given_at: u64,
    /// What leave was given for.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// What the server wanted since then, for the next login to ask for.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
}

impl Kept {
    /// Whether the token can still be used.
    pub(super) fn is_fresh(&self) -> bool {
        self.ends_at
            .is_none_or(|end| now().saturating_add(SPARE_SECONDS) < end)
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// The files of one server.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: PathBuf,
    server: ServerName,
    url: String,
}

/// While this is held, no other process renews the tokens of the server.
pub(super) struct Turn {
    _lock: File,
}

impl Files {
    pub(super) fn new(directory: &Path, server: ServerName, url: String) -> Self {
        Self {
            directory: directory.to_owned(),
            server,
            url,
        }
    }

    pub(super) fn of_server(
        settings: &ServerSettings,
        directory: &Path,
    ) -> Result<Self, OAuthError> {
        let name = settings.name.clone();
        match &settings.transport {
            Transport::Http(http) => Ok(Self::new(directory, name, http.url.clone())),
            Transport::Command(_) => Err(OAuthError::NotHttp(name)),
        }
    }

    /// What the newest login for the server's address left.
    pub(super) fn newest(&self) -> Result<Option<Kept>, OAuthError> {
        let mut newest: Option<Kept> = None;
        for path in self.paths()? {
            let kept = read(&path)?;
            let is_newer = |than: &Kept| kept.given_at > than.given_at;
            if kept.url == self.url && newest.as_ref().is_none_or(is_newer) {
                newest = Some(kept);
            }
        }
        Ok(newest)
    }

    /// What the last login with a certain guard left.
    pub(super) fn of(&self, issuer: &str) -> Result<Option<Kept>, OAuthError> {
        let path = self.path(issuer);
        match path.exists() {
            true => read(&path).map(|kept| Some(kept).filter(|kept| kept.url == self.url)),
            false => Ok(None),
        }
    }

    /// Replaces what was kept for the guard.
    pub(super) fn keep(&self, kept: &Kept) -> Result<(), OAuthError> {
        let path = self.path(&kept.issuer);
        self.make_directory()?;
        let write = || {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let new = path.with_extension(format!("{}-{count}.new", std::process::id()));
            let written = serde_json::to_vec(kept)
                .map_err(std::io::Error::from)
                .and_then(|text| {
                    let mut file = for_owner().write(true).create_new(true).open(&new)?;
                    file.write_all(&text)?;
                    file.sync_all()?;
                    fs::rename(&new, &path)
                });
            if written.is_err() {
                let _ = fs::remove_file(&new);
            }
            written
        };
        write().map_err(|error| failed(&path, &error))
    }

    /// Forgets all logins of the server, and says whether there were any.
    pub(super) fn forget(&self) -> Result<bool, OAuthError> {
        let paths = self.paths()?;
        for path in &paths {
            fs::remove_file(path).map_err(|error| failed(path, &error))?;
        }
        Ok(!paths.is_empty())
    }

    /// Waits until no other process renews the tokens of the server.
    pub(super) async fn turn(&self) -> Result<Turn, OAuthError> {
        self.make_directory()?;
        let path = self.directory.join(format!("{}.lock", self.server));
        let lock = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                let file = for_owner()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&path)?;
                file.lock()?;
                Ok(file)
            })
        };
        match lock.await.unwrap_or_else(|error| Err(error.into())) {
            Ok(lock) => Ok(Turn { _lock: lock }),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    fn make_directory(&self) -> Result<(), OAuthError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&self.directory)
            .map_err(|error| failed(&self.directory, &error))
    }

    fn path(&self, issuer: &str) -> PathBuf {
        let digest = Sha256::digest(format!("{}\n{issuer}", self.url));
        let digest: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        self.directory
            .join(format!("{}-{digest}.json", self.server))
    }

    fn paths(&self) -> Result<Vec<PathBuf>, OAuthError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.directory, &error)),
        };
        let prefix = format!("{}-", self.server);
        let is_ours = |name: &str| {
            // Another server's name may begin with this one's.
            name.strip_prefix(&prefix)
                .and_then(|rest| rest.strip_suffix(".json"))
                .is_some_and(|digest| {
                    digest.len() == 16 && digest.bytes().all(|b| b.is_ascii_hexdigit())
                })
        };
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&self.directory, &error))?;
            if entry.file_name().to_str().is_some_and(is_ours) {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    }
}

fn for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn read(path: &Path) -> Result<Kept, OAuthError> {
    let unusable = |reason: &str| OAuthError::Kept {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    #[cfg(unix)]
    {
        let metadata = fs::metadata(path).map_err(|error| failed(path, &error))?;
        if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
            return Err(unusable(
                "it holds a token that others on this machine can read; take their rights away \
                 (chmod 600) or delete it and log in again",
            ));
        }
    }
    let text = fs::read(path).map_err(|error| failed(path, &error))?;
    // What the parser says could repeat a part of a token.
    serde_json::from_slice(&text).map_err(|_| unusable("it is damaged; delete it and log in again"))
}

fn failed(path: &Path, error: &std::io::Error) -> OAuthError {
    OAuthError::Kept {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
