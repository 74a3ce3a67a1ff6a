//! The state of a run: what its events made of it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::registry::Permission;
use windlass_spec::{Agent, CallId, CallRecord, RunId, Timestamp, ToolSpecification, Turn};

use super::answer::Answer;
use super::event::{Event, RecalledStrategy, Task};
use super::mistake::{Mistake, MistakeKind};
use super::offer::Offer;
use super::outcome::{FoldError, Next, RunEnd};
use super::plan::PlanState;
use super::settings::Settings;
use super::settling::Grant;
use super::stand::Stand;
use super::sub_agent;
use crate::gate::Decision;
use crate::model::{ModelAnswer, Usage};

/// A run: the fold of its events.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) id: RunId,
    pub(super) agent: Agent,
    /// All agents that may take part, besides the run's own.
    pub(super) agents: Vec<Agent>,
    /// The agent's sub-agents, as what they are to a model: tools that take a task.
    pub(super) sub_agents: Vec<Arc<ToolSpecification>>,
    pub(super) assembly: Map<String, Value>,
    parent: Option<CallId>,
    /// What it may hold at most, because whoever handed it the work holds no more.
    pub(super) inherited: Option<BTreeSet<Permission>>,
    /// What was found out about the task, and which tools the model is shown; all, if nothing is said.
    pub(super) offer: Option<Offer>,
    /// The strategies that are put before the model.
    pub(super) recalled: Option<Vec<RecalledStrategy>>,
    pub(super) task: Task,
    pub(super) settings: Settings,
    pub(super) started_at: Timestamp,
    pub(super) now: Timestamp,
    pub(super) turns: Vec<TurnState>,
    pub(super) usage: Usage,
    pub(super) mistakes: BTreeMap<MistakeKind, u32>,
    pub(super) mistaken_turns: u32,
    pub(super) shortenings: u32,
    /// Microseconds in which the run waited for people, or nobody was at it.
    pub(super) waited: u64,
    /// Whether any call was ever deferred.
    pub(super) has_deferred: bool,
    /// Leave that people gave for calls that are yet to be made.
    pub(super) grants: Vec<Grant>,
    /// The plans that were made, in order.
    pub(super) plans: Vec<PlanState>,
    pub(super) answer: Option<Answer>,
    pub(super) end: Option<RunEnd>,
    /// Calls whose permit was handed out in this process. Not part of the fold: a process that
    /// takes a run over has handed out none.
    pub(super) permitted: HashSet<CallId>,
    /// Whether whoever drives the run left it to wait for a person. Not part of the fold either.
    pub(super) is_left_waiting: bool,
}

/// One turn: what the model answered and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnState {
    /// Its number.
    pub turn: Turn,
    /// When the model was asked.
    pub asked_at: Timestamp,
    /// When the turn was over; the time of the last event until it is.
    pub ended_at: Timestamp,
    /// What the model answered.
    pub answer: ModelAnswer,
    /// What came of each call it asked for, in that order.
    pub entries: Vec<Entry>,
    /// The calls that runs of tasks made in it, or may make that are not over.
    pub(super) calls_of_tasks: u32,
}

/// What came of a call a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A call in good order.
    Call {
        /// Its record.
        record: Box<CallRecord>,
        /// What the gate decided, once it did.
        decision: Option<Box<Decision>>,
        /// What people and time have to do with it.
        stand: Box<Stand>,
    },
    /// Something the model did wrong.
    Mistake {
        /// What.
        mistake: Mistake,
        /// The call that was not made, as far as it could be read.
        record: Box<CallRecord>,
    },
    /// The end of the run.
    Finish,
}

impl Entry {
    /// The record of a call in good order.
    pub(super) fn call(&self) -> Option<&CallRecord> {
        match self {
            Self::Call { record, .. } => Some(record),
            Self::Mistake { .. } | Self::Finish => None,
        }
    }

    /// The record of whatever was asked for, also of what was refused at once.
    pub(super) fn record(&self) -> Option<&CallRecord> {
        match self {
            Self::Call { record, .. } | Self::Mistake { record, .. } => Some(record),
            Self::Finish => None,
        }
    }
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
            sub_agents: sub_agent::specifications(agent, agents),
            agent: (**agent).clone(),
            agents: agents.clone(),
            assembly: assembly.clone(),
            parent: parent.clone(),
            inherited: holds.clone(),
            offer: None,
            recalled: None,
            task: task.clone(),
            settings: settings.clone(),
            started_at: *at,
            now: *at,
            turns: Vec::new(),
            usage: Usage::default(),
            mistakes: BTreeMap::new(),
            mistaken_turns: 0,
            shortenings: 0,
            waited: 0,
            has_deferred: false,
            grants: Vec::new(),
            plans: Vec::new(),
            answer: None,
            end: None,
            permitted: HashSet::new(),
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
        run.permitted = std::mem::take(&mut self.permitted);
        run.is_left_waiting = self.is_left_waiting;
        *self = run;
        Ok(())
    }

    /// What to do now.
    #[must_use]
    pub fn next(&self) -> Next {
        self.next_without_model()
            .unwrap_or_else(|| Next::CallModel(Box::new(self.request())))
    }

    /// What to do now, unless it is to ask the model.
    pub(super) fn next_without_model(&self) -> Option<Next> {
        if let Some(end) = &self.end {
            return Some(Next::Done(end.clone()));
        }
        // The model is not kept waiting by what runs later, unless it has nothing more to say.
        self.next_of_calls().filter(|next| {
            !matches!(next, Next::Wait(_)) || self.has_open_calls() || self.is_finishing()
        })
    }

    /// The turn the model is asked for next, or was asked for last if that has not been answered.
    #[must_use]
    pub fn current_turn(&self) -> Turn {
        self.turns
            .last()
            .map_or(Turn::FIRST, |turn| turn.turn.next())
    }

    /// What came of a call the model asked for.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn entry(&self, call: &CallId) -> Result<&Entry, FoldError> {
        let unknown = || FoldError::UnknownCall(call.clone());
        if call.run != self.id {
            return Err(unknown());
        }
        let turn = self.turns.get(call.turn.number() as usize - 1);
        turn.and_then(|turn| turn.entries.get(call.index as usize))
            .ok_or_else(unknown)
    }

    /// A call and what the gate decided about it.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn call(&self, call: &CallId) -> Result<(&CallRecord, Option<&Decision>), FoldError> {
        match self.entry(call)? {
            Entry::Call {
                record, decision, ..
            } => Ok((record, decision.as_deref())),
            _ => Err(FoldError::UnknownCall(call.clone())),
        }
    }

    /// How long the run may still go on at `now`; `None` if there is no limit. What it waited for
    /// people does not count.
    #[must_use]
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let limit = Duration::from_secs(self.settings.max_seconds?);
        Some(limit.saturating_sub(self.time_used(now)))
    }

    /// How long it was at work so far. What it waited for people, and the time in which nobody was at
    /// it, does not count.
    #[must_use]
    pub fn working_time(&self) -> Duration {
        self.time_used(self.now)
    }

    /// How long the run was at work.
    pub(super) fn time_used(&self, now: Timestamp) -> Duration {
        let since = now.microseconds_since(self.started_at);
        Duration::from_micros(since.saturating_sub(self.waited))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The agent at work.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// All agents that may take part, besides its own.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        &self.agents
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

    /// The strategies of a playbook that are put before the model; none before they were looked for.
    #[must_use]
    pub fn recalled(&self) -> Option<&[RecalledStrategy]> {
        self.recalled.as_deref()
    }

    /// Its limits.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is declared of a tool of the agent, or of a sub-agent as a model sees it.
    #[must_use]
    pub fn specification(&self, name: &str) -> Option<&Arc<ToolSpecification>> {
        let mut others = self
            .sub_agents
            .iter()
            .chain(self.people())
            .chain(self.planning())
            .chain(self.finding());
        self.agent
            .tool(name)
            .or_else(|| others.find(|other| other.name().as_str() == name))
    }

    /// The turns so far.
    #[must_use]
    pub fn turns(&self) -> &[TurnState] {
        &self.turns
    }

    /// All calls in good order, also those the gate refused.
    pub fn calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.turns
            .iter()
            .flat_map(|turn| &turn.entries)
            .filter_map(Entry::call)
    }

    /// How often the model made which mistake.
    #[must_use]
    pub fn mistakes(&self) -> &BTreeMap<MistakeKind, u32> {
        &self.mistakes
    }

    /// What it cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }
}
