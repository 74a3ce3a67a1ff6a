//! Who works on a task: an agent and the agents it may hand work to, each with what stands behind
//! its tools and the model it asks.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use windlass_config::Mistake;
use windlass_core::gate::{Governance, Rules};
use windlass_model::{ModelClient, ModelError};
use windlass_policy::PolicyError;
use windlass_spec::{Agent, AgentName, ToolSpecification};
use windlass_tools::{BindingFailure, BindingMode, BoundTool, BoundTools, Tool, ToolLibrary, bind};

use crate::intake::Intake;
use crate::learning::Learning;
use crate::registry::Configured;

/// An agent that can work.
#[derive(Clone)]
pub struct Worker {
    /// What it is declared to be.
    pub agent: Agent,
    /// What stands behind its tools.
    pub tools: BoundTools,
    /// The model it asks.
    pub model: Arc<dyn ModelClient>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("agent", self.agent.name())
            .field("tools", &self.tools.library())
            .finish_non_exhaustive()
    }
}

/// Why agents cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// An agent hands work to one that is not there.
    #[error("there is no agent `{0}` to hand work to")]
    NoSuchAgent(AgentName),
    /// There is no implementation behind some of its tools.
    #[error(
        "tools of the agent `{agent}` cannot be bound to the library `{library}`\n{}",
        told(failures)
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
    #[error("the policies do not fit the agent `{agent}`\n{}", told(errors))]
    Policies {
        /// The agent.
        agent: AgentName,
        /// Everything that is wrong with them.
        errors: Vec<PolicyError>,
    },
    /// The operator's configuration does not fit their tools.
    #[error("the configuration does not fit the agents' tools\n{}", told(.0))]
    Configuration(Vec<Mistake>),
    /// Its model cannot be used.
    #[error("the model of the agent `{agent}` cannot be used: {error}")]
    Model {
        /// The agent.
        agent: AgentName,
        /// Why.
        error: ModelError,
    },
}

fn told(problems: &[impl ToString]) -> String {
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    told.join("\n")
}

/// An agent whose tools are declared with at least the care that their authors ask for.
fn with_own_attributes(agent: &Agent, library: &ToolLibrary) -> Agent {
    agent.clone().map_tools(|tool| {
        let own = library
            .lookup(tool.name().as_str())
            .and_then(Tool::attributes);
        let Some(own) = own else {
            return Arc::clone(tool);
        };
        let attributes = tool.attributes().with_own(own);
        if attributes == *tool.attributes() {
            return Arc::clone(tool);
        }
        let changed = (**tool).clone().with_attributes(attributes);
        changed.map_or_else(|_| Arc::clone(tool), Arc::new)
    })
}

/// What the tools of a library say of themselves, where a signature says it.
fn specifications(library: &ToolLibrary) -> Vec<Arc<ToolSpecification>> {
    let specified = library.iter().filter_map(|tool| tool.specification().ok());
    specified.map(Arc::new).collect()
}

fn bound(agent: &Agent, library: &ToolLibrary, mode: BindingMode) -> Result<BoundTools, CrewError> {
    bind(agent, library, mode).map_err(|failures| CrewError::Binding {
        agent: agent.name().clone(),
        library: library.name().to_owned(),
        failures,
    })
}

/// Says which model an agent asks.
pub type ModelOf<'m> = dyn Fn(&Agent) -> Result<Arc<dyn ModelClient>, ModelError> + 'm;

/// The agent that takes the tasks, and those it may hand work to.
#[derive(Debug, Clone)]
pub struct Crew {
    lead: Worker,
    others: Vec<Worker>,
    mode: BindingMode,
    /// Tools that exist elsewhere, which policies may name.
    known: Vec<Arc<ToolSpecification>>,
    /// What an operator lays down, now. Whoever decides takes it as it is and is never kept waiting
    /// by a change.
    laid: Arc<ArcSwap<Laid>>,
}

/// What an operator lays down.
#[derive(Debug, Default)]
struct Laid {
    governance: Governance,
    intake: Arc<Intake>,
    /// The tools of the library, which policies may name.
    other_tools: Vec<Arc<ToolSpecification>>,
    /// What stands behind the tools of each agent, where that is not what it began with.
    tools: HashMap<AgentName, BoundTools>,
    /// What that comes to for each agent, made when it is first needed.
    rules: Mutex<HashMap<AgentName, Arc<Rules>>>,
}

impl From<Governance> for Laid {
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
    pub fn new(lead: Worker) -> Self {
        Self {
            lead,
            others: Vec::new(),
            mode: BindingMode::Exact,
            known: Vec::new(),
            laid: Arc::default(),
        }
    }

    /// The same crew under what an operator lays down.
    #[must_use]
    pub fn governed_by(mut self, governance: Governance) -> Self {
        let other_tools = self.laid.load().other_tools.clone();
        let laid = Laid {
            other_tools,
            ..governance.into()
        };
        self.laid = Arc::new(ArcSwap::from_pointee(laid));
        self
    }

    /// Puts the crew, and all clones of it, under what a configuration says from now on. If that does
    /// not fit the agents, everything stays as it was.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn configure(&self, configured: &Configured) -> Result<(), CrewError> {
        self.configure_with(configured, None)
    }

    /// Puts the crew under what a configuration says, as [`Crew::configure`] does, with what stands
    /// behind its tools from now on. Calls under way end with what they began with.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn configure_with(
        &self,
        configured: &Configured,
        library: Option<&ToolLibrary>,
    ) -> Result<(), CrewError> {
        let agents = || self.iter().map(|worker| &worker.agent);
        let mut mistakes = configured.check(agents());
        mistakes.retain(Mistake::is_error);
        if !mistakes.is_empty() {
            return Err(CrewError::Configuration(mistakes));
        }
        let mut laid = Laid::from(configured.governance(agents()));
        laid.intake = Arc::new(configured.intake());
        laid.other_tools = match library {
            None => self.laid.load().other_tools.clone(),
            Some(library) => specifications(library),
        };
        laid.tools = match library {
            None => self.laid.load().tools.clone(),
            Some(library) => self
                .iter()
                .map(|worker| {
                    let tools = bound(&worker.agent, library, self.mode)?;
                    Ok((worker.agent.name().clone(), tools))
                })
                .collect::<Result<_, CrewError>>()?,
        };
        self.lay_down(laid)
    }

    /// Puts the crew, and all clones of it, under other rules from now on. If they do not fit the
    /// agents, everything stays as it was.
    ///
    /// # Errors
    /// If the policies do not fit the tools of one of the agents.
    pub fn govern(&self, governance: Governance) -> Result<(), CrewError> {
        let before = self.laid.load();
        self.lay_down(Laid {
            intake: Arc::clone(&before.intake),
            other_tools: before.other_tools.clone(),
            tools: before.tools.clone(),
            ..governance.into()
        })
    }

    fn lay_down(&self, laid: Laid) -> Result<(), CrewError> {
        // All that takes time is done before anybody sees the new rules.
        self.iter()
            .try_for_each(|worker| self.rules_under(&laid, worker.agent.name()).map(drop))?;
        self.laid.store(Arc::new(laid));
        Ok(())
    }

    /// The same crew, for whose tasks strategies are recalled and whose runs are learned from, if they are
    /// kept where there is a playbook. A configuration says it otherwise.
    #[must_use]
    pub fn learning(mut self, learning: Learning) -> Self {
        let before = self.laid.load();
        let intake = Intake {
            learning: Some(learning),
            ..(*before.intake).clone()
        };
        let laid = Laid {
            governance: before.governance.clone(),
            intake: Arc::new(intake),
            other_tools: before.other_tools.clone(),
            tools: before.tools.clone(),
            rules: Mutex::default(),
        };
        self.laid = Arc::new(ArcSwap::from_pointee(laid));
        self
    }

    /// Whether runs of the crew are learned from, where there is a playbook.
    #[must_use]
    pub fn learns(&self) -> bool {
        let learning = &self.laid.load().intake.learning;
        learning.as_ref().is_some_and(|learning| learning.learns)
    }

    /// How much models are shown.
    pub(crate) fn intake(&self) -> Arc<Intake> {
        Arc::clone(&self.laid.load().intake)
    }

    /// What stands behind the tools of a worker of the crew, now.
    pub(crate) fn tool(&self, worker: &Worker, name: &str) -> Option<BoundTool> {
        let laid = self.laid.load();
        let tools = laid.tools.get(worker.agent.name());
        tools.unwrap_or(&worker.tools).get(name).cloned()
    }

    /// What holds for the calls of an agent of the crew.
    ///
    /// # Errors
    /// If the policies do not fit the agent's tools, or there is no such agent.
    pub fn rules(&self, name: &AgentName) -> Result<Arc<Rules>, CrewError> {
        self.rules_under(&self.laid.load(), name)
    }

    fn rules_under(&self, laid: &Laid, name: &AgentName) -> Result<Arc<Rules>, CrewError> {
        let mut made = laid.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = made.get(name) {
            return Ok(Arc::clone(rules));
        }
        let worker = self.get(name);
        let worker = worker.ok_or_else(|| CrewError::NoSuchAgent(name.clone()))?;
        let mut governance = laid.governance.clone();
        let tools = laid.tools.get(name).unwrap_or(&worker.tools);
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
        others.extend_from_slice(&laid.other_tools);
        others.extend(self.iter().flat_map(|worker| worker.agent.tools().to_vec()));
        let mut names = HashSet::new();
        others.retain(|tool| names.insert(tool.name().clone()));
        governance.other_tools = others;
        let rules = Rules::new(&governance, &worker.agent, &self.declarations());
        let rules = rules.map_err(|errors| CrewError::Policies {
            agent: name.clone(),
            errors,
        })?;
        let rules = Arc::new(rules);
        made.insert(name.clone(), Arc::clone(&rules));
        Ok(rules)
    }

    /// Checks what an operator lays down against all agents of the crew.
    ///
    /// # Errors
    /// If the policies do not fit the tools of one of them.
    pub fn check_rules(&self) -> Result<(), CrewError> {
        self.iter()
            .try_for_each(|worker| self.rules(worker.agent.name()).map(drop))
    }

    /// The same crew with one more worker, who may be handed work.
    #[must_use]
    pub fn with(mut self, worker: Worker) -> Self {
        self.others.push(worker);
        self
    }

    /// The same crew, whose policies may name these tools as well.
    #[must_use]
    pub fn knowing(mut self, tools: Vec<Arc<ToolSpecification>>) -> Self {
        self.known = tools;
        self
    }

    /// Puts the agent `lead` to work with all agents it may hand work to, directly or through each
    /// other. They are found in `agents` by name; `model` says which model each asks.
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
        let worker = |agent: &Agent| {
            let agent = &with_own_attributes(agent, library);
            let tools = bound(agent, library, mode)?;
            let model = model(agent).map_err(|error| CrewError::Model {
                agent: agent.name().clone(),
                error,
            })?;
            Ok(Worker {
                agent: agent.clone(),
                tools,
                model,
            })
        };
        let mut crew = Self::new(worker(lead)?);
        crew.mode = mode;
        let laid = Laid {
            other_tools: specifications(library),
            ..Laid::default()
        };
        crew.laid = Arc::new(ArcSwap::from_pointee(laid));
        let mut wanted = lead.agents().to_vec();
        while let Some(name) = wanted.pop() {
            if crew.get(&name).is_some() {
                continue;
            }
            let agent = agents.iter().find(|agent| *agent.name() == name);
            let agent = agent.ok_or_else(|| CrewError::NoSuchAgent(name.clone()))?;
            wanted.extend_from_slice(agent.agents());
            crew = crew.with(worker(agent)?);
        }
        Ok(crew)
    }

    /// The agent that takes the tasks.
    #[must_use]
    pub fn lead(&self) -> &Worker {
        &self.lead
    }

    /// All of them, the lead first.
    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        std::iter::once(&self.lead).chain(&self.others)
    }

    /// The worker of that name.
    #[must_use]
    pub fn get(&self, name: &AgentName) -> Option<&Worker> {
        self.iter().find(|worker| worker.agent.name() == name)
    }

    /// What those who may be handed work are declared to be.
    pub(crate) fn declarations(&self) -> Vec<Agent> {
        self.others
            .iter()
            .map(|worker| worker.agent.clone())
            .collect()
    }
}
