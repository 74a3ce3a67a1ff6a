//! The tools of a run: its agent, the names that calls can use, and which tools the model is shown. By
//! default it is shown all tools that are enabled. If there are too many for the context, it is shown
//! only those that fit the task, and `find_tools` finds the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::reserved::{ASK_HUMAN, FINISH};
use windlass_spec::{
    Agent, NonEmptyText, RawUserIntent, ToolGapReport, ToolName, ToolSpecification,
};

use super::event::{DisabledTool, Event, IntentAdvice, LeftOut, LeftOutReason, Task};
use super::settings::Settings;
use crate::catalog::{CallKind, Callable, callable};

/// The intent of a task and the tools chosen for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The intent of the task, as far as it is known.
    pub intent: Option<RawUserIntent>,
    /// The tools that are shown.
    pub tools: Vec<ToolName>,
    /// The tools that are left out, and why.
    pub left_out: Vec<LeftOut>,
    /// The arguments of tools that the operator sets. Calls may omit them.
    pub set: BTreeMap<ToolName, Vec<String>>,
    /// What the task needs and no tool provides.
    pub gap: Option<ToolGapReport>,
    /// The tools that the task needs and that are switched off.
    pub disabled: Vec<DisabledTool>,
    /// What the model reads about the intent.
    pub advice: Option<IntentAdvice>,
    /// The environment in which the tools were chosen; `None` in old journals.
    pub environment: Option<String>,
}

impl Offer {
    /// Whether a tool of that name is shown.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.as_str() == name)
    }

    /// Whether there are tools that a search can find.
    #[must_use]
    pub fn can_find(&self) -> bool {
        let mut left_out = self.left_out.iter();
        left_out.any(|left_out| left_out.because == LeftOutReason::Budget)
    }
}

/// The agent of a run and the tools its calls can name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Toolbox {
    agent: Agent,
    /// The other agents that may take part.
    agents: Vec<Agent>,
    /// All names that calls can use under the run's settings.
    callable: Vec<Callable>,
    /// The names that the task allows; `None` allows all.
    available: Option<Vec<String>>,
    /// The chosen tools; `None` if the model is shown all.
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

    /// The kind of call that a name makes, and its specification.
    pub(super) fn resolve(&self, name: &str) -> Option<(CallKind, &Arc<ToolSpecification>)> {
        let mut callable = self.callable.iter();
        let (kind, tool) = callable.find(|(_, tool)| tool.name().as_str() == name)?;
        let is_there = *kind != CallKind::ToolSearch || self.can_find();
        is_there.then_some((*kind, tool))
    }

    /// Like [`Toolbox::resolve`], for a name that a model calls: the task has to allow it. `finish`
    /// always ends the run, whatever the agent declares.
    pub(super) fn resolve_call(&self, name: &str) -> Option<Requested<'_>> {
        if name == FINISH {
            return Some(Requested::Finish);
        }
        let (kind, tool) = self.resolve(name)?;
        self.is_available(tool)
            .then_some(Requested::Call(kind, tool))
    }

    /// The tools that the agent declares and the task allows, including sub-agents.
    pub(super) fn allowed(&self) -> impl Iterator<Item = (CallKind, &Arc<ToolSpecification>)> {
        let own = self.callable.iter().filter(|(kind, tool)| {
            matches!(kind, CallKind::Tool | CallKind::SubAgent) && self.is_available(tool)
        });
        own.map(|(kind, tool)| (*kind, tool))
    }

    /// The tools that the model is shown.
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

    /// Applies an event: an offer sets the chosen tools. The intent and the gaps of a task, and the advice
    /// about it, are kept from the first offer.
    pub(super) fn apply(&mut self, event: &Event) {
        let Event::Offered {
            intent,
            tools,
            left_out,
            set,
            gap,
            disabled,
            advice,
            environment,
            ..
        } = event
        else {
            return;
        };
        let known = self.offer.take();
        let (known_intent, known_gap, known_advice, mut known_disabled) = match known {
            Some(known) => (known.intent, known.gap, known.advice, known.disabled),
            None => (None, None, None, Vec::new()),
        };
        known_disabled.extend(disabled.iter().cloned());
        self.offer = Some(Offer {
            intent: intent.as_deref().cloned().or(known_intent),
            tools: tools.clone(),
            left_out: left_out.clone(),
            set: set.clone(),
            gap: gap.as_deref().cloned().or(known_gap),
            disabled: known_disabled,
            advice: advice.as_deref().cloned().or(known_advice),
            environment: environment.clone(),
        });
    }

    /// Whether a call may omit an argument because the operator sets it.
    pub(super) fn is_set_by_operator(&self, tool: &ToolName, argument: &str) -> bool {
        let set = self.offer.as_ref().and_then(|offer| offer.set.get(tool));
        set.is_some_and(|set| set.iter().any(|name| name == argument))
    }

    /// What the task needs and no tool does that the model can call, in the words of the task. A tool that
    /// exists but is not configured does not count: a call of it returns what to set.
    pub(super) fn missing(&self) -> Vec<&NonEmptyText> {
        let Some(offer) = &self.offer else {
            return Vec::new();
        };
        let gap = offer.gap.iter();
        let missing = gap.flat_map(|gap| {
            let missing = gap.missing_tools().iter().zip(gap.requests());
            missing.filter_map(|(missing, request)| {
                let detail = gap.detail(missing);
                let is_unconfigured = detail.is_some_and(|detail| detail.because.is_some());
                (!is_unconfigured).then_some(request)
            })
        });
        let disabled = offer.disabled.iter().map(|disabled| &disabled.request);
        missing.chain(disabled).collect()
    }

    /// Whether the model can ask a person.
    pub(super) fn can_ask(&self) -> bool {
        let asking = self.resolve(ASK_HUMAN);
        asking.is_some_and(|(_, tool)| self.is_available(tool))
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

/// The meaning of a name that a model called.
pub(super) enum Requested<'r> {
    /// The end of the run.
    Finish,
    /// A call of this kind.
    Call(CallKind, &'r Arc<ToolSpecification>),
}

/// The result of a search for tools: each with its description and parameters, so that it can be called.
#[must_use]
pub fn tool_search_result(tools: &[&ToolSpecification]) -> Value {
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
