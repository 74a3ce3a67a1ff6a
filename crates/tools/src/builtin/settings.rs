//! The settings of the built-in tools, as checked data. Checking accesses neither files nor the network. An error
//! names the configuration key.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use windlass_spec::RunId;
use windlass_spec::text::{TextUse, is_clean};

use super::declared;
use super::files::Governed;
use super::web::HostPattern;
use crate::dispatch::DEFAULT_MAX_OUTPUT_BYTES;
use crate::http::{HttpEndpoint, HttpMethod};

/// The maximum of a byte limit: more would not fit into the result of a call.
const MAX_BYTES: usize = DEFAULT_MAX_OUTPUT_BYTES;

/// The settings of the library `builtin`. The default allows no files, hosts or services.
#[derive(Debug, Clone, Default)]
pub struct BuiltinSettings {
    /// The files that can be read, written and deleted; none if absent.
    pub files: Option<FileSettings>,
    /// The hosts that can be called; none by default.
    pub http: HttpSettings,
    /// The web search service; none if absent.
    pub search: Option<WebSearchSettings>,
    /// The service that drives a browser; none if absent.
    pub automation: Option<AutomationSettings>,
    /// The environment, such as `production`, for `check_security_status`.
    pub environment: Option<String>,
    /// Further facts for `check_security_status`. Models see them, so they must not contain secrets.
    pub facts: Vec<SecurityFact>,
}

impl BuiltinSettings {
    /// The tools that cannot be used with these settings, each with what to configure.
    #[must_use]
    pub fn not_configured(&self) -> Vec<NotConfigured> {
        let is_missing = |key: &str| match key.split_whitespace().next() {
            Some("[files]") => self.files.is_none(),
            Some("[http]") => self.http.hosts.is_empty(),
            Some("[search]") => self.search.is_none(),
            Some("[automation]") => self.automation.is_none(),
            _ => false,
        };
        let tools = declared::ALL.iter().filter_map(|tool| {
            let needs = tool.needs.filter(|needs| is_missing(needs.key))?;
            Some(NotConfigured {
                tool: tool.name,
                key: needs.key,
                help: needs.help,
            })
        });
        tools.collect()
    }
}

/// A fact that `check_security_status` reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityFact {
    /// Its name, such as `undo_window_seconds`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A tool that cannot be used until a setting is configured.
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

/// An invalid setting.
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

/// A directory whose files the tools can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRoot {
    name: String,
    directory: PathBuf,
}

impl FileRoot {
    /// Its name in paths if there are several roots.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its path.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The files that can be read, written and deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    roots: Vec<FileRoot>,
    max_bytes: usize,
    protected: Vec<Governed>,
    governing: Vec<Governed>,
    recorder: Option<WriteRecorder>,
    elsewhere: Option<GovernedIn>,
}

/// The files that govern agents of a project or a library in a directory.
type FilesIn = dyn Fn(&Path) -> Vec<PathBuf> + Send + Sync;

/// Finds the files that govern agents of projects which the settings do not know.
#[derive(Clone)]
struct GovernedIn(Arc<FilesIn>);

impl fmt::Debug for GovernedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GovernedIn")
    }
}

impl PartialEq for GovernedIn {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GovernedIn {}

/// Records what the file tools are about to write.
#[derive(Clone)]
pub struct WriteRecorder(Arc<RecordWrite>);

/// Records a file with its content and the run that writes it.
type RecordWrite = dyn Fn(&Path, &str, &RunId) -> Result<(), String> + Send + Sync;

impl WriteRecorder {
    /// A recorder. If it fails, the file is not written.
    pub fn new(
        record: impl Fn(&Path, &str, &RunId) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(record))
    }

    pub(super) fn record(&self, path: &Path, content: &str, run: &RunId) -> Result<(), String> {
        (self.0)(path, content, run)
    }
}

impl fmt::Debug for WriteRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteRecorder")
    }
}

impl PartialEq for WriteRecorder {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for WriteRecorder {}

impl FileSettings {
    /// The default maximum size of a file: 1 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;

    /// Allows files below these directories. Relative paths are resolved now, from the current
    /// directory. If there are several, the name of each is the last part of its path.
    ///
    /// # Errors
    /// If there are none, one has no name, or two have the same name.
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
            // Paths do not contain the name of the only root, so any directory is allowed.
            let name = if is_only && !is_name(&name) {
                "files".to_owned()
            } else {
                name
            };
            (name, directory)
        }))
    }

    /// Allows files below these directories, each with the given name.
    ///
    /// # Errors
    /// If there are none, a name cannot be part of a path, or two are the same.
    pub fn named<N: Into<String>, P: Into<PathBuf>>(
        directories: impl IntoIterator<Item = (N, P)>,
    ) -> Result<Self, SettingsError> {
        let invalid = |message: String| SettingsError::new("files.roots", message);
        let mut roots = Vec::new();
        let mut names = BTreeSet::new();
        for (name, directory) in directories {
            let (name, directory): (String, PathBuf) = (name.into(), directory.into());
            let shown = directory.display();
            if directory.as_os_str().is_empty() {
                return Err(invalid(
                    "an empty path is not a directory; write `.` for the current directory"
                        .to_owned(),
                ));
            }
            if !is_name(&name) {
                return Err(invalid(format!(
                    "the root `{shown}` cannot be named {name:?}; write the full path of a directory with a plain name"
                )));
            }
            if !names.insert(name.clone()) {
                return Err(invalid(format!(
                    "two roots have the name `{name}`; paths begin with the name, so rename one directory"
                )));
            }
            let directory = std::path::absolute(&directory)
                .map_err(|error| invalid(format!("the root `{shown}` cannot be used: {error}")))?;
            roots.push(FileRoot { name, directory });
        }
        if roots.is_empty() {
            return Err(invalid(
                "there is no directory in the list; add at least one, or remove the key".to_owned(),
            ));
        }
        Ok(Self {
            roots,
            max_bytes: Self::DEFAULT_MAX_BYTES,
            protected: Vec::new(),
            governing: Vec::new(),
            recorder: None,
            elsewhere: None,
        })
    }

    /// Sets the maximum size of a file.
    ///
    /// # Errors
    /// If it is 0 or above the maximum.
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Result<Self, SettingsError> {
        self.max_bytes = check_bytes("files.max_bytes", max_bytes)?;
        Ok(self)
    }

    /// Excludes these files and directories from all roots. An agent must not write its own
    /// rules, nor read the data of others.
    #[must_use]
    pub fn protecting(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(paths.into_iter().map(Governed::new));
        self
    }

    /// Excludes these files and directories from writing and deleting. They may be read.
    #[must_use]
    pub fn governed_by(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.governing.extend(paths.into_iter().map(Governed::new));
        self
    }

    /// Asks, for each directory on the way to a file that is to be written or deleted, which files govern agents of a
    /// project or a library in it. Those are excluded like the files of [`Self::governed_by`].
    #[must_use]
    pub fn asking(mut self, files_in: Arc<FilesIn>) -> Self {
        self.elsewhere = Some(GovernedIn(files_in));
        self
    }

    /// The files that govern agents of a project or a library in a directory.
    pub(super) fn governing_in(&self, directory: &Path) -> Vec<Governed> {
        let found = self.elsewhere.iter().flat_map(|find| (find.0)(directory));
        found.map(Governed::new).collect()
    }

    /// Records every write of an agent before it is done.
    #[must_use]
    pub fn recorded_by(mut self, recorder: WriteRecorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    pub(super) fn recorder(&self) -> Option<&WriteRecorder> {
        self.recorder.as_ref()
    }

    /// What must not be accessed.
    pub(super) fn protected(&self) -> &[Governed] {
        &self.protected
    }

    /// What must not be written or deleted.
    pub(super) fn governing(&self) -> &[Governed] {
        &self.governing
    }

    /// The directories.
    #[must_use]
    pub fn roots(&self) -> &[FileRoot] {
        &self.roots
    }

    /// The maximum size of a file that is read or written.
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

/// The hosts that can be called, with limits.
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
    /// The default maximum size of a response: 2 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 2 * 1024 * 1024;

    /// The default time limit of a request.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

    /// Allows requests to these hosts: `example.org`, `*.example.org` for all its subdomains, an address, any
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

    /// Sets the maximum size of a response.
    ///
    /// # Errors
    /// If it is 0 or above the maximum.
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Result<Self, SettingsError> {
        self.max_bytes = check_bytes("http.max_bytes", max_bytes)?;
        Ok(self)
    }

    /// Sets the time limit of a request, including redirects.
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

    /// Allows or refuses private addresses. Only those that are listed as addresses are allowed: a name
    /// that resolves to a private address stays refused.
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

    /// The maximum size of a response.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// The time limit of a request.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether private addresses that are listed as such can be called.
    #[must_use]
    pub fn allows_private(&self) -> bool {
        self.allow_private
    }
}

/// The web search service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearchSettings {
    endpoint: Url,
    max_results: usize,
}

impl WebSearchSettings {
    /// The default maximum number of results.
    pub const DEFAULT_MAX_RESULTS: usize = 10;

    /// Uses the `SearxNG` server at this URL, which usually ends in `/search`. The operator trusts
    /// the address, so it may be one of this machine.
    ///
    /// # Errors
    /// If the URL is not valid.
    pub fn new(endpoint: &str) -> Result<Self, SettingsError> {
        Ok(Self {
            endpoint: parse_service_url("search.endpoint", endpoint)?,
            max_results: Self::DEFAULT_MAX_RESULTS,
        })
    }

    /// Sets the maximum number of results.
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

    /// The URL of the server.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    pub(super) fn url(&self) -> &Url {
        &self.endpoint
    }

    /// The maximum number of results.
    #[must_use]
    pub fn max_results(&self) -> usize {
        self.max_results
    }
}

/// The service that drives a browser. It takes `{"url": ..., "task": ...}` by POST and answers with an
/// object or an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomationSettings {
    endpoint: Url,
}

impl AutomationSettings {
    /// The service at this URL. The operator trusts the address.
    ///
    /// # Errors
    /// If the URL is not valid.
    pub fn new(endpoint: &str) -> Result<Self, SettingsError> {
        let key = "automation.endpoint";
        let endpoint = parse_service_url(key, endpoint)?;
        let host = endpoint.host_str().unwrap_or_default();
        HttpEndpoint::new(HttpMethod::Post, endpoint.as_str(), [host])
            .map_err(|problem| SettingsError::new(key, problem.to_string()))?;
        Ok(Self { endpoint })
    }

    /// Its URL.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    pub(super) fn url(&self) -> &Url {
        &self.endpoint
    }
}

/// Parses the URL of a service that the operator configures.
fn parse_service_url(key: &'static str, url: &str) -> Result<Url, SettingsError> {
    let invalid = |message: String| SettingsError::new(key, message);
    let parsed = Url::parse(url).map_err(|error| {
        // The part before an `@` may contain a password.
        let shown = url.rsplit('@').next().unwrap_or_default();
        invalid(format!(
            "{shown:?} is not a URL ({error}); write a full URL, such as `http://localhost:8080/search`"
        ))
    })?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(invalid(format!(
            "`{}` is not `http` or `https`",
            parsed.scheme()
        )));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        // The URL is not shown, because it contains a password.
        return Err(invalid(
            "a URL must not contain a password; remove everything before the `@`".to_owned(),
        ));
    }
    Ok(parsed)
}

fn check_bytes(key: &'static str, max_bytes: u64) -> Result<usize, SettingsError> {
    usize::try_from(max_bytes)
        .ok()
        .filter(|max_bytes| (1..=MAX_BYTES).contains(max_bytes))
        .ok_or_else(|| {
            SettingsError::new(key, format!("{max_bytes} is not 1 to {MAX_BYTES} bytes"))
        })
}
