//! Sub-agents: to a model they are tools that take a task, to the runtime they are runs of their own.
//! A child run is named after the call it works for, so whoever takes the parent up again finds it.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_spec::registry::Permission;
use windlass_spec::{
    Agent, CallId, CallRecord, Field, NonEmptyText, RiskLevel, RunId, Signature, Timestamp,
    ToolAttributes, ToolName, ToolSpecification, Type,
};

use super::event::{Event, Task};
use super::settings::Settings;
use super::state::{Entry, Run};
use crate::gate::Permit;

/// The one argument of a sub-agent.
const TASK: &str = "task";

/// The sub-agents of `agent` among `agents`, as tools.
pub(super) fn specifications(agent: &Agent, agents: &[Agent]) -> Vec<Arc<ToolSpecification>> {
    agent
        .agents()
        .iter()
        .filter_map(|name| agents.iter().find(|agent| agent.name() == name))
        .filter_map(specification)
        .map(Arc::new)
        .collect()
}

fn specification(agent: &Agent) -> Option<ToolSpecification> {
    let name = ToolName::new(agent.name().as_str()).ok()?;
    let what = agent.description().unwrap_or(agent.instruction());
    let description = NonEmptyText::or(what, "An agent that takes a task and answers it");
    let task = Field::required(TASK, Type::Text)
        .described("What the agent is to do, with everything it needs to know");
    let signature = Signature::new(vec![task], Type::Text).ok()?;
    // Handing work over changes nothing by itself; each call the sub-agent makes passes the gate.
    let attributes = ToolAttributes {
        risk: Some(RiskLevel::Reversible),
        ..ToolAttributes::default()
    };
    ToolSpecification::new(name, description, signature)
        .with_attributes(attributes)
        .ok()
}

impl Run {
    /// Whether a call goes to a sub-agent rather than to a tool.
    #[must_use]
    pub fn is_sub_agent(&self, name: &str) -> bool {
        let mut sub_agents = self.sub_agents.iter();
        self.agent.tool(name).is_none() && sub_agents.any(|agent| agent.name().as_str() == name)
    }

    /// Whether there is such a call and it goes to a sub-agent.
    pub(super) fn is_of_sub_agent(&self, call: &CallId) -> bool {
        let record = self.call(call).ok().map(|(record, _)| record);
        record.is_some_and(|record| self.is_sub_agent(record.tool_name().as_str()))
    }

    /// The run that works for a call, if a sub-agent does.
    #[must_use]
    pub fn child_run(&self, call: &CallRecord) -> Option<RunId> {
        let is_sub_agent = self.is_sub_agent(call.tool_name().as_str());
        is_sub_agent.then(|| child_id(call.id())).flatten()
    }

    /// The first event of the run that works for `call`, in exchange for the call's permit; it may
    /// hold at most `holds`. `None`
    /// if the permit is for no sub-agent, or the runs nest too deeply for the child to have a name.
    #[must_use]
    pub fn child(
        &self,
        call: &CallId,
        permit: Permit,
        holds: BTreeSet<Permission>,
        at: Timestamp,
    ) -> Option<Event> {
        let agent = self
            .agents
            .iter()
            .find(|agent| agent.name().as_str() == permit.tool().as_str())?;
        let arguments = permit.into_arguments();
        let calls = match self.entry(call) {
            Ok(Entry::Call { stand, .. }) => stand.calls,
            _ => 0,
        };
        Some(Event::Started {
            run: child_id(call)?,
            agent: Box::new(agent.clone()),
            agents: self.agents.clone(),
            assembly: self.assembly.clone(),
            parent: Some(call.clone()),
            holds: Some(holds),
            task: Task {
                description: arguments[TASK].as_str()?.to_owned(),
                tainted: self.is_tainted_at(call).unwrap_or(true),
                ..Task::default()
            },
            settings: self.rest_of_settings(calls, at),
            at,
        })
    }

    /// The run's limits less what it has used up, for one that may make so many calls for it.
    pub(super) fn rest_of_settings(&self, max_calls: u32, at: Timestamp) -> Settings {
        let used = self.usage.input_tokens + self.usage.output_tokens;
        let money = self.usage.microdollars.unwrap_or(0);
        Settings {
            max_calls,
            max_tokens: self
                .settings
                .max_tokens
                .map(|limit| limit.saturating_sub(used)),
            max_microdollars: self
                .settings
                .max_microdollars
                .map(|limit| limit.saturating_sub(money)),
            // A second that has begun is left, so that a child is never stopped before its parent.
            max_seconds: self.time_left(at).map(|left| left.as_secs() + 1),
            ..self.settings.clone()
        }
    }
}

/// The name of the run that works for a call.
fn child_id(call: &CallId) -> Option<RunId> {
    RunId::new(format!("{}.{}.{}", call.run, call.turn, call.index)).ok()
}
