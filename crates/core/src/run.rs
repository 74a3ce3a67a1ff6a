//! The run machine: one agent, one task, from the first turn to the end.
//!
//! A run is a fold: its state is what its events make of it, and nothing else. [`Run::apply`] takes
//! the next event, [`Run::next`] says what to do now. Drivers do it (ask the model, run the calls)
//! and append the result as further events. The machine reads no clock and draws no numbers, so
//! the same events always give the same state, the same requests and the same end.
//!
//! A run is made of parts, each in a module of its own that alone sees its fields: `toolbox` (who works
//! and with what), `calls` (turns and calls, each with its `progress`), `grants` (authorizations for later
//! calls), `plan` (plans and their tasks), `allowance` (what may be used and is) and `transcript` (the
//! conversation with the model). `apply` is the table that sends each event to the parts it concerns. What
//! needs several parts is a method of [`Run`]: `gating` (the gate), `people` (questions), `sub_agent` and
//! `plan::work` (runs that work for this one), `answer` and `context` (what is told of it).

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
pub use event::{CallEnd, Event, LeftOut, LeftOutBecause, Ran, RecalledStrategy, Task, Variant};
pub use mistake::{Mistake, MistakeKind};
pub use outcome::{FoldError, Next, RunEnd, Waiting};
pub use people::{GateStep, ToolQuestion};
pub use plan::{
    CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, PlanState, PlanTaskStatus, ReplanError, TaskEnd,
    TaskState, UPDATE_TASK_STATUS,
};
pub use progress::{CallProgress, Reply};
pub use repair::{NotJson, repair_json};
pub use settings::{Budget, Settings};
pub use toolbox::{Offer, found};
pub use transcript::NO_TOOL_NOTE;
pub use windlass_spec::reserved::{ASK_HUMAN, FIND_TOOLS, REQUEST_AUTHORIZATION};

/// A run: the fold of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    id: RunId,
    assembly: Map<String, Value>,
    parent: Option<CallId>,
    /// What it may hold at most, because the run that handed it the work holds no more.
    inherited: Option<BTreeSet<Permission>>,
    task: Task,
    toolbox: Toolbox,
    calls: Calls,
    grants: Grants,
    plans: Plans,
    allowance: Allowance,
    transcript: Transcript,
    end: Option<RunEnd>,
    /// Whether the process that drives the run left it to wait for a person. Not part of the fold.
    is_left_waiting: bool,
}

impl Run {
    /// Folds a journal.
    ///
    /// # Errors
    /// If an event does not fit; the journal is then damaged or from elsewhere.
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

    /// Takes back what was applied after these events, because it could not be stored. Permits that
    /// were handed out stay handed out: they are not part of the fold.
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

    /// What to do now.
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

    /// What to do now, unless it is to ask the model.
    fn next_without_model(&self) -> Option<Next> {
        if let Some(end) = &self.end {
            return Some(Next::Done(end.clone()));
        }
        let now = self.allowance.now();
        // The model is not kept waiting by what runs later, unless it has nothing more to say.
        self.calls.next(now).filter(|next| {
            !matches!(next, Next::Wait(_)) || self.calls.has_open(now) || self.is_finishing()
        })
    }

    /// Whether nothing can be done but wait: for a person, or for an undo window to pass.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.next_without_model(), Some(Next::Wait(_)))
    }

    /// Notes that the process that drives the run leaves it to wait for a person, perhaps one that a
    /// sub-agent asks.
    pub fn leave_waiting(&mut self) {
        self.is_left_waiting = true;
    }

    /// How the run stands for the process that asked for it: how it ended, or that it waits for a person.
    /// `None` if it can be resumed at once.
    #[must_use]
    pub fn standing(&self) -> Option<RunEnd> {
        let waits = || self.is_left_waiting.then_some(RunEnd::WaitingForPerson);
        self.end.clone().or_else(waits)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The agent at work.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        self.toolbox.agent()
    }

    /// All agents that may take part, besides its own.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        self.toolbox.agents()
    }

    /// How the agents were put to work.
    #[must_use]
    pub fn assembly(&self) -> &Map<String, Value> {
        &self.assembly
    }

    /// The call of another run that this one works for.
    #[must_use]
    pub fn parent(&self) -> Option<&CallId> {
        self.parent.as_ref()
    }

    /// What it is asked to do.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Whether carrying out a plan is all it does: its task is the call that makes the plan.
    #[must_use]
    pub fn is_plan_only(&self) -> bool {
        let call = self.task.call.as_ref();
        let kind = call.and_then(|call| self.toolbox.resolve(&call.tool));
        kind.is_some_and(|(kind, _)| kind == CallKind::Plan(PlanOperation::Create))
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }
}

/// What its calls can name and the model is shown.
impl Run {
    /// What kind of call a name makes in this run, and what is declared of it.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<(CallKind, &Arc<ToolSpecification>)> {
        self.toolbox.resolve(name)
    }

    /// What is declared of a tool of the agent, or of a sub-agent as a model sees it.
    #[must_use]
    pub fn specification(&self, name: &str) -> Option<&Arc<ToolSpecification>> {
        self.toolbox.resolve(name).map(|(_, tool)| tool)
    }

    /// What an agent declares that the task allows, sub-agents included.
    pub fn allowed_tools(&self) -> impl Iterator<Item = &Arc<ToolSpecification>> {
        self.toolbox.allowed().map(|(_, tool)| tool)
    }

    /// What the model is shown: the agent's tools, its sub-agents as if they were tools, and the reserved
    /// tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<ToolSpecification>> {
        self.toolbox.shown()
    }

    /// What was found out about the task, and what the model is shown for it. Nothing, if it is shown
    /// everything.
    #[must_use]
    pub fn offer(&self) -> Option<&Offer> {
        self.toolbox.offer()
    }

    /// The tools that were searched and found so far, in that order.
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

/// Its turns and calls.
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

    /// All calls in good order, also those the gate refused.
    pub fn calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.calls.entries().filter_map(Entry::call)
    }

    /// What came of a call the model asked for.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn entry(&self, call: &CallId) -> Result<&Entry, FoldError> {
        self.calls.entry(call)
    }

    /// A call and what the gate decided about it.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn call(&self, call: &CallId) -> Result<(&CallRecord, Option<&Decision>), FoldError> {
        self.calls.call(call)
    }

    /// What a call is for; `None` if there is no such call.
    #[must_use]
    pub fn kind(&self, call: &CallId) -> Option<CallKind> {
        self.calls.entry(call).ok()?.kind()
    }

    /// Which of several implementations a call runs, if it has begun and there are several.
    #[must_use]
    pub fn variant(&self, call: &CallId) -> Option<&Variant> {
        match self.entry(call).ok()? {
            Entry::Call { progress, .. } => progress.variant(),
            Entry::Mistake { .. } | Entry::Finish => None,
        }
    }

    /// How reversible a call is, as [`Run::call`] finds it.
    #[must_use]
    pub fn risk(&self, call: &CallId) -> RiskLevel {
        self.entry(call)
            .map_or(RiskLevel::Irreversible, Entry::risk)
    }

    /// Whether a call that has begun may be made once more, whatever became of it: if it changes nothing
    /// that cannot be changed back at any time, or if twice is the same as once. What cannot be undone is
    /// never made twice.
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

    /// The questions that wait for a person, and the calls they are about.
    pub fn questions(&self) -> impl Iterator<Item = &Approval> {
        self.calls.entries().filter_map(|entry| match entry {
            Entry::Call { progress, .. } => progress.question(),
            Entry::Mistake { .. } | Entry::Finish => None,
        })
    }

    /// The calls that are held, and until when.
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

/// What it may use and has used, and how the model did.
impl Run {
    /// Its limits.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.allowance.settings()
    }

    /// What it cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.allowance.usage()
    }

    /// How long the run may still go on at `now`; `None` if there is no limit. What it waited for
    /// people does not count.
    #[must_use]
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        self.allowance.time_left(now)
    }

    /// How long it was at work so far. What it waited for people, and the time in which no process was at
    /// it, does not count.
    #[must_use]
    pub fn working_time(&self) -> Duration {
        self.allowance.time_used(self.allowance.now())
    }

    /// How many of its calls a run has used: its own, also those that are yet to run, and those of the
    /// runs that work for it. What one of these may still make counts until it is over.
    #[must_use]
    pub fn calls_used(&self) -> u32 {
        let own = self.calls.used();
        own.saturating_add(self.allowance.calls_of_others())
    }

    /// How many calls are left for a run that begins now.
    fn calls_left(&self) -> u32 {
        self.allowance.calls_left(self.calls.used())
    }

    /// How often the model made which mistake.
    #[must_use]
    pub fn mistakes(&self) -> &BTreeMap<MistakeKind, u32> {
        self.transcript.mistakes()
    }

    /// The strategies of a playbook that are put before the model; none before they were looked for.
    #[must_use]
    pub fn recalled(&self) -> Option<&[RecalledStrategy]> {
        self.transcript.recalled()
    }
}

#[cfg(test)]
mod tests;
