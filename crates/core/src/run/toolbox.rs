//! What a run works with: its agent, the names that calls can use, and which of them the model is shown.
//! Mostly it is shown all tools; but what is switched off is not, and where there are so many that they would
//! crowd out the task, only those that fit it, with `find_tools` to find others.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::reserved::FINISH;
use windlass_spec::{
    Agent, NonEmptyText, RawUserIntent, ToolGapReport, ToolName, ToolSpecification,
};

use super::event::{LeftOut, LeftOutBecause, Task};
use super::settings::Settings;
use crate::catalog::{CallKind, Callable, callable};

/// What was found out about a task, and what the model is shown for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// What the task wants, as far as that could be told.
    pub intent: Option<RawUserIntent>,
    /// The tools that are shown.
    pub tools: Vec<ToolName>,
    /// The others, and why they are not.
    pub left_out: Vec<LeftOut>,
    /// The arguments of tools that the operator sets, and that calls may leave out.
    pub set: BTreeMap<ToolName, Vec<String>>,
    /// What no tool seems to do of what the task wants.
    pub gap: Option<ToolGapReport>,
}

impl Offer {
    /// Whether a tool of that name is shown.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.as_str() == name)
    }

    /// Whether there are tools that can be found.
    #[must_use]
    pub fn can_find(&self) -> bool {
        let mut left_out = self.left_out.iter();
        left_out.any(|left_out| left_out.because == LeftOutBecause::Budget)
    }
}

/// The agent of a run and what its calls can name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Toolbox {
    agent: Agent,
    /// All agents that may take part, besides the run's own.
    agents: Vec<Agent>,
    /// Everything that calls can name, as far as the run's settings allow it.
    callable: Vec<Callable>,
    /// The names that the task allows; all, if it does not say.
    available: Option<Vec<String>>,
    /// What the model is shown; everything, if nothing is said.
    offer: Option<Offer>,
}

impl Toolbox {
    pub(super) fn new(agent: &Agent, agents: &[Agent], task: &Task, settings: &Settings) -> Self {
        let mut callable = callable(agent, agents);
        callable.retain(|(kind, _)| match kind {
            CallKind::Question | CallKind::Authorization => settings.ask_people,
            CallKind::Plan(_) => settings.plans,
            CallKind::Tool | CallKind::SubAgent | CallKind::ToolSearch | CallKind::Finish => true,
        });
        Self {
            agent: agent.clone(),
            agents: agents.to_vec(),
            callable,
            available: task.available_tools.clone(),
            offer: None,
        }
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(super) fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The agent of that name among all that take part.
    pub(super) fn agent_named(&self, name: &str) -> Option<&Agent> {
        let mut agents = [&self.agent].into_iter().chain(&self.agents);
        agents.find(|agent| agent.name().as_str() == name)
    }

    /// What kind of call a name makes, and what is declared of it.
    pub(super) fn resolve(&self, name: &str) -> Option<(CallKind, &Arc<ToolSpecification>)> {
        let mut callable = self.callable.iter();
        let (kind, tool) = callable.find(|(_, tool)| tool.name().as_str() == name)?;
        let is_there = *kind != CallKind::ToolSearch || self.can_find();
        is_there.then_some((*kind, tool))
    }

    /// As [`Toolbox::resolve`], for a name that a model calls: the task has to allow it. `finish` is what
    /// ends the run, whatever an agent declares.
    pub(super) fn resolve_call(&self, name: &str) -> Option<Requested<'_>> {
        if name == FINISH {
            return Some(Requested::Finish);
        }
        let (kind, tool) = self.resolve(name)?;
        self.is_available(tool)
            .then_some(Requested::Call(kind, tool))
    }

    /// What the agent declares that the task allows, sub-agents included.
    pub(super) fn allowed(&self) -> impl Iterator<Item = (CallKind, &Arc<ToolSpecification>)> {
        let own = self.callable.iter().filter(|(kind, tool)| {
            matches!(kind, CallKind::Tool | CallKind::SubAgent) && self.is_available(tool)
        });
        own.map(|(kind, tool)| (*kind, tool))
    }

    /// What the model is shown.
    pub(super) fn shown(&self) -> Vec<Arc<ToolSpecification>> {
        let is_shown = |tool: &Arc<ToolSpecification>| {
            let offer = self.offer.as_ref();
            offer.is_none_or(|offer| offer.has(tool.name().as_str()))
        };
        let callable = self.callable.iter().filter(|(kind, tool)| match kind {
            CallKind::Tool | CallKind::SubAgent => self.is_available(tool) && is_shown(tool),
            CallKind::ToolSearch => self.can_find(),
            CallKind::Question | CallKind::Authorization | CallKind::Plan(_) => {
                self.is_available(tool)
            }
            CallKind::Finish => false,
        });
        callable.map(|(_, tool)| Arc::clone(tool)).collect()
    }

    pub(super) fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// Takes what the model is shown from now on. What a task wants and lacks is found out once.
    pub(super) fn apply(&mut self, mut offer: Offer) {
        if let Some(known) = self.offer.take() {
            offer.intent = offer.intent.or(known.intent);
            offer.gap = offer.gap.or(known.gap);
        }
        self.offer = Some(offer);
    }

    /// Whether a call of a tool may leave an argument out because the operator sets it.
    pub(super) fn is_set(&self, tool: &ToolName, argument: &str) -> bool {
        let set = self.offer.as_ref().and_then(|offer| offer.set.get(tool));
        set.is_some_and(|set| set.iter().any(|name| name == argument))
    }

    /// What no tool does of what the task wants. A tool that is not configured is not among that: a call
    /// of it says what to set.
    pub(super) fn missing(&self) -> Vec<&NonEmptyText> {
        let Some(gap) = self.offer.as_ref().and_then(|offer| offer.gap.as_ref()) else {
            return Vec::new();
        };
        let is_there = |missing: &NonEmptyText| {
            let mut told = gap.capabilities().iter();
            told.any(|told| told.capability == *missing && told.because.is_some())
        };
        let missing = gap.missing_tools().iter();
        missing.filter(|missing| !is_there(missing)).collect()
    }

    fn is_available(&self, tool: &ToolSpecification) -> bool {
        let name = tool.name().as_str();
        let available = self.available.as_ref();
        available.is_none_or(|names| names.iter().any(|available| available == name))
    }

    fn can_find(&self) -> bool {
        self.offer.as_ref().is_some_and(Offer::can_find)
    }
}

/// What a name that a model called stands for.
pub(super) enum Requested<'r> {
    /// The end of the run.
    Finish,
    /// A call of this kind.
    Call(CallKind, &'r Arc<ToolSpecification>),
}

/// The result of a search for tools: each with what it does and takes, so that it can be called.
#[must_use]
pub fn found(tools: &[&ToolSpecification]) -> Value {
    tools
        .iter()
        .map(|tool| {
            serde_json::json!({
                "name": tool.name().as_str(),
                "description": tool.description(),
                "parameters": tool.schema(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
