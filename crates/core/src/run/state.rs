//! The state of a run and how events change it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::{
    Agent, CallChange, CallId, CallRecord, CallState, ErrorCategory, RunId, Timestamp,
    ToolSpecification, Turn,
};

use super::answer::Answer;
use super::event::{CallEnd, Event, Task};
use super::mistake::{Mistake, MistakeKind};
use super::outcome::{FoldError, Next, PermitError, RunEnd};
use super::settings::{Budget, Settings};
use super::sub_agent;
use crate::gate::{self, Decision, GateContext, Permit, Verdict};
use crate::model::{ModelAnswer, ModelErrorKind, Usage};

/// How often a request may be shortened because the model found it too long.
const MAX_SHORTENINGS: u32 = 3;

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
    pub(super) task: Task,
    pub(super) settings: Settings,
    pub(super) started_at: Timestamp,
    pub(super) now: Timestamp,
    pub(super) turns: Vec<TurnState>,
    pub(super) usage: Usage,
    pub(super) mistakes: BTreeMap<MistakeKind, u32>,
    pub(super) mistaken_turns: u32,
    pub(super) shortenings: u32,
    pub(super) answer: Option<Answer>,
    end: Option<RunEnd>,
    /// Calls whose permit was handed out in this process. Not part of the fold: a process that
    /// takes a run over has handed out none.
    permitted: HashSet<CallId>,
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
}

/// What came of a call a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A call in good order.
    Call {
        /// Its record.
        record: Box<CallRecord>,
        /// What the gate decided, once it did.
        decision: Option<Decision>,
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
            task: task.clone(),
            settings: settings.clone(),
            started_at: *at,
            now: *at,
            turns: Vec::new(),
            usage: Usage::default(),
            mistakes: BTreeMap::new(),
            mistaken_turns: 0,
            shortenings: 0,
            answer: None,
            end: None,
            permitted: HashSet::new(),
        };
        state.settle();
        for event in events {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// If the event does not fit. The run is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        match event {
            Event::Started { .. } => return Err(FoldError::StartedTwice),
            Event::ModelAnswered { turn, answer, at } => {
                self.check_asked(*turn)?;
                self.take_answer(answer.clone(), *at);
            }
            Event::ModelFailed {
                turn,
                kind,
                message,
                ..
            } => {
                self.check_asked(*turn)?;
                self.take_model_failure(*kind, message);
            }
            Event::Decided { call, decision, at } => self.take_decision(call, decision, *at)?,
            Event::CallStarted { call, at } => {
                let (_, decision) = self.call(call)?;
                if decision.map(Decision::verdict) != Some(Verdict::Allow) {
                    return Err(FoldError::NotAllowed(call.clone()));
                }
                self.advance(call, CallChange::Start, *at)?;
            }
            Event::CallEnded {
                call,
                end,
                usage,
                at,
            } => {
                let change = match end.clone() {
                    CallEnd::Success(result) => CallChange::Succeed(result),
                    CallEnd::Error(failure) => CallChange::Fail(failure),
                    CallEnd::Timeout(failure) => CallChange::TimeOut(failure),
                    CallEnd::Cancelled(failure) => CallChange::Cancel(failure),
                    CallEnd::Unknown(failure) => CallChange::LoseTrack(failure),
                };
                self.advance(call, change, *at)?;
                self.usage += *usage;
            }
            Event::Cancelled { .. } => {
                if self.end.is_some() {
                    return Err(FoldError::Ended);
                }
                self.end = Some(RunEnd::Cancelled);
            }
            Event::TimePassed { .. } => {}
        }
        // Clocks can be set back; a run's time cannot.
        self.now = self.now.max(event.at());
        if let Some(turn) = self.turns.last_mut().filter(|_| self.end.is_none()) {
            turn.ended_at = self.now;
        }
        self.settle();
        Ok(())
    }

    /// What to do now.
    #[must_use]
    pub fn next(&self) -> Next {
        if let Some(end) = &self.end {
            return Next::Done(end.clone());
        }
        let calls = self.ready_calls();
        if !calls.is_empty() {
            return Next::RunCalls(calls);
        }
        Next::CallModel(Box::new(self.request()))
    }

    /// What the gate decides about a call now.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn decide(
        &self,
        call: &CallId,
        is_enabled: &dyn Fn(&str) -> bool,
    ) -> Result<Decision, FoldError> {
        let (record, _) = self.call(call)?;
        let context = GateContext {
            agent: self.agent.name(),
            specification: self
                .specification(record.tool_name().as_str())
                .map(Arc::as_ref),
            is_enabled,
            calls_allowed: self.calls_allowed(),
            max_calls: self.settings.max_calls,
        };
        Ok(gate::decide(record, &context))
    }

    /// Leave to run a call whose start has been applied: each gets one.
    ///
    /// # Errors
    /// If the call is not about to run, or had its permit.
    pub fn permit(&mut self, call: &CallId) -> Result<Permit, PermitError> {
        let (record, _) = self
            .call(call)
            .map_err(|_| PermitError::UnknownCall(call.clone()))?;
        if record.state() != CallState::Running {
            return Err(PermitError::NotRunning {
                call: call.clone(),
                state: record.state(),
            });
        }
        let tool = record.tool_name().clone();
        let arguments = Value::Object(record.arguments().clone());
        if !self.permitted.insert(call.clone()) {
            return Err(PermitError::Given(call.clone()));
        }
        let arguments = match self.specification(tool.as_str()) {
            Some(specification) => specification.signature().with_defaults(&arguments),
            None => arguments,
        };
        Ok(Permit::mint(tool, arguments))
    }

    /// The turn the model is asked for next, or was asked for last if that has not been answered.
    #[must_use]
    pub fn current_turn(&self) -> Turn {
        self.turns
            .last()
            .map_or(Turn::FIRST, |turn| turn.turn.next())
    }

    /// A call and what the gate decided about it.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn call(&self, call: &CallId) -> Result<(&CallRecord, Option<&Decision>), FoldError> {
        let unknown = || FoldError::UnknownCall(call.clone());
        if call.run != self.id {
            return Err(unknown());
        }
        let turn = self
            .turns
            .get(call.turn.number() as usize - 1)
            .ok_or_else(unknown)?;
        match turn.entries.get(call.index as usize) {
            Some(Entry::Call { record, decision }) => Ok((record, decision.as_ref())),
            _ => Err(unknown()),
        }
    }

    /// How long the run may still go on at `now`; `None` if there is no limit.
    #[must_use]
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let limit = Duration::from_secs(self.settings.max_seconds?);
        let used = Duration::from_micros(now.microseconds_since(self.started_at));
        Some(limit.saturating_sub(used))
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

    /// Its limits.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is declared of a tool of the agent, or of a sub-agent as a model sees it.
    #[must_use]
    pub fn specification(&self, name: &str) -> Option<&Arc<ToolSpecification>> {
        let mut sub_agents = self.sub_agents.iter();
        self.agent
            .tool(name)
            .or_else(|| sub_agents.find(|agent| agent.name().as_str() == name))
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

    fn check_asked(&self, turn: Turn) -> Result<(), FoldError> {
        if self.end.is_some() {
            return Err(FoldError::Ended);
        }
        if turn != self.current_turn() || !self.ready_calls().is_empty() {
            return Err(FoldError::NotAsked(turn));
        }
        Ok(())
    }

    fn calls_allowed(&self) -> u32 {
        let allowed = self.turns.iter().flat_map(|turn| &turn.entries).filter(|entry| {
            matches!(entry, Entry::Call { decision: Some(decision), .. } if decision.verdict() == Verdict::Allow)
        });
        u32::try_from(allowed.count()).unwrap_or(u32::MAX)
    }

    fn take_model_failure(&mut self, kind: ModelErrorKind, message: &str) {
        let category = match kind {
            ModelErrorKind::ContextTooLong if self.shortenings < MAX_SHORTENINGS => {
                self.shortenings += 1;
                return;
            }
            ModelErrorKind::Cancelled => {
                self.end = Some(RunEnd::Cancelled);
                return;
            }
            ModelErrorKind::ContextTooLong => ErrorCategory::BudgetExceeded,
            ModelErrorKind::RateLimited => ErrorCategory::RateLimited,
            ModelErrorKind::Overloaded | ModelErrorKind::Unreachable => ErrorCategory::Unavailable,
            ModelErrorKind::Authentication => ErrorCategory::Authentication,
            ModelErrorKind::UnknownModel => ErrorCategory::NotFound,
            ModelErrorKind::Malformed => ErrorCategory::InvalidOutput,
            ModelErrorKind::Timeout => ErrorCategory::Timeout,
        };
        self.end = Some(RunEnd::Failed {
            category,
            message: message.to_owned(),
        });
    }

    fn take_decision(
        &mut self,
        call: &CallId,
        decision: &Decision,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let (_, earlier) = self.call(call)?;
        if earlier.is_some() {
            return Err(FoldError::DecidedTwice(call.clone()));
        }
        if let Some(failure) = decision.failure() {
            self.advance(call, CallChange::Fail(failure), at)?;
        }
        if let Some(Entry::Call {
            decision: place, ..
        }) = self.entry_mut(call)
        {
            *place = Some(decision.clone());
        }
        Ok(())
    }

    fn entry_mut(&mut self, call: &CallId) -> Option<&mut Entry> {
        let turn = self.turns.get_mut(call.turn.number() as usize - 1)?;
        turn.entries.get_mut(call.index as usize)
    }

    fn advance(
        &mut self,
        call: &CallId,
        change: CallChange,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        self.call(call)?;
        match self.entry_mut(call) {
            Some(Entry::Call { record, .. }) => record
                .advance(change, at)
                .map_err(|error| FoldError::Call(call.clone(), error)),
            _ => Err(FoldError::UnknownCall(call.clone())),
        }
    }

    /// Ends the run if what has happened ends it.
    fn settle(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.end = self.reached_end();
    }

    fn reached_end(&self) -> Option<RunEnd> {
        let seconds = self.now.microseconds_since(self.started_at) / 1_000_000;
        if self
            .settings
            .max_seconds
            .is_some_and(|limit| seconds >= limit)
            && self.answer.is_none()
        {
            return Some(RunEnd::Budget {
                budget: Budget::Time,
            });
        }
        if let Some(message) = self.too_long() {
            return Some(RunEnd::Failed {
                category: ErrorCategory::InvalidArguments,
                message,
            });
        }
        if !self.ready_calls().is_empty() {
            return None;
        }
        if self.answer.is_some() {
            return Some(RunEnd::Completed);
        }
        if self.mistaken_turns >= self.settings.max_mistaken_turns {
            let message = format!(
                "the model did nothing right in {} turns in a row; try another model, or `--dialect \
                 structured`",
                self.mistaken_turns
            );
            return Some(RunEnd::Failed {
                category: ErrorCategory::InvalidOutput,
                message,
            });
        }
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        if self
            .settings
            .max_tokens
            .is_some_and(|limit| tokens >= limit)
        {
            return Some(RunEnd::Budget {
                budget: Budget::Tokens,
            });
        }
        let money = self.usage.microdollars.unwrap_or(0);
        if self
            .settings
            .max_microdollars
            .is_some_and(|limit| money >= limit)
        {
            return Some(RunEnd::Budget {
                budget: Budget::Money,
            });
        }
        let turns = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        (turns >= self.settings.max_iterations).then_some(RunEnd::IterationLimit)
    }
}
