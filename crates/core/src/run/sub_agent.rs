//! Sub-agents: to a model they are tools that take a task, to the runtime they are runs of their own.
//! A child run is named after the call it works for, so the process that resumes the parent finds it.

use std::collections::BTreeSet;

use windlass_spec::registry::Permission;
use windlass_spec::{CallId, CallRecord, RunId, Timestamp};

use super::Run;
use super::allowance::share;
use super::event::{Event, Task};
use crate::catalog::{CallKind, SUB_AGENT_TASK};
use crate::gate::Permit;

impl Run {
    /// The run that works for a call, if a sub-agent does.
    #[must_use]
    pub fn child_run(&self, call: &CallRecord) -> Option<RunId> {
        let is_sub_agent = self.kind(call.id()) == Some(CallKind::SubAgent);
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
        let mut agents = self.agents().iter();
        let agent = agents.find(|agent| agent.name().as_str() == permit.tool().as_str())?;
        let arguments = permit.into_arguments();
        let calls = self.allowance.lent_to(call);
        Some(Event::Started {
            run: child_id(call)?,
            agent: Box::new(agent.clone()),
            agents: self.agents().to_vec(),
            assembly: self.assembly.clone(),
            parent: Some(call.clone()),
            holds: Some(holds),
            task: Task {
                description: arguments[SUB_AGENT_TASK].as_str()?.to_owned(),
                tainted: self.is_tainted_at(call).unwrap_or(true),
                ..Task::default()
            },
            settings: self.allowance.rest(calls, at),
            at,
        })
    }

    /// What the run of a sub-agent may use that is about to begin: as much as each of those that share
    /// what is left.
    pub(super) fn share_of_sub_agent(&self) -> u32 {
        share(self.calls_left(), self.calls.sharers())
    }
}

/// The name of the run that works for a call.
fn child_id(call: &CallId) -> Option<RunId> {
    RunId::new(format!("{}.{}.{}", call.run, call.turn, call.index)).ok()
}
