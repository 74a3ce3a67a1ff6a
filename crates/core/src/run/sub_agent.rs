//! Sub-agents: a model sees them as tools that take a task, the runtime executes them as runs. A child
//! run is named after the call it works for, so the process that resumes the parent finds it.

use std::collections::BTreeSet;

use windlass_spec::registry::Permission;
use windlass_spec::{CallId, CallRecord, RunId, Timestamp};

use super::Run;
use super::allowance::share;
use super::event::{Event, Task};
use crate::catalog::{CallKind, SUB_AGENT_TASK};
use crate::gate::Permit;

impl Run {
    /// The child run of a call, if it is a call of a sub-agent.
    #[must_use]
    pub fn child_run(&self, call: &CallRecord) -> Option<RunId> {
        let is_sub_agent = self.kind(call.id()) == Some(CallKind::SubAgent);
        is_sub_agent.then(|| child_id(call.id())).flatten()
    }

    /// The first event of the run that works for `call`, in exchange for the call's permit. The run may
    /// hold at most the permissions `holds`. `None` if the permit is not for a sub-agent, or the runs
    /// nest too deeply for the child to have an id.
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
            settings: self.allowance.remaining_limits(calls, at),
            at,
        })
    }

    /// The number of calls to lend to a sub-agent that is about to start: an equal share of what is
    /// left.
    pub(super) fn share_of_sub_agent(&self) -> u32 {
        share(self.calls_left(), self.calls.sharers())
    }
}

/// The id of the run that works for a call.
fn child_id(call: &CallId) -> Option<RunId> {
    RunId::new(format!("{}.{}.{}", call.run, call.turn, call.index)).ok()
}
