//! What the built-in tools may touch, as checked data. Nothing is opened or asked here; a mistake is
//! explained with the key of the configuration it stands under.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use windlass_spec::text::{TextUse, is_clean};

use super::declared;
use super::web::HostPattern;
use crate::dispatch::DEFAULT_MAX_OUTPUT_BYTES;
use crate::http::{HttpEndpoint, HttpMethod};

/// The most a limit on bytes may be: more would never fit into the result of a call.
const MAX_BYTES: usize = DEFAULT_MAX_OUTPUT_BYTES;

/// What the library `builtin` may do. By default it may tell the time and format data, no more.
#[derive(Debug, Clone, Default)]
pub struct BuiltinSettings {
    /// Which files can be read, written and deleted; none if absent.
    pub files: Option<FileSettings>,
    /// Which hosts can be asked; none by default.
    pub http: HttpSettings,
    /// Where the web is searched; nowhere if absent.
    pub search: Option<SearchSettings>,
    /// What drives a browser; nothing if absent.
    pub automation: Option<AutomationSettings>,
    /// The environment this is, such as `production`, for `check_security_status`.
    pub environment: Option<String>,
    /// What else `check_security_status` reports. It is told to models: no secrets belong here.
    pub facts: Vec<Fact>,
}

impl BuiltinSettings {
    /// The tools that can do nothing with these settings, each with what to configure.
    #[must_use]
    pub fn not_configured(&self) -> Vec<NotConfigured> {
        let is_missing = |key: &str| match key.split_whitespace().next() {
            Some("[files]") => self.files.is_none(),
            Some("[http]") => self.http.hosts.is_empty(),
            Some("[search]") => self.search.is_none(),
            Some("[automation]") => self.automation.is_none(),
            _ => false,
        };
        let lacking = declared::ALL.iter().filter_map(|tool| {
            let needs = tool.needs.filter(|needs| is_missing(needs.key))?;
            Some(NotConfigured {
                tool: tool.name,
                key: needs.key,
                help: needs.help,
            })
        });
        lacking.collect()
    }
}

/// Something that `check_security_status` reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about, such as `undo_window_seconds`.
    pub name: String,
    /// What holds.
    pub value: String,
}

/// A tool that can do nothing until something is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotConfigured {
    /// Its name.
    pub tool: &'static str,
    /// The key of `windlass.toml` that is not set, such as `[files] roots`.
    pub key: &'static str,
    /// What to write there.
    pub help: &'static str,
}

impl fmt::Display for NotConfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, key, help } = self;
        write!(
            f,
            "`{tool}` is not configured: set `{key}` in windlass.toml; {help}"
        )
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct SettingsError {
    /// The key of the configuration, such as `http.hosts`.
    pub key: &'static str,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl SettingsError {
    pub(super) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
        }
    }
}

/// A directory whose files can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    name: String,
    directory: PathBuf,
}

impl Root {
    /// What paths call it where there are several.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Which files can be read, written and deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    roots: Vec<Root>,
    max_bytes: usize,
    protected: Vec<PathBuf>,
}

impl FileSettings {
    /// How large a file may be, unless it is said otherwise: 1 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;

    /// Files below these directories. Relative ones are taken from the current directory, once and for
    /// all. Where there are several, each is called by the last part of its path.
    ///
    /// # Errors
    /// If there are none, one has no name, or two have the same.
    pub fn new<P: Into<PathBuf>>(
        directories: impl IntoIterator<Item = P>,
    ) -> Result<Self, SettingsError> {
        let mut roots = Vec::new();
        for directory in directories {
            let directory: PathBuf = directory.into();
            let name = std::path::absolute(&directory)
                .ok()
                .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
            roots.push((name.unwrap_or_default(), directory));
        }
        let is_only = roots.len() == 1;
        Self::named(roots.into_iter().map(|(name, directory)| {
            // The name of the only root is never written, so that any directory will do.
            let name = if is_only && !is_name(&name) {
                "files".to_owned()
            } else {
                name
            };
            (name, directory)
        }))
    }

    /// Files below these directories, each under the name it is given.
    ///
    /// # Errors
    /// If there are none, a name cannot be part of a path, or two are the same.
    pub fn named<N: Into<String>, P: Into<PathBuf>>(
        directories: impl IntoIterator<Item = (N, P)>,
    ) -> Result<Self, SettingsError> {
        let mistake = |message: String| SettingsError::new("files.roots", message);
        let mut roots = Vec::new();
        let mut names = BTreeSet::new();
        for (name, directory) in directories {
            let (name, directory): (String, PathBuf) = (name.into(), directory.into());
            let shown = directory.display();
            if directory.as_os_str().is_empty() {
                return Err(mistake(
                    "an empty path is no directory; write `.` for this one".to_owned(),
                ));
            }
            if !is_name(&name) {
                return Err(mistake(format!(
                    "the root `{shown}` cannot be called {name:?}; write out the path of a directory with a plain name"
                )));
            }
            if !names.insert(name.clone()) {
                return Err(mistake(format!(
                    "two roots are called `{name}`; paths begin with the name, so rename one directory"
                )));
            }
            let directory = std::path::absolute(&directory)
                .map_err(|error| mistake(format!("the root `{shown}` cannot be used: {error}")))?;
            roots.push(Root { name, directory });
        }
        if roots.is_empty() {
            return Err(mistake(
                "there is no directory in the list; name at least one, or leave the key out"
                    .to_owned(),
            ));
        }
        Ok(Self {
            roots,
            max_bytes: Self::DEFAULT_MAX_BYTES,
            protected: Vec::new(),
        })
    }

    /// The same with another limit on the size of a file.
    ///
    /// # Errors
    /// If it is none that can be kept.
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Result<Self, SettingsError> {
        self.max_bytes = bytes("files.max_bytes", max_bytes)?;
        Ok(self)
    }

    /// The same, without these files and directories, whatever the roots say: an agent must not write
    /// the rules it is under, nor read what is kept about others.
    #[must_use]
    pub fn protecting(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
        self.protected.extend(paths.into_iter().map(real));
        self
    }

    /// Whether a file is not to be touched by an agent. No file of this name is: wherever one is, it
    /// lays down rules for those who work there.
    pub(super) fn is_protected(&self, root: &Root, names: &[String]) -> bool {
        let is_configuration = names
            .last()
            .is_some_and(|name| name.eq_ignore_ascii_case("windlass.toml"));
        let real = std::fs::canonicalize(root.directory());
        let mut path = real.unwrap_or_else(|_| root.directory().to_owned());
        path.extend(names);
        is_configuration
            || self
                .protected
                .iter()
                .any(|protected| path.starts_with(protected))
    }

    /// The directories.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// How large a file may be that is read or written.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.contains('/')
        && is_clean(name, TextUse::Name)
}

/// Which hosts can be asked, and for how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    hosts: Vec<HostPattern>,
    max_bytes: usize,
    timeout: Duration,
    allow_private: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            max_bytes: Self::DEFAULT_MAX_BYTES,
            timeout: Self::DEFAULT_TIMEOUT,
            allow_private: false,
        }
    }
}

impl HttpSettings {
    /// How much a server may send, unless it is said otherwise: 2 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 2 * 1024 * 1024;

    /// How long a server may take, unless it is said otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

    /// Requests to these hosts: `example.org`, `*.example.org` for everything below it, an address, any
    /// of them with a port, or `*` for every public host.
    ///
    /// # Errors
    /// The first that is none of these.
    pub fn new<H: AsRef<str>>(hosts: impl IntoIterator<Item = H>) -> Result<Self, SettingsError> {
        let hosts: Result<Vec<HostPattern>, SettingsError> = hosts
            .into_iter()
            .map(|host| host.as_ref().parse())
            .collect();
        Ok(Self {
            hosts: hosts?,
            ..Self::default()
        })
    }

    /// The same with another limit on what a server may send.
    ///
    /// # Errors
    /// If it is none that can be kept.
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Result<Self, SettingsError> {
        self.max_bytes = bytes("http.max_bytes", max_bytes)?;
        Ok(self)
    }

    /// The same with another limit on how long a request may take, redirects and all.
    ///
    /// # Errors
    /// If it is not 1 to 300 seconds.
    pub fn with_timeout(mut self, timeout: Duration) -> Result<Self, SettingsError> {
        if !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&timeout) {
            let message = format!("{timeout:?} is not 1 to 300 seconds");
            return Err(SettingsError::new("http.timeout", message));
        }
        self.timeout = timeout;
        Ok(self)
    }

    /// The same, with leave for private addresses or without. Leave is only for those that are listed
    /// as addresses: a name that turns out to mean a private address stays refused.
    #[must_use]
    pub fn allow_private(mut self, allow: bool) -> Self {
        self.allow_private = allow;
        self
    }

    /// The hosts.
    #[must_use]
    pub fn hosts(&self) -> &[HostPattern] {
        &self.hosts
    }

    /// How much a server may send.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// How long a request may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether private addresses that are listed as such can be asked.
    #[must_use]
    pub fn allows_private(&self) -> bool {
        self.allow_private
    }
}

/// Where the web is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    endpoint: Url,
    max_results: usize,
}

impl SearchSettings {
    /// How many results a search gives at most, unless it is said otherwise.
    pub const DEFAULT_MAX_RESULTS: usize = 10;

    /// Searches by the `SearxNG` server at this URL, which ends in `/search` there. The operator vouches
    /// for the address, so it may be one of this machine.
    ///
    /// # Errors
    /// If it is no such URL.
    pub fn new(endpoint: &str) -> Result<Self, SettingsError> {
        Ok(Self {
            endpoint: service("search.endpoint", endpoint)?,
            max_results: Self::DEFAULT_MAX_RESULTS,
        })
    }

    /// The same with another limit on the number of results.
    ///
    /// # Errors
    /// If it is not 1 to 50.
    pub fn with_max_results(mut self, max_results: usize) -> Result<Self, SettingsError> {
        if !(1..=50).contains(&max_results) {
            let message = format!("{max_results} is not 1 to 50 results");
            return Err(SettingsError::new("search.max_results", message));
        }
        self.max_results = max_results;
        Ok(self)
    }

    /// Where the server is asked.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    pub(super) fn url(&self) -> &Url {
        &self.endpoint
    }

    /// How many results a search gives at most.
    #[must_use]
    pub fn max_results(&self) -> usize {
        self.max_results
    }
}

/// What drives a browser: a service that takes `{"url": ..., "task": ...}` by POST and answers with an
/// object or an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomationSettings {
    endpoint: Url,
}

impl AutomationSettings {
    /// The service at this URL. The operator vouches for the address.
    ///
    /// # Errors
    /// If it is no such URL.
    pub fn new(endpoint: &str) -> Result<Self, SettingsError> {
        let key = "automation.endpoint";
        let endpoint = service(key, endpoint)?;
        let host = endpoint.host_str().unwrap_or_default();
        HttpEndpoint::new(HttpMethod::Post, endpoint.as_str(), [host])
            .map_err(|problem| SettingsError::new(key, problem.to_string()))?;
        Ok(Self { endpoint })
    }

    /// Where it is.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    pub(super) fn url(&self) -> &Url {
        &self.endpoint
    }
}

/// The URL of a service that the operator names.
fn service(key: &'static str, url: &str) -> Result<Url, SettingsError> {
    let mistake = |message: String| SettingsError::new(key, message);
    let parsed = Url::parse(url).map_err(|error| {
        // Before an `@` there may be a password.
        let shown = url.rsplit('@').next().unwrap_or_default();
        mistake(format!(
            "{shown:?} is no URL ({error}); write it out, such as `http://localhost:8080/search`"
        ))
    })?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(mistake(format!(
            "`{}` is not `http` or `https`",
            parsed.scheme()
        )));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        // The URL is not repeated: it has a password in it.
        return Err(mistake(
            "a password does not belong in a URL; leave out what stands before the `@`".to_owned(),
        ));
    }
    Ok(parsed)
}

fn bytes(key: &'static str, max_bytes: u64) -> Result<usize, SettingsError> {
    usize::try_from(max_bytes)
        .ok()
        .filter(|max_bytes| (1..=MAX_BYTES).contains(max_bytes))
        .ok_or_else(|| {
            SettingsError::new(key, format!("{max_bytes} is not 1 to {MAX_BYTES} bytes"))
        })
}
