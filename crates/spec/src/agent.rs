//! Agents, and the files that declare them.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::Model;
use crate::names::{AgentName, NonEmptyText, ToolName};
use crate::tool::ToolSpecification;

/// A declared agent: its name, instruction, model, tools and sub-agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "raw::Agent", into = "raw::Agent")]
pub struct Agent {
    name: AgentName,
    description: Option<NonEmptyText>,
    model: Model,
    instruction: NonEmptyText,
    tools: Vec<Arc<ToolSpecification>>,
    agents: Vec<AgentName>,
    flow: Vec<FlowStep>,
}

/// A step in the order of an agent's work: `to` comes after `from`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FlowStep {
    /// The sub-agent or tool that comes first.
    pub from: String,
    /// The sub-agent or tool that follows.
    pub to: String,
}

/// Why the parts of an agent are not valid together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// Two of its tools have the same name.
    #[error("the agent has two tools named `{0}`; rename or remove one")]
    DuplicateTool(ToolName),
    /// Two of its sub-agents have the same name, or one has the agent's own name.
    #[error(
        "the agent lists `{0}` as a sub-agent twice, or is its own sub-agent; remove one entry"
    )]
    DuplicateAgent(AgentName),
}

impl Agent {
    /// An agent without tools or sub-agents.
    #[must_use]
    pub fn new(name: AgentName, model: Model, instruction: NonEmptyText) -> Self {
        Self {
            name,
            description: None,
            model,
            instruction,
            tools: Vec::new(),
            agents: Vec::new(),
            flow: Vec::new(),
        }
    }

    /// The same agent with a description.
    #[must_use]
    pub fn with_description(mut self, description: NonEmptyText) -> Self {
        self.description = Some(description);
        self
    }

    /// The same agent with one more tool.
    ///
    /// # Errors
    /// If it has a tool of that name already.
    pub fn with_tool(
        mut self,
        tool: impl Into<Arc<ToolSpecification>>,
    ) -> Result<Self, AgentError> {
        let tool = tool.into();
        if self.tool(tool.name().as_str()).is_some() {
            return Err(AgentError::DuplicateTool(tool.name().clone()));
        }
        self.tools.push(tool);
        Ok(self)
    }

    /// The same agent with each tool replaced by the result of `change`. A result with another name is ignored.
    #[must_use]
    pub fn map_tools(
        mut self,
        change: impl Fn(&Arc<ToolSpecification>) -> Arc<ToolSpecification>,
    ) -> Self {
        for tool in &mut self.tools {
            let changed = change(tool);
            if changed.name() == tool.name() {
                *tool = changed;
            }
        }
        self
    }

    /// The same agent with one more sub-agent, by name.
    ///
    /// # Errors
    /// If it has that sub-agent already or has that name itself.
    pub fn with_agent(mut self, agent: AgentName) -> Result<Self, AgentError> {
        if agent == self.name || self.agents.contains(&agent) {
            return Err(AgentError::DuplicateAgent(agent));
        }
        self.agents.push(agent);
        Ok(self)
    }

    /// The same agent with these parts, which the caller has checked.
    pub(crate) fn with_parts(
        mut self,
        tools: Vec<Arc<ToolSpecification>>,
        agents: Vec<AgentName>,
        flow: Vec<FlowStep>,
    ) -> Self {
        self.tools = tools;
        self.agents = agents;
        self.flow = flow;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &AgentName {
        &self.name
    }

    /// What it is for.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_ref().map(NonEmptyText::as_str)
    }

    /// Its model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its instruction to the model.
    #[must_use]
    pub fn instruction(&self) -> &str {
        self.instruction.as_str()
    }

    /// The tools it may use, in the order they are declared.
    #[must_use]
    pub fn tools(&self) -> &[Arc<ToolSpecification>] {
        &self.tools
    }

    /// The tool of that name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpecification>> {
        self.tools.iter().find(|tool| tool.name().as_str() == name)
    }

    /// Its sub-agents, by name.
    #[must_use]
    pub fn agents(&self) -> &[AgentName] {
        &self.agents
    }

    /// The declared order of its parts.
    #[must_use]
    pub fn flow(&self) -> &[FlowStep] {
        &self.flow
    }
}

/// What a file declares: agents and tools, each once, in the order of the file.
///
/// Sub-agents are agents of the same file, referred to by name, so a file is flat even if its text
/// nests.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AgentFile {
    pub(crate) agents: Vec<Agent>,
    pub(crate) tools: Vec<Arc<ToolSpecification>>,
}

impl AgentFile {
    /// A file with these agents and their tools.
    ///
    /// # Errors
    /// If they do not fit together by the rules of an agent file: what is wrong.
    pub fn of_agents(agents: Vec<Agent>) -> Result<Self, Vec<String>> {
        let reading = crate::read::read_agents(agents, Vec::new());
        let errors = reading.diagnostics.iter().filter(|found| found.is_error());
        let errors: Vec<String> = errors.map(|found| found.message.clone()).collect();
        reading.file.ok_or(errors)
    }

    /// All agents.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// All tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<ToolSpecification>] {
        &self.tools
    }

    /// The agent of that name.
    #[must_use]
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents
            .iter()
            .find(|agent| agent.name().as_str() == name)
    }

    /// The tool of that name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpecification>> {
        self.tools.iter().find(|tool| tool.name().as_str() == name)
    }

    /// The top-level agents: those that are not a sub-agent of another agent.
    pub fn roots(&self) -> impl Iterator<Item = &Agent> {
        let used: HashSet<&AgentName> =
            self.agents.iter().flat_map(|agent| &agent.agents).collect();
        self.agents
            .iter()
            .filter(move |agent| !used.contains(agent.name()))
    }
}

mod raw {
    //! The JSON form of an agent, before it is checked.

    use std::sync::Arc;

    use serde::{Deserialize, Serialize};

    use super::FlowStep;
    use crate::model::Model;
    use crate::names::{AgentName, NonEmptyText};
    use crate::tool::ToolSpecification;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Agent {
        name: AgentName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<NonEmptyText>,
        model: Model,
        instruction: NonEmptyText,
        #[serde(default)]
        tools: Vec<ToolSpecification>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<AgentName>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flow: Vec<FlowStep>,
    }

    impl From<super::Agent> for Agent {
        fn from(agent: super::Agent) -> Self {
            Self {
                name: agent.name,
                description: agent.description,
                model: agent.model,
                instruction: agent.instruction,
                tools: agent.tools.into_iter().map(Arc::unwrap_or_clone).collect(),
                agents: agent.agents,
                flow: agent.flow,
            }
        }
    }

    impl TryFrom<Agent> for super::Agent {
        type Error = super::AgentError;

        fn try_from(raw: Agent) -> Result<Self, Self::Error> {
            let mut agent = Self::new(raw.name, raw.model, raw.instruction);
            agent.description = raw.description;
            for tool in raw.tools {
                agent = agent.with_tool(tool)?;
            }
            for sub_agent in raw.agents {
                agent = agent.with_agent(sub_agent)?;
            }
            agent.flow = raw.flow;
            Ok(agent)
        }
    }
}
