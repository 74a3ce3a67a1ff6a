//! The names that calls of an agent can use, and the kind of call that each name makes: the agent's own
//! tools, its sub-agents, and the reserved tools of every run. The gate and the run machine share this,
//! so that a name means the same to both.

mod reserved;

use std::sync::Arc;

use windlass_spec::{
    Agent, Field, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName, ToolSpecification,
    Type,
};

pub(crate) use reserved::reserved;

/// The one argument of a sub-agent.
pub(crate) const SUB_AGENT_TASK: &str = "task";

/// The kind of a call. Determined once, when a model's answer is parsed, and kept with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// It runs a tool.
    Tool,
    /// It asks a person a question: `ask_human`.
    Question,
    /// It asks for authorization of one exact call: `request_authorization`.
    Authorization,
    /// It works on an execution plan.
    Plan(PlanOperation),
    /// It searches tools that the model is not shown: `find_tools`.
    ToolSearch,
    /// It hands a task to a sub-agent.
    SubAgent,
    /// It ends the run with an answer: `finish`.
    Finish,
}

/// What a call does with an execution plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanOperation {
    /// It creates and executes a plan.
    Create,
    /// It updates the status of one task.
    UpdateTask,
    /// It reads the status of all tasks.
    Status,
}

impl CallKind {
    /// Whether a person answers it, so that no tool runs.
    #[must_use]
    pub const fn is_answered_by_person(self) -> bool {
        matches!(self, Self::Question | Self::Authorization)
    }
}

/// A name that calls of an agent can use: the kind of call and its specification.
pub(crate) type Callable = (CallKind, Arc<ToolSpecification>);

/// All names that calls of an agent can use. The agent's declarations take precedence over reserved
/// names, because agents in old journals may declare these.
pub(crate) fn callable(agent: &Agent, agents: &[Agent]) -> Vec<Callable> {
    let own = agent.tools().iter().cloned();
    let mut callable: Vec<Callable> = own.map(|tool| (CallKind::Tool, tool)).collect();
    let sub_agents = sub_agents(agent, agents).map(|tool| (CallKind::SubAgent, tool));
    for (kind, tool) in sub_agents.chain(reserved().iter().cloned()) {
        if callable
            .iter()
            .all(|(_, known)| known.name() != tool.name())
        {
            callable.push((kind, tool));
        }
    }
    callable
}

/// The sub-agents of `agent` among `agents`, presented to a model as tools that take a task.
fn sub_agents(agent: &Agent, agents: &[Agent]) -> impl Iterator<Item = Arc<ToolSpecification>> {
    agent
        .agents()
        .iter()
        .filter_map(|name| agents.iter().find(|agent| agent.name() == name))
        .filter_map(as_tool)
        .map(Arc::new)
}

fn as_tool(agent: &Agent) -> Option<ToolSpecification> {
    let name = ToolName::new(agent.name().as_str()).ok()?;
    let what = agent.description().unwrap_or(agent.instruction());
    let description = NonEmptyText::or(what, "An agent that takes a task and answers it");
    let task = Field::required(SUB_AGENT_TASK, Type::Text)
        .described("What the agent is to do, with everything it needs to know");
    let signature = Signature::new(vec![task], Type::Text).ok()?;
    // Delegating changes nothing by itself; each call of the sub-agent passes the gate.
    reversible(ToolSpecification::new(name, description, signature))
}

/// The same tool, declared reversible.
fn reversible(tool: ToolSpecification) -> Option<ToolSpecification> {
    let attributes = ToolAttributes {
        risk: Some(RiskLevel::Reversible),
        ..ToolAttributes::default()
    };
    tool.with_attributes(attributes).ok()
}

#[cfg(test)]
mod tests;
