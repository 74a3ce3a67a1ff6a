//! Binds an agent: from its declaration and options to an agent with its libraries, its model and its rules,
//! ready for tasks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_config::Configuration;
use windlass_core::run::{Run, Settings, Task};
use windlass_model::{
    HostedModel, HostedSettings, ModelClient, RecordingModel, ReflexModel, ReplayModel,
    ScriptedModel,
};
use windlass_runtime::{
    ConfigurationWatch, Crew, CrewError, Driver, Durable as _, GapAtLoad, Models, NewTask,
    RecordedStart, Reload, assemble, choose_model, file_digests, short_secrets, text_digest,
    watch_configuration,
};
use windlass_spec::server::ServerName;
use windlass_spec::{Agent, AgentFile, AgentName, Model, RunId};
use windlass_store::{Store, StoredConversation};
use windlass_tools::{FileWatch, Tool, ToolLibrary};

use crate::binding::{BindingRecord, StoredBinding};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::libraries::{
    LibraryTexts, binding_mode, is_trusted_now, named_of, unknown_name_message,
};
use crate::names::not_known;
use crate::options::{Attachment, Notice, RunOptions};
use crate::outside::{OUTSIDE, outside_library};
use crate::servers::server_of;
use crate::service::{Project, Service, blocking, lock};
use crate::trust::{review_command, shown};

/// An agent of an agent file, with the other agents of the file.
#[derive(Debug, Clone)]
pub struct DeclaredAgent {
    agent: Agent,
    file: AgentFile,
    /// Where the file is, if it was read from one.
    path: Option<PathBuf>,
}

impl DeclaredAgent {
    /// The agent of that name in a file, or its only top-level agent. `place` is what the file is called
    /// in messages.
    ///
    /// # Errors
    /// If there is no such agent, or it must be named.
    pub fn choose(file: AgentFile, name: Option<&str>, place: &str) -> Result<Self, ServiceError> {
        let agent = choose_agent(&file, name, place)?.clone();
        Ok(Self {
            agent,
            file,
            path: None,
        })
    }

    /// The same agent, as it was read from this file. Runs record the file.
    #[must_use]
    pub fn from_path(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The agent of that name in the text of an agent file, or its only top-level agent. `place` is what the
    /// text is called in messages.
    ///
    /// # Errors
    /// If the text is not a valid agent file, there is no such agent, or it must be named.
    pub fn read(text: &str, name: Option<&str>, place: &str) -> Result<Self, ServiceError> {
        let reading = windlass_spec::read(text);
        match reading.file {
            Some(file) => Self::choose(file, name, place),
            None => {
                let errors = reading
                    .diagnostics
                    .iter()
                    .map(|found| found.message.clone());
                let errors: Vec<String> = errors.collect();
                let message = format!("`{place}` is not a valid agent file: {}", errors.join("; "));
                Err(ServiceError::invalid("invalid_agent_file", message))
            }
        }
    }

    /// An agent of a file.
    pub(crate) fn of_file(agent: &Agent, file: &AgentFile) -> Self {
        Self {
            agent: agent.clone(),
            file: file.clone(),
            path: None,
        }
    }

    /// Its declaration.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// All agents of its file.
    #[must_use]
    pub fn file(&self) -> &AgentFile {
        &self.file
    }

    /// The names that its tasks may use as tools: its tools and its sub-agents.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.agent.tools().iter().map(|tool| tool.name().as_str());
        let agents = self.agent.agents().iter().map(AgentName::as_str);
        tools.chain(agents).collect()
    }

    /// Checks the names of the tools that a task may use (`available_tools`).
    ///
    /// # Errors
    /// If the agent has no tool or sub-agent of such a name.
    pub fn check_tools(&self, names: &[String]) -> Result<(), ServiceError> {
        let known = self.tool_names();
        let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(not_known(
                "no_such_tool",
                "tool",
                name,
                &known,
                "this agent",
            )),
            None => Ok(()),
        }
    }
}

/// An agent that can be given tasks: bound to libraries and a model, under the rules of a configuration.
/// The rules follow the configuration when its files change.
pub struct BoundAgent {
    service: Service,
    crew: Crew,
    /// How it was bound, as it is stored with its runs.
    assembly: Map<String, Value>,
    /// The name of the model, for display.
    model: String,
    watching: Arc<ConfigurationWatch>,
    /// The files that govern its runs.
    files: FileWatch,
}

impl std::fmt::Debug for BoundAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundAgent")
            .field("crew", &self.crew)
            .finish_non_exhaustive()
    }
}

/// A task for an agent.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// The id of the run, if [`Service::reserve_run`] gave it one; a new one otherwise.
    pub run: Option<RunId>,
    /// The task's id, if the caller gives it one.
    pub task_id: Option<String>,
    /// The conversation that its task is a message of. The service adds its answer; see [`NewRun::of_message`].
    pub conversation: Option<StoredConversation>,
    /// The task.
    pub task: Task,
    /// Its limits.
    pub settings: Settings,
}

impl BoundAgent {
    /// The agent's declaration, with the tools of the servers it is configured with.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.crew.lead().agent
    }

    /// The service it was bound by.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// The name of the model, for display.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The agents with their tools and models.
    #[must_use]
    pub(crate) fn crew(&self) -> &Crew {
        &self.crew
    }

    /// Records the start of a run and returns it before anything is done, for a front end that returns its id.
    ///
    /// # Errors
    /// If the identity may not run agents, or the journal cannot be written.
    pub async fn begin(
        &self,
        identity: &Identity,
        mut new: NewRun,
        attachment: Attachment,
    ) -> Result<BegunRun, ServiceError> {
        let driver = self.driver(identity, attachment)?;
        let begun = match new.conversation.take() {
            None => driver.begin(self.task(new)).await?,
            Some(conversation) => self.begin_in(&driver, identity, conversation, new).await?,
        };
        Ok(BegunRun {
            driver,
            begun,
            service: self.service.clone(),
            _watching: Arc::clone(&self.watching),
        })
    }

    /// Records the start of a run that answers a message of a conversation. The conversation knows of the run
    /// first, so that no answer is lost.
    async fn begin_in(
        &self,
        driver: &Driver,
        identity: &Identity,
        conversation: StoredConversation,
        mut new: NewRun,
    ) -> Result<RecordedStart, ServiceError> {
        let run = match new.run.take() {
            Some(run) => run,
            None => self.service.stored()?.new_id()?,
        };
        new.run = Some(run.clone());
        let (service, caller) = (self.service.clone(), identity.clone());
        let (opened, id) = (conversation.clone(), run.clone());
        let is_new = blocking(move || service.open_exchange(&caller, &opened, &id)).await?;
        match driver.begin(self.task(new)).await {
            Ok(begun) => Ok(begun),
            Err(error) => {
                if is_new {
                    let (service, caller) = (self.service.clone(), identity.clone());
                    let withdrawn = move || service.withdraw_exchange(&caller, &conversation, &run);
                    blocking(withdrawn).await?;
                }
                Err(error.into())
            }
        }
    }

    /// Starts a run and drives it until it ends, waits for a person, or is stopped.
    ///
    /// # Errors
    /// If the identity may not run agents, or the journal cannot be written.
    pub async fn start(
        &self,
        identity: &Identity,
        new: NewRun,
        attachment: Attachment,
    ) -> Result<Run, ServiceError> {
        if new.conversation.is_some() {
            return self.begin(identity, new, attachment).await?.drive().await;
        }
        let driver = self.driver(identity, attachment)?;
        Ok(driver.start(self.task(new)).await?)
    }

    /// A driver for many runs of the agent, for callers that order them themselves.
    ///
    /// # Errors
    /// If the identity may not run agents, or the store cannot be opened.
    pub(crate) fn driver(
        &self,
        identity: &Identity,
        attachment: Attachment,
    ) -> Result<Driver, ServiceError> {
        identity.require(Scope::Run)?;
        let stored = self.service.stored_for(identity)?;
        let driver = Driver::new(self.crew.clone(), Arc::new(stored));
        let driver = driver.watching_files(self.files.clone());
        let watch = self.service.writing_traces(attachment.watch.clone());
        let attachment = Attachment {
            watch,
            ..attachment
        };
        Ok(attachment.attach(driver))
    }

    /// The task for the driver, with how the agent was bound.
    #[must_use]
    pub(crate) fn task(&self, new: NewRun) -> NewTask {
        NewTask {
            run: new.run,
            task_id: new.task_id,
            task: new.task,
            settings: new.settings,
            assembly: self.assembly.clone(),
        }
    }
}

/// A run whose start is recorded. If it is dropped, it waits until it is resumed.
pub struct BegunRun {
    driver: Driver,
    begun: RecordedStart,
    service: Service,
    _watching: Arc<ConfigurationWatch>,
}

impl std::fmt::Debug for BegunRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BegunRun").field(self.begun.id()).finish()
    }
}

impl BegunRun {
    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        self.begun.id()
    }

    /// Drives the run until it ends, waits for a person, or is stopped.
    ///
    /// # Errors
    /// If the journal cannot be written. The run can be resumed later.
    pub async fn drive(self) -> Result<Run, ServiceError> {
        let run = self.driver.drive(self.begun).await?;
        self.service.keep_answer_of(run).await
    }

    /// Drives the run as [`BegunRun::drive`] does. One that is stopped is left to the next worker that can bind it,
    /// also if the returned future is dropped: for a process that ends.
    ///
    /// # Errors
    /// If the journal cannot be written. The run can be resumed later.
    pub async fn drive_or_leave(self) -> Result<Run, ServiceError> {
        // Dropped last, when the run has no owner any more.
        let mut left = LeftToWorker {
            run: self.begun.id().clone(),
            store: self.service.store()?,
            is_settled: false,
        };
        let driven = self.driver.drive(self.begun).await;
        left.is_settled = driven
            .as_ref()
            .is_ok_and(|run| run.end_or_waiting().is_some());
        self.service.keep_answer_of(driven?).await
    }

    /// Leaves the run to the next worker that can bind it.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn leave_to_worker(self) -> Result<RunId, ServiceError> {
        let run = self.begun.id().clone();
        drop(self.begun);
        self.service.store()?.mark_abandoned(&run)?;
        Ok(run)
    }
}

/// A run that is left to the next worker when this is dropped.
struct LeftToWorker {
    run: RunId,
    store: Arc<Store>,
    is_settled: bool,
}

impl Drop for LeftToWorker {
    fn drop(&mut self) {
        if !self.is_settled {
            // Without the mark, the run waits for `windlass runs resume`.
            let _ = self.store.mark_abandoned(&self.run);
        }
    }
}

/// What an agent is bound for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose<'p> {
    /// New runs of an agent of this file: it is given the tools of the servers it is configured with.
    NewRuns(Option<&'p Path>),
    /// A stored run, which has them already.
    StoredRun,
}

impl Service {
    /// Binds an agent for new runs.
    ///
    /// # Errors
    /// If the identity may not run agents; if a library, a server, a policy or a model cannot be used; or
    /// if some tool cannot be bound.
    pub fn bind(
        &self,
        identity: &Identity,
        declared: &DeclaredAgent,
        options: &RunOptions,
    ) -> Result<BoundAgent, ServiceError> {
        identity.require(Scope::Run)?;
        self.require_for_options(identity, options)?;
        self.bind_permitted(identity, declared, options)
    }

    /// Binds an agent with options that the identity is allowed, as the caller has checked.
    pub(crate) fn bind_permitted(
        &self,
        identity: &Identity,
        declared: &DeclaredAgent,
        options: &RunOptions,
    ) -> Result<BoundAgent, ServiceError> {
        let (agents, purpose) = (
            declared.file.agents(),
            Purpose::NewRuns(declared.path.as_deref()),
        );
        let bound = self.bind_agents(identity, agents, &declared.agent, options, purpose)?;
        self.notify(&Notice::Model(bound.model.clone()));
        Ok(bound)
    }

    /// Refuses options that read files, replace policies or start programs which the configuration does not
    /// name, unless the identity may do everything.
    pub(crate) fn require_for_options(
        &self,
        identity: &Identity,
        options: &RunOptions,
    ) -> Result<(), ServiceError> {
        let model = options.model.as_deref().unwrap_or_default();
        let names_files = options.policy.is_some()
            || options.project.is_some()
            || options.record.is_some()
            || options.environment.is_some()
            || !options.set.is_empty()
            || options.base_url.is_some()
            || options.binding.is_some()
            || ["scripted:", "replay:"]
                .iter()
                .any(|kind| model.starts_with(kind));
        match names_files {
            true => identity.require(Scope::Admin),
            false => self.require_for_libraries(identity, &options.library),
        }
    }

    /// Binds one tool, to be called without a model. `options` say where it comes from.
    pub(crate) fn bind_tool(
        &self,
        identity: &Identity,
        agent: &Agent,
        options: &RunOptions,
    ) -> Result<BoundAgent, ServiceError> {
        let agents = std::slice::from_ref(agent);
        self.bind_agents(identity, agents, agent, options, Purpose::StoredRun)
    }

    /// Binds the agents of a stored run again, with these options.
    pub(crate) fn bind_again(
        &self,
        identity: &Identity,
        run: &Run,
        options: &RunOptions,
    ) -> Result<BoundAgent, ServiceError> {
        self.bind_agents(
            identity,
            run.agents(),
            run.agent(),
            options,
            Purpose::StoredRun,
        )
    }

    /// The options a stored run was bound by.
    pub(crate) fn stored_options(&self, run: &Run) -> Result<RunOptions, ServiceError> {
        match StoredBinding::of(run) {
            StoredBinding::Options(options) => Ok(*options),
            StoredBinding::Program(_) => Err(ServiceError::failed(format!(
                "the run {} was started by another program; resume it there",
                run.id()
            ))),
        }
    }

    fn bind_agents(
        &self,
        identity: &Identity,
        agents: &[Agent],
        agent: &Agent,
        options: &RunOptions,
        purpose: Purpose<'_>,
    ) -> Result<BoundAgent, ServiceError> {
        self.follow_configuration();
        let project = self.project_of(options)?;
        for warning in &project.configured.warnings {
            self.notify(&Notice::Warning(warning.to_string()));
        }
        let agent_file = match purpose {
            Purpose::NewRuns(path) => path,
            Purpose::StoredRun => None,
        };
        let mut changes = self.accept_written_files(&project, options, agent_file)?;
        let configuration = project.configuration();
        let named_servers = |agent: &Agent| -> Vec<ServerName> {
            let set = configuration.agents().get(agent.name());
            let servers = set.map(|set| set.servers.iter().cloned());
            servers.into_iter().flatten().collect()
        };
        let built = self.library_for(&project, options, agents, agent, &named_servers)?;
        let is_built = built.is_some();
        let (library, texts) =
            built.unwrap_or_else(|| (ToolLibrary::new("none"), LibraryTexts::new()));
        let add_tools = |agent: &Agent| match purpose {
            Purpose::NewRuns(_) => with_servers(agent, &named_servers(agent), &library),
            Purpose::StoredRun => Ok(agent.clone()),
        };
        let agents: Vec<Agent> = agents.iter().map(add_tools).collect::<Result<_, _>>()?;
        let (agents, agent) = (agents.as_slice(), &add_tools(agent)?);
        let (models, model) = self.models(agents, agent, options, configuration)?;
        let mode = options.mode.unwrap_or(binding_mode(configuration));
        let crew = assemble(agents, agent, &library, mode, &models);
        let crew = crew.map_err(|error| {
            self.note_gap_at_load(identity, &error, agents, agent, &library);
            let untrusted = &project.configured.untrusted;
            let is_library = |key: &str| key == "libraries" || key.starts_with("servers.");
            if matches!(error, CrewError::Binding { .. })
                && options.library.is_empty()
                && untrusted.iter().any(|setting| is_library(&setting.key))
            {
                let command = review_command(&project.files);
                return ServiceError::from(error).with_hint(format!(
                    "the project is not trusted, so its libraries and servers are not used; review it with \
                     `{command}`"
                ));
            }
            let hint = match (&error, options.library.as_slice()) {
                (CrewError::Binding { .. }, []) => {
                    "name the library that has them with `--library`, or in `libraries` of \
                     windlass.toml"
                }
                _ => "",
            };
            ServiceError::from(error).with_hint(hint)
        })?;
        let policies = &project.configured.policies;
        let crew = crew.knowing(match is_built && options.library.is_empty() {
            true => named_of(policies, &library, &[]),
            false => self.tools_named_in(policies, &project, &[]),
        });
        crew.configure(&project.configured)?;
        let mut stored = options.clone().with_absolute_paths();
        stored.mode = Some(mode);
        let mut binding = self.binding_record(&crew, &stored, &project, &model, &texts);
        if options.library.is_empty() {
            self.check_trusted(&binding)?;
        }
        if let Purpose::NewRuns(path) = purpose {
            let paths: Vec<PathBuf> = path.map(Path::to_owned).into_iter().collect();
            binding.agent_file = file_digests(&paths);
            let files = binding.files.iter().chain(&binding.agent_file);
            changes.extend(self.report_changes(identity, files)?);
            self.record_configuration(identity, &project.configured.digest())?;
        }
        binding.file_changes = changes;
        self.warn_of_short_secrets(&binding);
        stored.binding = Some(binding);
        let assembly = self.stored_form(stored, &project, &texts)?;
        let watching = self.watch_project(&project, &crew, &options.library, library);
        let files = self.watch_files(&project, options, agent_file);
        Ok(BoundAgent {
            service: self.clone(),
            crew,
            assembly,
            model,
            watching: Arc::new(watching),
            files,
        })
    }

    /// How an agent was bound, as it is stored with its runs.
    fn stored_form(
        &self,
        mut options: RunOptions,
        project: &Project,
        texts: &LibraryTexts,
    ) -> Result<Map<String, Value>, ServiceError> {
        options.project = project
            .files
            .project()
            .and_then(|path| std::fs::canonicalize(path).ok());
        // Who named the configuration also trusts it when the run is resumed, as long as it is the same.
        if !project.files.is_discovered || project.files.is_trust_granted {
            let subject = project.files.subject_as_read(&project.read);
            let mut files = subject.map(|subject| subject.files);
            // The texts of libraries that are used, which may not be those that are in the files now.
            for (path, text) in texts {
                let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                if let Some(digest) = files.as_mut().and_then(|files| files.get_mut(&path)) {
                    *digest = text_digest(text);
                }
            }
            options.named_files = files;
        }
        options.set = [options.set, self.overrides().set.clone()].concat();
        match serde_json::to_value(options)? {
            Value::Object(assembly) => Ok(assembly),
            _ => Ok(Map::new()),
        }
    }

    /// Refuses files of a project that are not as they were when it was found to be trusted.
    fn check_trusted(&self, binding: &BindingRecord) -> Result<(), ServiceError> {
        for (path, digest) in &binding.files {
            let trusted = self.trusted_digest(path);
            if trusted.is_some_and(|trusted| trusted != *digest) && !is_trusted_now(path, digest) {
                let message = format!("`{}` changed since its project was trusted", shown(path));
                let hint = "review it with `windlass trust`";
                return Err(ServiceError::conflict("project_changed", message).with_hint(hint));
            }
        }
        Ok(())
    }

    /// Warns of the secrets of a crew and its models that are too short to be kept out of the journal.
    fn warn_of_short_secrets(&self, record: &BindingRecord) {
        let is_used = |name: &String| record.variables.contains(name) || name.ends_with("_API_KEY");
        for name in short_secrets().filter(is_used) {
            let message = format!(
                "warning: the secret in `{name}` has fewer than 8 characters, so it is not removed from journals and \
                 recordings; use a longer one"
            );
            if lock(self.announced()).insert(message.clone()) {
                self.notify(&Notice::Warning(message));
            }
        }
    }

    /// The record of what a crew is bound to now.
    pub(crate) fn binding_record(
        &self,
        crew: &Crew,
        options: &RunOptions,
        project: &Project,
        model: &str,
        texts: &LibraryTexts,
    ) -> BindingRecord {
        // Why the embedded model answers is not part of its name.
        let chosen = model.split(',').next().unwrap_or(model);
        let model = options.model.as_deref().unwrap_or(chosen);
        BindingRecord::of(crew, texts, project, self.directory(), options, model)
    }

    /// Watches the configuration files and applies changes to a crew.
    fn watch_project(
        &self,
        project: &Project,
        crew: &Crew,
        named: &[String],
        bound: ToolLibrary,
    ) -> ConfigurationWatch {
        let (service, named) = (self.clone(), named.to_vec());
        let library = move |configuration: &Configuration| {
            // No configuration changes what other programs execute.
            if is_outside(&named) {
                return Ok(bound.clone());
            }
            let library = service.build_library(configuration, &named, None);
            library.map_err(|error| error.to_string())
        };
        let service = self.clone();
        let on_reload = move |reload: &Reload| {
            service.notify(&match reload {
                Reload::Changed(configured) => Notice::ConfigurationReloaded {
                    digest: configured.digest(),
                },
                Reload::Refused(reason) => Notice::ConfigurationRefused {
                    reason: reason.clone(),
                },
            });
        };
        let (library, on_reload) = (Arc::new(library), Arc::new(on_reload));
        watch_configuration(
            project.files.clone(),
            project.read.clone(),
            crew.clone(),
            library,
            on_reload,
        )
    }

    /// The library with the implementations: the named libraries, else those of the configuration. `None` if the
    /// agents need none.
    fn library_for(
        &self,
        project: &Project,
        options: &RunOptions,
        agents: &[Agent],
        agent: &Agent,
        named_servers: &dyn Fn(&Agent) -> Vec<ServerName>,
    ) -> Result<Option<(ToolLibrary, LibraryTexts)>, ServiceError> {
        if is_outside(&options.library) {
            let agents: Vec<Agent> = agents.iter().chain([agent]).cloned().collect();
            return Ok(Some((outside_library(&agents)?, LibraryTexts::new())));
        }
        let has_tools =
            |agent: &Agent| !agent.tools().is_empty() || !named_servers(agent).is_empty();
        if options.library.is_empty()
            && !has_tools(agent)
            && (agent.agents().is_empty() || !agents.iter().any(has_tools))
        {
            return Ok(None);
        }
        let mut wanted: Vec<ServerName> = Vec::new();
        for agent in agents.iter().chain([agent]) {
            let tools = agent.tools().iter().map(|tool| tool.name().as_str());
            wanted.extend(tools.filter_map(server_of));
            wanted.extend(named_servers(agent));
        }
        let wanted = |name: &ServerName| wanted.contains(name);
        self.library_with_texts(project, &options.library, Some(&wanted))
            .map(Some)
    }

    /// Stores the gap of an agent that could not be bound. The caller reports why it could not; a failure
    /// to store is a warning.
    fn note_gap_at_load(
        &self,
        identity: &Identity,
        error: &CrewError,
        agents: &[Agent],
        lead: &Agent,
        library: &ToolLibrary,
    ) {
        let Some(gap) = GapAtLoad::of(error, agents, lead, library) else {
            return;
        };
        let noted = self
            .stored_for(identity)
            .and_then(|stored| Ok(stored.note_gap_at_load(&gap)?));
        if let Err(error) = noted {
            self.notify(&Notice::Warning(format!(
                "warning: the missing tools could not be recorded: {error}"
            )));
        }
    }

    /// The models of the agents, and the name for display.
    fn models(
        &self,
        agents: &[Agent],
        agent: &Agent,
        options: &RunOptions,
        configuration: &Configuration,
    ) -> Result<(Models, String), ServiceError> {
        let mut options = options.clone();
        options.model = options
            .model
            .or_else(|| configuration.model().map(str::to_owned));
        options.base_url = options
            .base_url
            .or_else(|| configuration.base_url().map(str::to_owned));
        if let (Some(name), Some(path)) = (&options.model, &options.record)
            && answers_here(name)
        {
            let message = format!(
                "warning: nothing is recorded in `{}`: `{name}` answers in this process, and only answers of model \
                 servers are recorded",
                shown(path)
            );
            self.notify(&Notice::Warning(message));
        }
        let named = match (&options.model, &options.record) {
            (Some(name), _) => Some(named_model(name, &options)?),
            // One recording cannot distinguish the answers of several models.
            (None, Some(_)) if !agent.agents().is_empty() => {
                return Err(ServiceError::failed(
                    "the agent's sub-agents have other models, which cannot be recorded together",
                )
                .with_hint("name one model for all of them with `--model`"));
            }
            (None, Some(_)) => Some(named_model(&agent.model().to_string(), &options)?),
            (None, None) => None,
        };
        let (override_model, name) = match named {
            Some(model) => {
                let name = options.model.as_deref().unwrap_or("recorded");
                (Some(model), name.to_owned())
            }
            None => {
                let choice = choose_model(agents, agent, options.base_url.as_deref());
                let choice = choice.map_err(|error| {
                    ServiceError::failed(error.to_string()).with_hint(
                        "`--model reflex` uses the embedded model, which needs no key; it is not chosen \
                         automatically because not all tools are known to be reversible (`risk: reversible`)",
                    )
                })?;
                (choice.override_model, choice.description)
            }
        };
        let models = Models {
            override_model,
            settings: hosted_settings(&options),
        };
        Ok((models, name))
    }
}

/// Whether other programs execute the tools.
fn is_outside(libraries: &[String]) -> bool {
    libraries == [OUTSIDE]
}

/// The agent with all tools of these servers added to those it declares.
fn with_servers(
    agent: &Agent,
    servers: &[ServerName],
    library: &ToolLibrary,
) -> Result<Agent, ServiceError> {
    let mut agent = agent.clone();
    let is_meant = |tool: &&Tool| {
        let server = server_of(tool.name().as_str());
        server.is_some_and(|server| servers.contains(&server))
    };
    for tool in library.iter().filter(is_meant) {
        if agent.tool(tool.name().as_str()).is_none() {
            let specification = tool.specification().map_err(ServiceError::failed)?;
            agent = agent
                .with_tool(Arc::new(specification))
                .map_err(|error| ServiceError::failed(error.to_string()))?;
        }
    }
    Ok(agent)
}

fn choose_agent<'f>(
    declared: &'f AgentFile,
    name: Option<&str>,
    place: &str,
) -> Result<&'f Agent, ServiceError> {
    let names: Vec<&str> = declared
        .agents()
        .iter()
        .map(|agent| agent.name().as_str())
        .collect();
    if let Some(name) = name {
        return declared.agent(name).ok_or_else(|| {
            ServiceError::failed(unknown_name_message("agent", name, &names, place))
        });
    }
    let mut roots = declared.roots();
    match (roots.next(), roots.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(ServiceError::failed("the file declares no agent to run")),
        (Some(_), Some(_)) => {
            let hint = format!("choose one with `--agent`: {}", names.join(", "));
            Err(ServiceError::failed("the file declares several agents").with_hint(hint))
        }
    }
}

/// The model of a run whose task is a call: it is never used.
pub(crate) const NO_MODEL: &str = "none";

/// The model of that name, with these options.
///
/// # Errors
/// If there is no such model, or it cannot be used.
pub fn named_model(name: &str, options: &RunOptions) -> Result<Arc<dyn ModelClient>, ServiceError> {
    let failed =
        |error: &dyn std::error::Error| ServiceError::failed(crate::error::with_sources(error));
    let file = name
        .split_once(':')
        .filter(|(kind, _)| ["scripted", "replay"].contains(kind));
    if let Some((_, path)) = file
        && std::fs::metadata(path).is_ok_and(|found| !found.is_file())
    {
        // A pipe would block the caller that binds the model.
        return Err(ServiceError::failed(format!(
            "`{path}` is not a regular file"
        )));
    }
    if let Some(path) = name.strip_prefix("scripted:") {
        let scripted = ScriptedModel::from_file_after(path, options.answered);
        return Ok(Arc::new(scripted.map_err(|error| failed(&error))?));
    }
    if name == NO_MODEL {
        return Ok(Arc::new(ScriptedModel::answers([])));
    }
    if name == ReflexModel::NAME {
        return Ok(Arc::new(ReflexModel::new()));
    }
    if let Some(path) = name.strip_prefix("replay:") {
        let replayed = ReplayModel::open(Path::new(path));
        return Ok(Arc::new(replayed.map_err(|error| failed(&error))?));
    }
    let model: Model = name
        .parse()
        .map_err(|error| ServiceError::failed(format!("`{name}` is not a model: {error}")))?;
    let hosted = HostedModel::new(&model, hosted_settings(options)).map_err(|error| {
        ServiceError::failed(format!(
            "the model `{name}` cannot be used: {}",
            error.message
        ))
    })?;
    Ok(match &options.record {
        Some(path) => {
            let recording = RecordingModel::create(hosted, path);
            Arc::new(recording.map_err(|error| failed(&error))?)
        }
        None => Arc::new(hosted),
    })
}

/// Whether a model answers without a server, so that nothing can be recorded.
fn answers_here(name: &str) -> bool {
    let kinds = ["scripted:", "replay:"];
    [NO_MODEL, ReflexModel::NAME].contains(&name) || kinds.iter().any(|kind| name.starts_with(kind))
}

fn hosted_settings(options: &RunOptions) -> HostedSettings {
    HostedSettings {
        dialect: options.dialect,
        base_url: options.base_url.clone(),
        ..HostedSettings::default()
    }
}
