//! The run machine: one agent, one task, from the first turn to the end.
//!
//! A run is a fold: its state depends only on its events. [`Run::apply`] applies the next event,
//! [`Run::next`] returns what to do now. Drivers do it (ask the model, run the calls) and append the
//! result as further events. The machine reads no clock and uses no randomness, so the same events
//! always give the same state, the same requests and the same end.
//!
//! A run is made of parts, each in its own module with private fields: `toolbox` (the agent and its
//! tools), `calls` (turns and calls, each with its `progress`), `grants` (authorizations for later
//! calls), `plan` (plans and their tasks), `allowance` (limits and usage) and `transcript` (the
//! conversation with the model). `apply` sends each event to the parts it concerns. What needs several
//! parts is a method of [`Run`]: `gating` (the gate), `people` (questions), `sub_agent` and `plan::work`
//! (runs that work for this one), `answer` and `context` (what is reported about it).

mod allowance;
mod answer;
mod apply;
mod calls;
mod context;
mod event;
mod gating;
mod grants;
mod mistake;
mod outcome;
mod people;
mod plan;
mod progress;
mod reading;
mod repair;
mod settings;
mod single;
mod sub_agent;
mod toolbox;
mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::registry::Permission;
use windlass_spec::{
    Agent, CallId, CallRecord, RiskLevel, RunId, Timestamp, ToolName, ToolSpecification, Turn,
};

use crate::approval::Approval;
use crate::gate::Decision;
use crate::model::Usage;

use allowance::Allowance;
use calls::Calls;
use grants::Grants;
use plan::Plans;
use progress::Step;
use toolbox::Toolbox;
use transcript::Transcript;

pub use crate::catalog::{CallKind, PlanOperation};
pub use crate::gate::PermitError;
pub use answer::Answer;
pub use calls::{Entry, TurnState};
pub use event::{
    CallEnd, Event, ExecutedTool, LeftOut, LeftOutReason, RecalledStrategy, Task, Variant,
};
pub use mistake::{Mistake, MistakeKind};
pub use outcome::{FoldError, Next, RunEnd, Waiting};
pub use people::{GateStep, ToolQuestion};
pub use plan::{
    CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, PlanState, PlanTaskStatus, ReplanError, TaskEnd,
    TaskState, UPDATE_TASK_STATUS,
};
pub use progress::{CallProgress, FormReply};
pub use repair::{NotJson, repair_json};
pub use settings::{Budget, Settings};
pub use toolbox::{Offer, tool_search_result};
pub use transcript::NO_TOOL_NOTE;
pub use windlass_spec::reserved::{ASK_HUMAN, FIND_TOOLS, REQUEST_AUTHORIZATION};

/// The state of a run, folded from its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    id: RunId,
    assembly: Map<String, Value>,
    parent: Option<CallId>,
    /// The permissions it may hold at most: those of the run that delegated the work. `None` means no
    /// limit.
    inherited: Option<BTreeSet<Permission>>,
    task: Task,
    toolbox: Toolbox,
    calls: Calls,
    grants: Grants,
    plans: Plans,
    allowance: Allowance,
    transcript: Transcript,
    end: Option<RunEnd>,
    /// Whether the process that drives the run suspended it to wait for a person. Not part of the fold.
    is_left_waiting: bool,
}

impl Run {
    /// Folds a journal.
    ///
    /// # Errors
    /// If an event does not fit. The journal is then damaged or belongs to another run.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Result<Self, FoldError> {
        let mut events = events.into_iter();
        let Some(Event::Started {
            run,
            agent,
            agents,
            assembly,
            parent,
            holds,
            task,
            settings,
            at,
        }) = events.next()
        else {
            return Err(FoldError::NotStarted);
        };
        let mut state = Self {
            id: run.clone(),
            assembly: assembly.clone(),
            parent: parent.clone(),
            inherited: holds.clone(),
            task: task.clone(),
            toolbox: Toolbox::new(agent, agents, task, settings),
            calls: Calls::new(run.clone()),
            grants: Grants::default(),
            plans: Plans::default(),
            allowance: Allowance::new(settings.clone(), *at),
            transcript: Transcript::new(settings),
            end: None,
            is_left_waiting: false,
        };
        state.settle();
        for event in events {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// Undoes what was applied after these events, because it could not be stored. Permits that were
    /// issued stay issued: they are not part of the fold.
    ///
    /// # Errors
    /// If the events do not fit. The run is then unchanged.
    pub fn restore<'e>(
        &mut self,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<(), FoldError> {
        let mut run = Self::fold(events)?;
        run.calls.take_permits_of(&mut self.calls);
        run.is_left_waiting = self.is_left_waiting;
        *self = run;
        Ok(())
    }

    /// Returns what to do now.
    #[must_use]
    pub fn next(&self) -> Next {
        self.next_without_model().unwrap_or_else(|| {
            Next::CallModel(Box::new(self.transcript.request(
                self.toolbox.agent(),
                &self.task,
                self.calls.turns(),
                &self.toolbox.missing(),
                self.toolbox.shown(),
            )))
        })
    }

    /// Returns what to do now, unless it is to ask the model.
    fn next_without_model(&self) -> Option<Next> {
        if let Some(end) = &self.end {
            return Some(Next::Done(end.clone()));
        }
        let now = self.allowance.now();
        // Deferred calls do not keep the model waiting, unless the run only waits for them to finish.
        self.calls.next(now).filter(|next| {
            !matches!(next, Next::Wait(_)) || self.calls.has_open(now) || self.is_finishing()
        })
    }

    /// Whether the run can only wait: for a person, or for an undo window to pass.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.next_without_model(), Some(Next::Wait(_)))
    }

    /// Records that the driving process suspends the run to wait for a person, possibly for one that a
    /// sub-agent asks.
    pub fn mark_waiting(&mut self) {
        self.is_left_waiting = true;
    }

    /// Returns the end of the run, or [`RunEnd::WaitingForPerson`] if the driving process suspended it.
    /// `None` if it can be resumed at once.
    #[must_use]
    pub fn end_or_waiting(&self) -> Option<RunEnd> {
        let waits = || self.is_left_waiting.then_some(RunEnd::WaitingForPerson);
        self.end.clone().or_else(waits)
    }

    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The agent of the run.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        self.toolbox.agent()
    }

    /// The other agents that may take part.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        self.toolbox.agents()
    }

    /// How the agents were assembled.
    #[must_use]
    pub fn assembly(&self) -> &Map<String, Value> {
        &self.assembly
    }

    /// The call of the parent run that this run works for.
    #[must_use]
    pub fn parent(&self) -> Option<&CallId> {
        self.parent.as_ref()
    }

    /// The task of the run.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Whether the run only executes a plan: its task is the call that creates the plan.
    #[must_use]
    pub fn is_plan_only(&self) -> bool {
        let call = self.task.call.as_ref();
        let kind = call.and_then(|call| self.toolbox.resolve(&call.tool));
        kind.is_some_and(|(kind, _)| kind == CallKind::Plan(PlanOperation::Create))
    }

    /// How the run ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }
}

/// The tools of the run and what the model is shown.
impl Run {
    /// Returns the kind of call that a name makes in this run, and the specification behind the name.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<(CallKind, &Arc<ToolSpecification>)> {
        self.toolbox.resolve(name)
    }

    /// The specification of a tool of the agent, or of a sub-agent presented as a tool.
    #[must_use]
    pub fn specification(&self, name: &str) -> Option<&Arc<ToolSpecification>> {
        self.toolbox.resolve(name).map(|(_, tool)| tool)
    }

    /// The tools that the agent declares and the task allows, including sub-agents.
    pub fn allowed_tools(&self) -> impl Iterator<Item = &Arc<ToolSpecification>> {
        self.toolbox.allowed().map(|(_, tool)| tool)
    }

    /// The tools that the model is shown: those of the agent, its sub-agents presented as tools, and the
    /// reserved tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<ToolSpecification>> {
        self.toolbox.shown()
    }

    /// The intent of the task and the tools chosen for it. `None` if the model is shown all tools.
    #[must_use]
    pub fn offer(&self) -> Option<&Offer> {
        self.toolbox.offer()
    }

    /// The tools that tool searches have found so far, in order.
    #[must_use]
    pub fn found_tools(&self) -> Vec<ToolName> {
        let entries = self.calls.entries();
        let searches = entries.filter(|entry| entry.kind() == Some(CallKind::ToolSearch));
        let found = searches.filter_map(|entry| {
            let found = entry.call()?.outcome()?.ok()?.as_array()?;
            Some(found.iter().filter_map(|tool| tool.get("name")?.as_str()))
        });
        let mut names: Vec<ToolName> = Vec::new();
        for name in found.flatten().filter_map(|name| ToolName::new(name).ok()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// The turns and calls of the run.
impl Run {
    /// The turns so far.
    #[must_use]
    pub fn turns(&self) -> &[TurnState] {
        self.calls.turns()
    }

    /// The turn the model is asked for next, or was asked for last if that has not been answered.
    #[must_use]
    pub fn current_turn(&self) -> Turn {
        self.calls.current_turn()
    }

    /// All well-formed calls, including those the gate refused.
    pub fn calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.calls.entries().filter_map(Entry::call)
    }

    /// The entry of a call that the model asked for.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn entry(&self, call: &CallId) -> Result<&Entry, FoldError> {
        self.calls.entry(call)
    }

    /// A call and the gate's decision about it.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn call(&self, call: &CallId) -> Result<(&CallRecord, Option<&Decision>), FoldError> {
        self.calls.call(call)
    }

    /// The kind of a call; `None` if there is no such call.
    #[must_use]
    pub fn kind(&self, call: &CallId) -> Option<CallKind> {
        self.calls.entry(call).ok()?.kind()
    }

    /// The implementation that a call runs, if the call has started and there are several.
    #[must_use]
    pub fn variant(&self, call: &CallId) -> Option<&Variant> {
        match self.entry(call).ok()? {
            Entry::Call { progress, .. } => progress.variant(),
            Entry::Mistake { .. } | Entry::Finish => None,
        }
    }

    /// How reversible a call is; irreversible if there is no such call.
    #[must_use]
    pub fn risk(&self, call: &CallId) -> RiskLevel {
        self.entry(call)
            .map_or(RiskLevel::Irreversible, Entry::risk)
    }

    /// Whether a call that has started may run again, whatever its outcome: if it is reversible, or if
    /// it is idempotent and not irreversible. An irreversible call never runs twice.
    #[must_use]
    pub fn may_be_repeated(&self, call: &CallId) -> bool {
        let Ok(Entry::Call { specification, .. }) = self.entry(call) else {
            return false;
        };
        match self.risk(call) {
            RiskLevel::Reversible => true,
            RiskLevel::ReversibleWithDelay => specification.attributes().idempotent == Some(true),
            RiskLevel::Irreversible => false,
        }
    }

    /// The questions that wait for a person.
    pub fn questions(&self) -> impl Iterator<Item = &Approval> {
        self.calls.entries().filter_map(|entry| match entry {
            Entry::Call { progress, .. } => progress.question(),
            Entry::Mistake { .. } | Entry::Finish => None,
        })
    }

    /// The calls that are held, each with the end of its undo window.
    pub fn held_calls(&self) -> impl Iterator<Item = (&CallRecord, Timestamp)> {
        let now = self.allowance.now();
        self.calls
            .entries()
            .filter_map(move |entry| match entry.step(now)? {
                Step::Held(until) => Some((entry.call()?, until)),
                _ => None,
            })
    }
}

/// Limits, usage and the mistakes of the model.
impl Run {
    /// The limits of the run.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.allowance.settings()
    }

    /// What the run has cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.allowance.usage()
    }

    /// How long the run may still work at `now`; `None` if there is no limit. Time spent waiting for
    /// people does not count.
    #[must_use]
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        self.allowance.time_left(now)
    }

    /// How long the run has worked so far. Time spent waiting for people, or without a process that
    /// drives it, does not count.
    #[must_use]
    pub fn working_time(&self) -> Duration {
        self.allowance.time_used(self.allowance.now())
    }

    /// How many of its calls the run has used: its own, including those that have not run yet, and those
    /// of the runs that work for it. The calls lent to such a run count until it ends.
    #[must_use]
    pub fn calls_used(&self) -> u32 {
        let own = self.calls.used_calls();
        own.saturating_add(self.allowance.calls_of_others())
    }

    /// How many calls are left for a run that starts now.
    fn calls_left(&self) -> u32 {
        self.allowance.calls_left(self.calls.used_calls())
    }

    /// How often the model made each kind of mistake.
    #[must_use]
    pub fn mistakes(&self) -> &BTreeMap<MistakeKind, u32> {
        self.transcript.mistakes()
    }

    /// The playbook strategies that the model is shown; `None` before they are recalled.
    #[must_use]
    pub fn recalled(&self) -> Option<&[RecalledStrategy]> {
        self.transcript.recalled()
    }
}

#[cfg(test)]
mod tests;
