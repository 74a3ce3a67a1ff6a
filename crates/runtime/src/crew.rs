//! A crew: the agent that takes a task and its sub-agents, each with its bound tools and its model.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use windlass_config::ConfigMistake;
use windlass_core::gate::{Governance, Rules};
use windlass_model::{HostedModel, HostedSettings, ModelClient, ModelError};
use windlass_policy::PolicyError;
use windlass_spec::{Agent, AgentName, ToolSpecification};
use windlass_tools::{BindingFailure, BindingMode, BoundTool, BoundTools, Tool, ToolLibrary, bind};

use crate::intake::Intake;
use crate::intents::Intents;
use crate::learning::Learning;
use crate::registry::Configured;

/// An agent of a crew, with its bound tools and its model.
#[derive(Clone)]
pub struct CrewMember {
    /// Its declaration.
    pub agent: Agent,
    /// The implementations of its tools.
    pub tools: BoundTools,
    /// The model it asks.
    pub model: Arc<dyn ModelClient>,
}

impl fmt::Debug for CrewMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrewMember")
            .field("agent", self.agent.name())
            .field("tools", &self.tools.library())
            .finish_non_exhaustive()
    }
}

/// Why a crew cannot be assembled or configured.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// An agent names a sub-agent that is not declared.
    #[error("the sub-agent `{0}` is not declared")]
    NoSuchAgent(AgentName),
    /// Some of its tools have no implementation.
    #[error(
        "tools of the agent `{agent}` cannot be bound to the library `{library}`\n{}",
        join_lines(failures)
    )]
    Binding {
        /// The agent.
        agent: AgentName,
        /// The library.
        library: String,
        /// Why, for each tool.
        failures: Vec<BindingFailure>,
    },
    /// The operator's policies do not fit its tools.
    #[error("the policies do not fit the agent `{agent}`\n{}", join_lines(errors))]
    Policies {
        /// The agent.
        agent: AgentName,
        /// Everything that is wrong with them.
        errors: Vec<PolicyError>,
    },
    /// The operator's configuration does not fit their tools.
    #[error("the configuration does not fit the agents' tools\n{}", join_lines(.0))]
    Configuration(Vec<ConfigMistake>),
    /// Its model cannot be used.
    #[error("the model of the agent `{agent}` cannot be used: {error}")]
    Model {
        /// The agent.
        agent: AgentName,
        /// Why.
        error: ModelError,
    },
}

fn join_lines(problems: &[impl ToString]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The agent with the attributes that its tools' implementations declare, where these are stricter.
fn with_own_attributes(agent: &Agent, library: &ToolLibrary) -> Agent {
    agent.clone().map_tools(|tool| {
        let own = library
            .lookup(tool.name().as_str())
            .and_then(Tool::attributes);
        let Some(own) = own else {
            return Arc::clone(tool);
        };
        let attributes = tool.attributes().merged_with(own);
        if attributes == *tool.attributes() {
            return Arc::clone(tool);
        }
        let changed = (**tool).clone().with_attributes(attributes);
        changed.map_or_else(|_| Arc::clone(tool), Arc::new)
    })
}

/// The specifications of a library's tools, where a signature can express them.
fn specifications(library: &ToolLibrary) -> Vec<Arc<ToolSpecification>> {
    let specified = library.iter().filter_map(|tool| tool.specification().ok());
    specified.map(Arc::new).collect()
}

fn bind_tools(
    agent: &Agent,
    library: &ToolLibrary,
    mode: BindingMode,
) -> Result<BoundTools, CrewError> {
    bind(agent, library, mode).map_err(|failures| CrewError::Binding {
        agent: agent.name().clone(),
        library: library.name().to_owned(),
        failures,
    })
}

/// Returns the model of an agent.
pub type ModelOf<'m> = dyn Fn(&Agent) -> Result<Arc<dyn ModelClient>, ModelError> + 'm;

/// The lead agent, which takes the tasks, and its sub-agents.
#[derive(Debug, Clone)]
pub struct Crew {
    lead: CrewMember,
    others: Vec<CrewMember>,
    mode: BindingMode,
    /// Tools that exist elsewhere, which policies may name.
    known: Vec<Arc<ToolSpecification>>,
    /// The operator's current settings. Readers never wait for a change.
    active: Arc<ArcSwap<ActiveConfig>>,
}

/// The operator's settings for a crew.
#[derive(Debug, Default)]
struct ActiveConfig {
    governance: Governance,
    intake: Arc<Intake>,
    /// The tools of the library, which policies may name.
    other_tools: Vec<Arc<ToolSpecification>>,
    /// The bound tools of each agent, where they differ from those it began with.
    tools: HashMap<AgentName, BoundTools>,
    /// The rules of each agent, built when they are first needed.
    rules: Mutex<HashMap<AgentName, Arc<Rules>>>,
}

impl From<Governance> for ActiveConfig {
    fn from(governance: Governance) -> Self {
        Self {
            governance,
            intake: Arc::default(),
            other_tools: Vec::new(),
            tools: HashMap::new(),
            rules: Mutex::default(),
        }
    }
}

impl Crew {
    /// A crew of one.
    #[must_use]
    pub fn new(lead: CrewMember) -> Self {
        Self {
            lead,
            others: Vec::new(),
            mode: BindingMode::Exact,
            known: Vec::new(),
            active: Arc::default(),
        }
    }

    /// The same crew under an operator's governance.
    #[must_use]
    pub fn governed_by(mut self, governance: Governance) -> Self {
        let other_tools = self.active.load().other_tools.clone();
        let active = ActiveConfig {
            other_tools,
            ..governance.into()
        };
        self.active = Arc::new(ArcSwap::from_pointee(active));
        self
    }

    /// Applies a configuration to the crew and all its clones. If it does not fit the agents, the
    /// previous one stays.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn configure(&self, configured: &Configured) -> Result<(), CrewError> {
        self.configure_with(configured, None)
    }

    /// Applies a configuration, as [`Crew::configure`] does, and binds the tools to `library`. Running
    /// calls keep their implementation.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn configure_with(
        &self,
        configured: &Configured,
        library: Option<&ToolLibrary>,
    ) -> Result<(), CrewError> {
        let agents = || self.iter().map(|member| &member.agent);
        let mut mistakes = configured.check(agents());
        mistakes.retain(ConfigMistake::is_error);
        if !mistakes.is_empty() {
            return Err(CrewError::Configuration(mistakes));
        }
        let mut active = ActiveConfig::from(configured.governance(agents()));
        active.intake = Arc::new(configured.intake());
        active.other_tools = match library {
            None => self.active.load().other_tools.clone(),
            Some(library) => specifications(library),
        };
        active.tools = match library {
            None => self.active.load().tools.clone(),
            Some(library) => self
                .iter()
                .map(|member| {
                    let tools = bind_tools(&member.agent, library, self.mode)?;
                    Ok((member.agent.name().clone(), tools))
                })
                .collect::<Result<_, CrewError>>()?,
        };
        self.activate(active)
    }

    /// Applies other rules to the crew and all its clones. If they do not fit the agents, the previous
    /// ones stay.
    ///
    /// # Errors
    /// If the policies do not fit the tools of one of the agents.
    pub fn govern(&self, governance: Governance) -> Result<(), CrewError> {
        let before = self.active.load();
        self.activate(ActiveConfig {
            intake: Arc::clone(&before.intake),
            other_tools: before.other_tools.clone(),
            tools: before.tools.clone(),
            ..governance.into()
        })
    }

    fn activate(&self, active: ActiveConfig) -> Result<(), CrewError> {
        // The rules are built before they become visible, so that no reader waits.
        self.iter()
            .try_for_each(|member| self.rules_under(&active, member.agent.name()).map(drop))?;
        self.active.store(Arc::new(active));
        Ok(())
    }

    /// The same crew with learning: strategies are recalled for its tasks and its runs are learned from, if
    /// the runs are stored where there is a playbook. A configuration overrides this.
    #[must_use]
    pub fn learning(self, learning: Learning) -> Self {
        let before = self.active.load();
        let intake = Intake {
            learning: Some(learning),
            ..(*before.intake).clone()
        };
        self.with_intake(intake)
    }

    /// The same crew, which classifies its tasks by the shipped intents. A configuration overrides this.
    #[must_use]
    pub(crate) fn with_usual_intents(self) -> Self {
        let before = self.active.load();
        let intake = Intake {
            intents: Intents::usual(),
            ..(*before.intake).clone()
        };
        self.with_intake(intake)
    }

    /// The same crew with other settings of the intake.
    fn with_intake(mut self, intake: Intake) -> Self {
        let before = self.active.load();
        let active = ActiveConfig {
            governance: before.governance.clone(),
            intake: Arc::new(intake),
            other_tools: before.other_tools.clone(),
            tools: before.tools.clone(),
            rules: Mutex::default(),
        };
        self.active = Arc::new(ArcSwap::from_pointee(active));
        self
    }

    /// Whether runs of the crew are learned from, where there is a playbook.
    #[must_use]
    pub fn learns(&self) -> bool {
        let learning = &self.active.load().intake.learning;
        learning.as_ref().is_some_and(Learning::learns)
    }

    /// The current settings of the intake.
    pub(crate) fn intake(&self) -> Arc<Intake> {
        Arc::clone(&self.active.load().intake)
    }

    /// The current implementation of a tool of a crew member.
    pub(crate) fn tool(&self, member: &CrewMember, name: &str) -> Option<BoundTool> {
        let active = self.active.load();
        let tools = active.tools.get(member.agent.name());
        tools.unwrap_or(&member.tools).get(name).cloned()
    }

    /// The rules for the calls of an agent of the crew.
    ///
    /// # Errors
    /// If the policies do not fit the agent's tools, or there is no such agent.
    pub fn rules(&self, name: &AgentName) -> Result<Arc<Rules>, CrewError> {
        self.rules_under(&self.active.load(), name)
    }

    fn rules_under(
        &self,
        active: &ActiveConfig,
        name: &AgentName,
    ) -> Result<Arc<Rules>, CrewError> {
        let mut cached = active.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = cached.get(name) {
            return Ok(Arc::clone(rules));
        }
        let member = self.get(name);
        let member = member.ok_or_else(|| CrewError::NoSuchAgent(name.clone()))?;
        let mut governance = active.governance.clone();
        let tools = active.tools.get(name).unwrap_or(&member.tools);
        for tool in tools {
            if let Some(method) = tool.tool().http_method() {
                let (name, method) = (tool.name().to_string(), method.as_str().to_owned());
                governance.http_methods.insert(name, method);
            }
            if let Some(annotations) = tool.tool().annotations() {
                let name = tool.name().to_string();
                governance.annotations.insert(name, annotations);
            }
        }
        let mut others = self.known.clone();
        others.extend_from_slice(&active.other_tools);
        others.extend(self.iter().flat_map(|member| member.agent.tools().to_vec()));
        let mut names = HashSet::new();
        others.retain(|tool| names.insert(tool.name().clone()));
        governance.other_tools = others;
        let rules = Rules::new(&governance, &member.agent, &self.declarations());
        let rules = rules.map_err(|errors| CrewError::Policies {
            agent: name.clone(),
            errors,
        })?;
        let rules = Arc::new(rules);
        cached.insert(name.clone(), Arc::clone(&rules));
        Ok(rules)
    }

    /// Checks the operator's policies against all agents of the crew.
    ///
    /// # Errors
    /// If the policies do not fit the tools of one of them.
    pub fn check_rules(&self) -> Result<(), CrewError> {
        self.iter()
            .try_for_each(|member| self.rules(member.agent.name()).map(drop))
    }

    /// The same crew with one more sub-agent.
    #[must_use]
    pub fn with(mut self, member: CrewMember) -> Self {
        self.others.push(member);
        self
    }

    /// The same crew, whose policies may name these tools as well.
    #[must_use]
    pub fn knowing(mut self, tools: Vec<Arc<ToolSpecification>>) -> Self {
        self.known = tools;
        self
    }

    /// Assembles a crew of the agent `lead` and all its sub-agents, direct and indirect. They are found in
    /// `agents` by name. `model` returns the model of each.
    ///
    /// # Errors
    /// If an agent is missing, cannot be bound, or has no model.
    pub fn assemble(
        agents: &[Agent],
        lead: &Agent,
        library: &ToolLibrary,
        mode: BindingMode,
        model: &ModelOf<'_>,
    ) -> Result<Self, CrewError> {
        let bind_member = |agent: &Agent| {
            let agent = &with_own_attributes(agent, library);
            let tools = bind_tools(agent, library, mode)?;
            let model = model(agent).map_err(|error| CrewError::Model {
                agent: agent.name().clone(),
                error,
            })?;
            Ok(CrewMember {
                agent: agent.clone(),
                tools,
                model,
            })
        };
        let mut crew = Self::new(bind_member(lead)?);
        crew.mode = mode;
        let active = ActiveConfig {
            other_tools: specifications(library),
            ..ActiveConfig::default()
        };
        crew.active = Arc::new(ArcSwap::from_pointee(active));
        let mut pending = lead.agents().to_vec();
        while let Some(name) = pending.pop() {
            if crew.get(&name).is_some() {
                continue;
            }
            let agent = agents.iter().find(|agent| *agent.name() == name);
            let agent = agent.ok_or_else(|| CrewError::NoSuchAgent(name.clone()))?;
            pending.extend_from_slice(agent.agents());
            crew = crew.with(bind_member(agent)?);
        }
        Ok(crew)
    }

    /// The agent that takes the tasks.
    #[must_use]
    pub fn lead(&self) -> &CrewMember {
        &self.lead
    }

    /// All members, the lead first.
    pub fn iter(&self) -> impl Iterator<Item = &CrewMember> {
        std::iter::once(&self.lead).chain(&self.others)
    }

    /// The member of that name.
    #[must_use]
    pub fn get(&self, name: &AgentName) -> Option<&CrewMember> {
        self.iter().find(|member| member.agent.name() == name)
    }

    /// The declarations of the sub-agents.
    pub(crate) fn declarations(&self) -> Vec<Agent> {
        self.others
            .iter()
            .map(|member| member.agent.clone())
            .collect()
    }
}

/// The models of the agents.
#[derive(Clone, Default)]
pub struct Models {
    /// The model that all agents use instead of the declared ones.
    pub override_model: Option<Arc<dyn ModelClient>>,
    /// The settings for declared models.
    pub settings: HostedSettings,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("has_override", &self.override_model.is_some())
            .finish_non_exhaustive()
    }
}

impl Models {
    fn of(&self, agent: &Agent) -> Result<Arc<dyn ModelClient>, ModelError> {
        match &self.override_model {
            Some(model) => Ok(Arc::clone(model)),
            None => Ok(Arc::new(HostedModel::new(
                agent.model(),
                self.settings.clone(),
            )?)),
        }
    }
}

/// Assembles a crew of the agent `lead` and its sub-agents, which are found in `agents`.
///
/// # Errors
/// If an agent is missing, cannot be bound to the library, or has no model.
pub fn assemble(
    agents: &[Agent],
    lead: &Agent,
    library: &ToolLibrary,
    mode: BindingMode,
    models: &Models,
) -> Result<Crew, CrewError> {
    Crew::assemble(agents, lead, library, mode, &|agent| models.of(agent))
}
