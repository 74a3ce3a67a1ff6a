//! The service: its options, and the configuration, store and servers that all its operations share.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_config::{Configuration, Layer};
use windlass_mcp::Ledger;
use windlass_runtime::{
    ConfigurationError, ConfigurationFiles, Configured, FileDigests, FileTexts, ProjectTrust,
    Stored,
};
use windlass_spec::Timestamp;
use windlass_store::{RunSummary, Store};
use windlass_tools::ToolLibrary;

use crate::error::ServiceError;
use crate::experiments::StartedExperiments;
use crate::identity::{Identity, Scope};
use crate::libraries::LibraryTexts;
use crate::oidc::IssuerKeys;
use crate::options::{LearningOverride, Notice, Overrides, RunOptions};
use crate::servers::ServerPool;
use crate::trust::shown;

/// The service API: every operation that a front end (a command line, a server, a program) needs.
///
/// Opening is cheap. Configuration, store, libraries and servers are resolved when an operation first
/// needs them and then shared by all that follow; [`Service::check`] resolves them at once. Cloning
/// gives another handle to the same service.
///
/// Every operation takes the [`Identity`] of its caller and checks its scopes. Objects of another tenant
/// do not exist for it.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    /// The project's configuration that was named.
    config: Option<PathBuf>,
    files: ConfigurationFiles,
    overrides: Overrides,
    /// Where the service was opened.
    directory: PathBuf,
    own: Mutex<Option<Arc<Project>>>,
    /// The configurations of runs that were started under another one.
    others: Mutex<Vec<(ConfigurationFiles, Arc<Project>)>>,
    stored: Mutex<Option<Stored>>,
    servers: ServerPool,
    issuer: IssuerKeys,
    experiments: StartedExperiments,
    /// The messages about projects that the operator has seen.
    announced: Mutex<BTreeSet<String>>,
    /// The files of trusted projects, as they were when they were trusted.
    trusted: Mutex<FileDigests>,
}

/// A configuration that was read, and the libraries that were built under it.
pub(crate) struct Project {
    pub(crate) files: ConfigurationFiles,
    pub(crate) read: FileTexts,
    pub(crate) configured: Configured,
    /// The libraries built so far.
    pub(crate) libraries: Mutex<Vec<BuiltLibrary>>,
}

/// A library that was built.
pub(crate) struct BuiltLibrary {
    /// Its name, or the path of its file.
    pub(crate) name: String,
    /// The names of all libraries that were requested with it.
    pub(crate) names: Vec<String>,
    /// The texts it was built from.
    pub(crate) texts: LibraryTexts,
    pub(crate) library: ToolLibrary,
}

impl Project {
    /// Whether its files have changed since they were read, or are not trusted any more.
    fn has_changed(&self) -> bool {
        let Self {
            files,
            read,
            configured,
            ..
        } = self;
        files.have_changed(read) || files.has_lost_trust(read, &configured.trust)
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configured.configuration
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("files", &self.shared.files)
            .field("overrides", &self.shared.overrides)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// A service under the configuration of a project, except for what is overridden: the file `config`,
    /// else the nearest `windlass.toml` in the working directory or above it. Nothing is read yet.
    #[must_use]
    pub fn open(config: Option<&Path>, overrides: Overrides) -> Self {
        let directory = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let mut files = ConfigurationFiles::find(config, &directory);
        files.flags.extend(overrides.set.iter().cloned());
        files.is_trust_granted |= overrides.trust_project;
        Self {
            shared: Arc::new(Shared {
                config: config.map(Path::to_owned),
                files,
                overrides,
                directory,
                own: Mutex::default(),
                others: Mutex::default(),
                stored: Mutex::default(),
                servers: ServerPool::default(),
                issuer: IssuerKeys::default(),
                experiments: StartedExperiments::default(),
                announced: Mutex::default(),
                trusted: Mutex::default(),
            }),
        }
    }

    /// Resolves configuration, store and libraries now, for a front end that wants to fail at its start
    /// and not at its first request.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub fn check(&self) -> Result<(), ServiceError> {
        let project = self.project()?;
        self.stored()?;
        self.library(&project, &[], None).map(drop)
    }

    /// The configuration of the service with its policies and warnings.
    ///
    /// # Errors
    /// If it cannot be read, or has mistakes.
    pub(crate) fn configured(&self) -> Result<Configured, ServiceError> {
        Ok(self.project()?.configured.clone())
    }

    /// The files the configuration comes from.
    #[must_use]
    pub(crate) fn configuration_files(&self) -> ConfigurationFiles {
        self.shared.files.clone()
    }

    /// Reads the configuration again if its files have changed, so that agents that are bound now follow them like
    /// agents that are bound already. If it cannot be used, the previous one is kept.
    pub(crate) fn follow_configuration(&self) {
        if let Some(reloaded) = self.reload_if_changed() {
            self.notify(&reloaded);
        }
    }

    /// Reads the configuration again if its files have changed. Returns what happened, if they have.
    pub(crate) fn reload_if_changed(&self) -> Option<Notice> {
        lock(&self.shared.others).retain(|(_, project)| !project.has_changed());
        if !self.has_changed_configuration() {
            return None;
        }
        let reloaded = self.reread().and_then(|_| self.configured());
        Some(match reloaded {
            Ok(configured) => Notice::ConfigurationReloaded {
                digest: configured.digest(),
            },
            Err(error) => Notice::ConfigurationRefused {
                reason: error.to_string(),
            },
        })
    }

    /// Whether the configuration was read and its files have changed since.
    pub(crate) fn has_changed_configuration(&self) -> bool {
        let own = lock(&self.shared.own).clone();
        own.is_some_and(|own| own.has_changed())
    }

    /// Reads the configuration again, for a long-running front end. [`Service::bind`] does it too if the files have
    /// changed; agents that are bound already watch their files themselves. Returns whether it changed.
    ///
    /// # Errors
    /// If the identity is not an administrator, because all tenants share it; or if it cannot be used. The previous
    /// one is kept.
    pub fn reload(&self, identity: &Identity) -> Result<bool, ServiceError> {
        identity.require(Scope::Admin)?;
        self.reread()
    }

    /// Reads the configuration again.
    pub(crate) fn reread(&self) -> Result<bool, ServiceError> {
        let read = self.read(self.own_files())?;
        lock(&self.shared.others).clear();
        let mut own = lock(&self.shared.own);
        let is_same = |own: &Arc<Project>| {
            own.read == read.read && own.configured.trust == read.configured.trust
        };
        let is_same = own.as_ref().is_some_and(is_same);
        if !is_same {
            *own = Some(Arc::new(read));
        }
        Ok(!is_same)
    }

    /// The configuration of the service, read once. An invalid one is read again the next time.
    pub(crate) fn project(&self) -> Result<Arc<Project>, ServiceError> {
        let mut own = lock(&self.shared.own);
        if let Some(own) = &*own {
            return Ok(Arc::clone(own));
        }
        let read = Arc::new(self.read(self.own_files())?);
        Ok(Arc::clone(own.insert(read)))
    }

    fn own_files(&self) -> ConfigurationFiles {
        let overrides = &self.shared.overrides;
        with_overrides(
            self.shared.files.clone(),
            overrides.policies.as_deref(),
            overrides.environment.as_deref(),
            overrides.learning,
        )
    }

    /// The configuration for a run with these options: the service's own, unless the run was started under
    /// another one.
    pub(crate) fn project_of(&self, options: &RunOptions) -> Result<Arc<Project>, ServiceError> {
        let mut files = match &options.project {
            // A named file takes precedence over the run's own.
            Some(kept) if self.shared.config.is_none() => {
                let own = &self.shared.files;
                let mut files = ConfigurationFiles::find(Some(kept), &self.shared.directory);
                files.flags.clone_from(&own.flags);
                // The run names the file, not the caller of this command.
                files.is_discovered = true;
                files.is_trust_granted = own.is_trust_granted;
                files.named_files.clone_from(&options.named_files);
                files
            }
            _ => self.shared.files.clone(),
        };
        // Current flags take precedence over those the run was started with.
        files.flags = [options.set.clone(), files.flags].concat();
        let policies = options.policy.as_deref();
        let environment = options.environment.as_deref();
        let files = with_overrides(files, policies, environment, options.learning());
        if let Ok(own) = self.project()
            && own.requested_files() == files
        {
            return Ok(own);
        }
        let mut others = lock(&self.shared.others);
        if let Some((_, project)) = others.iter().find(|(known, _)| *known == files) {
            return Ok(Arc::clone(project));
        }
        let project = Arc::new(self.read(files.clone())?);
        others.push((files, Arc::clone(&project)));
        Ok(project)
    }

    fn read(&self, mut files: ConfigurationFiles) -> Result<Project, ConfigurationError> {
        let mut usual = None;
        let (configured, read) = files.read_with(&FileTexts::default(), |configuration| {
            let directory = self.data_directory_under(configuration);
            usual = directory.map(|directory| directory.join("policy.cedar"));
            usual.clone()
        })?;
        files.usual_policies = usual;
        if let ProjectTrust::Files(digests) = &configured.trust {
            lock(&self.shared.trusted).extend(digests.clone());
        }
        self.announce(&files, &configured);
        Ok(Project {
            files,
            read,
            configured,
            libraries: Mutex::default(),
        })
    }

    /// The data directory that a command needs to be given elsewhere: the one that the service was opened with, or
    /// that of the project. `None` if every command of the user finds it.
    #[must_use]
    pub fn given_data_directory(&self) -> Option<PathBuf> {
        if let Some(given) = &self.shared.overrides.data {
            return Some(given.clone());
        }
        let project = self.project().ok()?;
        let configuration = project.configuration();
        let origin = configuration.origin(&["data_directory"])?;
        let of_project = (origin.layer() == Layer::Project).then(|| configuration.data_directory());
        of_project.flatten().map(Path::to_owned)
    }

    /// The directory of runs, memory and playbooks.
    ///
    /// # Errors
    /// If no directory is set and there is no default.
    pub fn data_directory(&self) -> Result<PathBuf, ServiceError> {
        if let Some(given) = &self.shared.overrides.data {
            return Ok(given.clone());
        }
        let directory = match self.project() {
            Ok(project) => self.data_directory_under(project.configuration()),
            // With the variable set, runs can be read even if the configuration is invalid.
            Err(error) => return path_variable("WINDLASS_DATA").ok_or(error),
        };
        directory.ok_or_else(|| {
            ServiceError::failed(
                "there is no data directory; set WINDLASS_DATA or use `--data DIRECTORY`",
            )
        })
    }

    fn data_directory_under(&self, configuration: &Configuration) -> Option<PathBuf> {
        let given = self.shared.overrides.data.clone();
        given
            .or_else(|| configuration.data_directory().map(Path::to_owned))
            .or_else(|| path_variable("XDG_DATA_HOME").map(|data| data.join("windlass")))
            .or_else(|| path_variable("HOME").map(|home| home.join(".local/share/windlass")))
    }

    /// The store, opened once.
    pub(crate) fn stored(&self) -> Result<Stored, ServiceError> {
        let mut stored = lock(&self.shared.stored);
        if let Some(stored) = &*stored {
            return Ok(stored.clone());
        }
        let directory = self.data_directory()?;
        let opened = Stored::open(&directory).map_err(|error| {
            let doing = format!("the journal in `{}` cannot be used", shown(&directory));
            ServiceError::from(error).context(doing)
        })?;
        if let Some(error) = opened.store().authentication_error() {
            self.notify(&Notice::Warning(format!("warning: {error}")));
        }
        Ok(stored.insert(opened).clone())
    }

    /// The store on behalf of an identity, for which its runs act.
    pub(crate) fn stored_for(&self, identity: &Identity) -> Result<Stored, ServiceError> {
        Ok(self.stored()?.acting_for(identity.person().clone()))
    }

    pub(crate) fn store(&self) -> Result<Arc<Store>, ServiceError> {
        Ok(Arc::clone(self.stored()?.store()))
    }

    /// The ledger of MCP servers. Servers belong to the service, not to a tenant: an administrator accepts
    /// their tools for all tenants.
    pub(crate) fn ledger(&self) -> Result<Ledger, ServiceError> {
        let stored = self.stored()?;
        let tenant = stored.who().tenant.to_string();
        Ok(Ledger::new(Arc::clone(stored.store()), tenant))
    }

    pub(crate) fn servers(&self) -> &ServerPool {
        &self.shared.servers
    }

    pub(crate) fn issuer(&self) -> &IssuerKeys {
        &self.shared.issuer
    }

    pub(crate) fn started_experiments(&self) -> &StartedExperiments {
        &self.shared.experiments
    }

    pub(crate) fn announced(&self) -> &Mutex<BTreeSet<String>> {
        &self.shared.announced
    }

    /// The digest that a file had when its project was trusted, if it has one.
    pub(crate) fn trusted_digest(&self, path: &Path) -> Option<String> {
        let path = std::fs::canonicalize(path).ok()?;
        lock(&self.shared.trusted).get(&path).cloned()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.shared.directory
    }

    pub(crate) fn overrides(&self) -> &Overrides {
        &self.shared.overrides
    }

    /// A handle that does not keep the service open. It returns `None` after the service was closed.
    pub(crate) fn downgrade(&self) -> impl Fn() -> Option<Self> + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.upgrade().map(|shared| Self { shared })
    }

    pub(crate) fn notify(&self, notice: &Notice) {
        if let Some(notify) = &self.shared.overrides.notify {
            notify(notice);
        }
    }

    /// The run with that id or prefix of an id, if the identity may see it.
    pub(crate) fn find_run(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<(RunSummary, Arc<Store>), ServiceError> {
        let store = self.store()?;
        let run = store.find(identity.tenant().as_str(), id)?;
        Ok((store.summary(&run)?, store))
    }

    /// The current time, by the clock of runs.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        windlass_runtime::now()
    }

    /// Ends all MCP servers that the service started.
    pub async fn close(&self) {
        self.shared.servers.close().await;
    }

    /// Ends all MCP servers because the process ends. Calls that wait for one of them record nothing more.
    pub async fn abandon(&self) {
        self.shared.servers.abandon().await;
    }
}

impl Project {
    /// The files as they were requested, before the default policy file was known.
    fn requested_files(&self) -> ConfigurationFiles {
        ConfigurationFiles {
            usual_policies: None,
            ..self.files.clone()
        }
    }
}

/// Files with overrides.
fn with_overrides(
    mut files: ConfigurationFiles,
    policies: Option<&Path>,
    environment: Option<&str>,
    learning: LearningOverride,
) -> ConfigurationFiles {
    files.policies = policies.map(Path::to_owned);
    let environment = environment.map(|name| format!("environment={name}"));
    let learning = learning.flag().map(str::to_owned);
    files.flags.extend(environment.into_iter().chain(learning));
    files
}

/// The path in an environment variable.
fn path_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Runs blocking work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ServiceError::failed(error.to_string()))?
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
