//! Stored logins: one file per server and authorization server, readable by its owner only and replaced
//! atomically. A token is bound to the URL it was issued for, so a server with a new URL has none.

use std::fs::{self, File, OpenOptions};
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

/// A token is refreshed this long before it expires, so that it does not expire during a request.
const SPARE_SECONDS: u64 = 30;

/// A login as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// The URL that the token is for.
    pub(super) url: String,
    /// The issuer of the authorization server.
    pub(super) issuer: String,
    /// The client id of this program at that authorization server.
    pub(super) client_id: String,
    /// The client secret, if the authorization server issued it. One from the settings is not stored.
    #[serde(default, with = "secret::maybe")]
    pub(super) client_secret: Option<Secret>,
    /// The redirect URI.
    pub(super) redirect: String,
    #[serde(with = "secret")]
    pub(super) access_token: Secret,
    #[serde(default, with = "secret::maybe")]
    pub(super) refresh_token: Option<Secret>,
    /// When the access token expires, in seconds since 1970, if the authorization server says.
    #[serde(default)]
    pub(super) ends_at: Option<u64>,
    pub(super) given_at: u64,
    /// The granted scopes.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// Scopes that the server required since then. The next login requests them.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
}

impl StoredLogin {
    /// Whether the access token has not expired.
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

/// The login files of one server.
#[derive(Debug, Clone)]
pub(super) struct LoginFiles {
    directory: PathBuf,
    server: ServerName,
    url: String,
}

/// The lock for refreshing the tokens of a server across processes.
pub(super) struct RefreshLock {
    _lock: File,
}

impl LoginFiles {
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

    /// The newest login for the server's URL.
    pub(super) fn newest(&self) -> Result<Option<StoredLogin>, OAuthError> {
        let mut newest: Option<StoredLogin> = None;
        for path in self.paths()? {
            let stored = read(&path)?;
            let is_newer = |than: &StoredLogin| stored.given_at > than.given_at;
            if stored.url == self.url && newest.as_ref().is_none_or(is_newer) {
                newest = Some(stored);
            }
        }
        Ok(newest)
    }

    /// The last login with the authorization server `issuer`.
    pub(super) fn with_issuer(&self, issuer: &str) -> Result<Option<StoredLogin>, OAuthError> {
        let path = self.path(issuer);
        match path.exists() {
            true => read(&path).map(|stored| Some(stored).filter(|stored| stored.url == self.url)),
            false => Ok(None),
        }
    }

    /// Replaces the login stored for its authorization server.
    pub(super) fn save(&self, login: &StoredLogin) -> Result<(), OAuthError> {
        let path = self.path(&login.issuer);
        self.make_directory()?;
        let write = || {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let new = path.with_extension(format!("{}-{count}.new", std::process::id()));
            let written = serde_json::to_vec(login)
                .map_err(std::io::Error::from)
                .and_then(|text| {
                    let mut file = owner_only().write(true).create_new(true).open(&new)?;
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

    /// Deletes all logins of the server. Returns whether there were any.
    pub(super) fn delete_all(&self) -> Result<bool, OAuthError> {
        let paths = self.paths()?;
        for path in &paths {
            fs::remove_file(path).map_err(|error| failed(path, &error))?;
        }
        Ok(!paths.is_empty())
    }

    /// Waits until no other process refreshes the tokens of the server, and locks it.
    pub(super) async fn lock_refresh(&self) -> Result<RefreshLock, OAuthError> {
        self.make_directory()?;
        let path = self.directory.join(format!("{}.lock", self.server));
        let lock = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                let file = owner_only()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&path)?;
                file.lock()?;
                Ok(file)
            })
        };
        match lock.await.unwrap_or_else(|error| Err(error.into())) {
            Ok(lock) => Ok(RefreshLock { _lock: lock }),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    fn make_directory(&self) -> Result<(), OAuthError> {
        windlass_files::create_directory(&self.directory)
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
            // The name of another server may begin with this name.
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

fn owner_only() -> OpenOptions {
    windlass_files::options()
}

fn read(path: &Path) -> Result<StoredLogin, OAuthError> {
    let unusable = |reason: &str| OAuthError::LoginFile {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    #[cfg(unix)]
    {
        let metadata = fs::metadata(path).map_err(|error| failed(path, &error))?;
        if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
            return Err(unusable(
                "other users of this machine can read the token in it; run `chmod 600` on it, or \
                                 delete it and log in again",
            ));
        }
    }
    let text = fs::read(path).map_err(|error| failed(path, &error))?;
    // The parser's message could contain a part of a token.
    serde_json::from_slice(&text).map_err(|_| unusable("it is damaged; delete it and log in again"))
}

fn failed(path: &Path, error: &std::io::Error) -> OAuthError {
    OAuthError::LoginFile {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
