//! From what was typed to agents that can work: the file's agents, the library behind their tools,
//! the model they ask.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};
use windlass_config::Configuration;
use windlass_core::run::Run;
use windlass_model::{
    HostedModel, HostedSettings, ModelClient, ModelError, RecordingModel, ReflexModel, ReplayModel,
    ScriptedModel,
};
use windlass_runtime::{Crew, CrewError, Read, choose_model};
use windlass_spec::server::ServerName;
use windlass_spec::{Agent, AgentFile, AgentName, Model};
use windlass_tools::{BindingMode, Tool, ToolLibrary};

use super::arguments::{CrewOptions, Mode};
use super::gaps;
use super::libraries::{self, Sought};
use super::report::Reporter;
use super::schema::{read_file, unknown};
use super::servers::server_of;
use super::settings;
use super::settings::Governed;
use super::terminal::complain;

/// An agent that was chosen, and the file that declares it.
pub(super) struct Chosen {
    pub(super) agent: Agent,
    file: AgentFile,
}

impl Chosen {
    /// Puts the agent to work.
    pub(super) fn assemble(
        &self,
        options: &CrewOptions,
        data: Option<&Path>,
    ) -> anyhow::Result<Governed> {
        assemble_agent(self.file.agents(), &self.agent, options, data, true)
    }

    /// What its tasks may name as tools: its tools and its sub-agents.
    pub(super) fn tool_names(&self) -> Vec<&str> {
        let tools = self.agent.tools().iter().map(|tool| tool.name().as_str());
        let agents = self.agent.agents().iter().map(AgentName::as_str);
        tools.chain(agents).collect()
    }
}

/// Reads the file and chooses its agent. `None` if the file has mistakes, which were reported.
pub(super) fn choose(
    file: &Path,
    options: &CrewOptions,
    reporter: &Reporter,
) -> anyhow::Result<Option<Chosen>> {
    let Some(declared) = read_file(file, reporter)? else {
        return Ok(None);
    };
    let agent = choose_agent(file, options, &declared)?.clone();
    Ok(Some(Chosen {
        agent,
        file: declared,
    }))
}

/// How a crew is put to work, as it is kept with a run. Paths are made absolute: the run may be gone
/// on with from elsewhere.
pub(super) fn assembly(options: &CrewOptions) -> anyhow::Result<Map<String, Value>> {
    let mut options = options.clone();
    for library in &mut options.library {
        if let Ok(path) = std::fs::canonicalize(&*library) {
            *library = path.to_string_lossy().into_owned();
        }
    }
    for kind in ["scripted:", "replay:"] {
        let named = options.model.as_deref();
        if let Some(file) = named.and_then(|named| named.strip_prefix(kind))
            && let Ok(path) = std::fs::canonicalize(file)
        {
            options.model = Some(format!("{kind}{}", path.display()));
        }
    }
    let absolute = |path: &Path| std::fs::canonicalize(path).ok();
    options.policy = options.policy.map(|path| absolute(&path).unwrap_or(path));
    let files = settings::files(None);
    options.project = files.project().and_then(absolute);
    options.set = files.flags;
    match serde_json::to_value(options)? {
        Value::Object(assembly) => Ok(assembly),
        _ => Ok(Map::new()),
    }
}

/// Puts the agents of a run to work again as they were, or with another library or model. Its models
/// have answered so often before.
pub(super) fn reassemble(
    run: &Run,
    library: Option<&str>,
    model: Option<&str>,
    answered: usize,
    data: Option<&Path>,
) -> anyhow::Result<Governed> {
    let kept = Value::Object(run.assembly().clone());
    let mut options: CrewOptions = serde_json::from_value(kept).with_context(|| {
        format!(
            "the run {} was not begun by this program; go on with it there",
            run.id()
        )
    })?;
    options.answered = answered;
    if let Some(library) = library {
        options.library = vec![library.to_owned()];
    }
    if let Some(model) = model {
        options.model = Some(model.to_owned());
    }
    assemble_agent(run.agents(), run.agent(), &options, data, false)
}

/// Puts an agent to work with those of `agents` it may hand work to.
fn assemble_agent(
    agents: &[Agent],
    agent: &Agent,
    options: &CrewOptions,
    data: Option<&Path>,
    is_new: bool,
) -> anyhow::Result<Governed> {
    let mut files = settings::files_for(options.project.as_deref(), data)?;
    files.policies.clone_from(&options.policy);
    // What is typed now goes before what was typed when the run began.
    files.flags = [options.set.clone(), files.flags].concat();
    let environment = options.environment.iter();
    files
        .flags
        .extend(environment.map(|name| format!("environment={name}")));
    let learning = [
        (options.no_learning, "learning.enabled=false"),
        (options.frozen, "learning.frozen=true"),
    ];
    let learning = learning.into_iter().filter(|(is_said, _)| *is_said);
    files
        .flags
        .extend(learning.map(|(_, flag)| flag.to_owned()));
    let (configured, read) = files.read(&Read::default())?;
    for warning in &configured.warnings {
        complain(&warning.to_string())?;
    }
    let configuration = &configured.configuration;
    let named_servers = |agent: &Agent| -> Vec<ServerName> {
        let set = configuration.agents().get(agent.name());
        let servers = set.map(|set| set.servers.iter().cloned());
        servers.into_iter().flatten().collect()
    };
    let library = library(options, configuration, agents, agent, data, &named_servers)?;
    // A run that is gone on with has them already.
    let give = |agent: &Agent| match is_new {
        true => with_servers(agent, &named_servers(agent), &library),
        false => Ok(agent.clone()),
    };
    let agents: Vec<Agent> = agents.iter().map(give).collect::<anyhow::Result<_>>()?;
    let (agents, agent) = (agents.as_slice(), &give(agent)?);
    let mode = match options.mode {
        Mode::Exact => BindingMode::Exact,
        Mode::Compatible => BindingMode::Compatible,
    };
    let mut options = options.clone();
    options.model = options
        .model
        .or_else(|| configuration.model().map(str::to_owned));
    options.base_url = options
        .base_url
        .or_else(|| configuration.base_url().map(str::to_owned));
    let options = &options;
    let given = match (&options.model, &options.record) {
        (Some(name), _) => Some(model(name, options)?),
        // What several models say would not be told apart in one recording.
        (None, Some(_)) if !agent.agents().is_empty() => anyhow::bail!(
            "the agent has sub-agents with models of their own, which cannot be recorded together\n\
             hint: name one model for all of them with `--model`"
        ),
        (None, Some(_)) => Some(model(&agent.model().to_string(), options)?),
        (None, None) => None,
    };
    let given = match given {
        Some(given) => {
            complain(&format!(
                "model: {}",
                options.model.as_deref().unwrap_or("recorded")
            ))?;
            Some(given)
        }
        None => in_its_stead(agents, agent, options)?,
    };
    let model = |agent: &Agent| -> Result<Arc<dyn ModelClient>, ModelError> {
        match &given {
            Some(model) => Ok(Arc::clone(model)),
            None => Ok(Arc::new(hosted(agent.model(), options)?)),
        }
    };
    let elsewhere = libraries::named_in(&configured.policies, configuration, &[]);
    let crew = Crew::assemble(agents, agent, &library, mode, &model).map_err(|error| {
        gaps::note_at_load(&error, agents, agent, &library, data);
        let hint = match (&error, options.library.as_slice()) {
            (CrewError::Binding { .. }, []) => {
                "\nhint: name the library that has them with `--library`, or in `libraries` of \
                 windlass.toml"
            }
            _ => "",
        };
        anyhow::anyhow!("{error}{hint}")
    })?;
    let crew = crew.knowing(elsewhere);
    Governed::new(crew, &configured, files, read, &options.library, data)
}

/// An agent with all tools of these servers, besides those it declares.
fn with_servers(
    agent: &Agent,
    servers: &[ServerName],
    library: &ToolLibrary,
) -> anyhow::Result<Agent> {
    let mut agent = agent.clone();
    let is_meant = |tool: &&Tool| {
        let server = server_of(tool.name().as_str());
        server.is_some_and(|server| servers.contains(&server))
    };
    for tool in library.iter().filter(is_meant) {
        if agent.tool(tool.name().as_str()).is_none() {
            let specification = tool.specification().map_err(anyhow::Error::msg)?;
            agent = agent.with_tool(Arc::new(specification))?;
        }
    }
    Ok(agent)
}

/// What is asked instead of the models the agents declare, if one of those cannot be. Says which
/// model it is.
fn in_its_stead(
    agents: &[Agent],
    agent: &Agent,
    options: &CrewOptions,
) -> anyhow::Result<Option<Arc<dyn ModelClient>>> {
    let choice = choose_model(agents, agent, options.base_url.as_deref()).map_err(|error| {
        anyhow::anyhow!(
            "{error}\n\
             hint: `--model reflex` asks the embedded model, which needs no key; it is not chosen by \
             itself because not all tools are known to be reversible (`risk: reversible`)"
        )
    })?;
    complain(&format!("model: {}", choice.told))?;
    Ok(choice.instead)
}

fn choose_agent<'f>(
    file: &Path,
    options: &CrewOptions,
    declared: &'f AgentFile,
) -> anyhow::Result<&'f Agent> {
    let names: Vec<&str> = declared
        .agents()
        .iter()
        .map(|agent| agent.name().as_str())
        .collect();
    if let Some(name) = &options.agent {
        let place = file.to_string_lossy();
        return declared
            .agent(name)
            .ok_or_else(|| anyhow::anyhow!(unknown("agent", name, &names, &place)));
    }
    let mut roots = declared.roots();
    match (roots.next(), roots.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => anyhow::bail!("the file declares no agent to run"),
        (Some(_), Some(_)) => anyhow::bail!(
            "the file declares several agents\nhint: choose one with `--agent`: {}",
            names.join(", ")
        ),
    }
}

/// What stands behind the tools: the libraries that were named, else those of the configuration.
fn library(
    options: &CrewOptions,
    configuration: &Configuration,
    agents: &[Agent],
    agent: &Agent,
    data: Option<&Path>,
    named_servers: &dyn Fn(&Agent) -> Vec<ServerName>,
) -> anyhow::Result<ToolLibrary> {
    let has_tools = |agent: &Agent| !agent.tools().is_empty() || !named_servers(agent).is_empty();
    if options.library.is_empty()
        && !has_tools(agent)
        && (agent.agents().is_empty() || !agents.iter().any(has_tools))
    {
        return Ok(ToolLibrary::new("none"));
    }
    let mut wanted: Vec<ServerName> = Vec::new();
    for agent in agents.iter().chain([agent]) {
        let tools = agent.tools().iter().map(|tool| tool.name().as_str());
        wanted.extend(tools.filter_map(server_of));
        wanted.extend(named_servers(agent));
    }
    let wanted = |name: &ServerName| wanted.contains(name);
    let sought = Sought {
        data,
        wanted: Some(&wanted),
    };
    libraries::all(&options.library, configuration, sought)
}

/// The model that was named, instead of what the agents declare.
pub(super) fn model(name: &str, options: &CrewOptions) -> anyhow::Result<Arc<dyn ModelClient>> {
    if let Some(path) = name.strip_prefix("scripted:") {
        return Ok(Arc::new(ScriptedModel::from_file_after(
            path,
            options.answered,
        )?));
    }
    if name == ReflexModel::NAME {
        return Ok(Arc::new(ReflexModel::new()));
    }
    if let Some(path) = name.strip_prefix("replay:") {
        return Ok(Arc::new(ReplayModel::open(Path::new(path))?));
    }
    let model: Model = name
        .parse()
        .with_context(|| format!("`{name}` names no model"))?;
    let hosted = hosted(&model, options)
        .map_err(|error| anyhow::anyhow!("the model `{name}` cannot be used: {}", error.message))?;
    Ok(match &options.record {
        Some(path) => Arc::new(RecordingModel::create(hosted, path)?),
        None => Arc::new(hosted),
    })
}

fn hosted(model: &Model, options: &CrewOptions) -> Result<HostedModel, ModelError> {
    let settings = HostedSettings {
        dialect: options.dialect,
        base_url: options.base_url.clone(),
        ..HostedSettings::default()
    };
    HostedModel::new(model, settings)
}
