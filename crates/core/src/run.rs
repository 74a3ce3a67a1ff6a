//! The run machine: one agent, one task, from the first turn to the end.
//!
//! A run is a fold: its state depends only on its events. [`Run::apply`] applies the next event,
//! [`Run::next`] returns what to do now. Drivers do it (ask the model, run the calls) and append the
//! result as further events. The machine reads no clock and uses no randomness, so the same events
//! always give the same state, the same requests and the same end.
//!
//! A run is made of parts, each in its own module with private fields: `toolbox` (the agent and its
//! tools), `calls` (turns and calls, each with its `progress`), `history` (what is remembered of the turns
//! that have ended), `grants` (authorizations for later calls), `plan` (plans and their tasks), `allowance`
//! (limits and usage) and `transcript` (the conversation with the model). Each part applies events by its own `apply`. [`Run::apply`] calls them
//! and passes on what one part must know of another. What needs several parts is a method of [`Run`]:
//! `gating` (the gate), `people` (questions), `sub_agent` and `plan::work` (runs that work for this one),
//! `answer` and `context` (what is reported about it).
//!
//! Only `calls` and `plans` can refuse an event, and no event changes both. So a refused event leaves the run
//! unchanged.

mod allowance;
mod answer;
mod calls;
mod context;
mod damage;
mod doubt;
mod event;
mod exchange;
mod gating;
mod grants;
mod history;
mod mistake;
mod outcome;
mod outside;
mod people;
mod plan;
mod progress;
mod reading;
mod repair;
mod retry;
mod reuse;
mod settings;
mod single;
mod sub_agent;
mod tool_question;
mod toolbox;
mod transcript;
mod untrusted;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::registry::Permission;
use windlass_spec::{
    Agent, CallId, CallRecord, ErrorCategory, RiskLevel, RunId, Timestamp, ToolName,
    ToolSpecification, Turn,
};

use crate::approval::Approval;
use crate::gate::Decision;
use crate::model::{ModelErrorKind, Usage};
use crate::stop::StopOrder;

use allowance::Allowance;
use calls::Calls;
use damage::Damage;
use grants::Grants;
use history::History;
use plan::Plans;
use progress::Step;
use reading::{Reader, TurnSummary};
use toolbox::Toolbox;
use transcript::Transcript;

pub use crate::catalog::{CallKind, PlanOperation};
pub use crate::gate::PermitError;
pub use answer::Answer;
pub use calls::is_refused_by_person;
pub use calls::{Entry, TurnState};
pub use event::{
    CallEnd, DisabledTool, Event, ExecutedTool, IntentAdvice, LeftOut, LeftOutReason, OutsideCall,
    RecalledStrategy, Task, Variant,
};
pub use mistake::{Mistake, MistakeKind};
pub use outcome::{FoldError, Next, RunEnd, Waiting};
pub use people::{GateStep, undecidable};
pub use plan::{
    CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, PlanState, PlanTaskStatus, ReplanError, TaskEnd,
    TaskState, UPDATE_TASK_STATUS,
};
pub use progress::{ApprovalProof, CallProgress, FormReply};
pub use repair::{NotJson, repair_json};
pub use settings::{Budget, Settings};
pub use tool_question::{QuestionSubject, ToolQuestion};
pub use toolbox::{Offer, tool_search_result};
pub use transcript::{
    ALTERNATIVES, INTENT_HEADING, NO_TOOL_NOTE, OBSERVATIONS_HEADING, PITFALLS_HEADING,
    STRATEGIES_HEADING, without_learned,
};
pub use windlass_spec::reserved::{ASK_HUMAN, FIND_TOOLS, REQUEST_AUTHORIZATION};

/// The state of a run, folded from its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    id: RunId,
    assembly: Map<String, Value>,
    /// Files that changed and were accepted when the run was resumed, each with its digest.
    accepted_files: BTreeMap<String, String>,
    parent: Option<CallId>,
    /// The permissions it may hold at most: those of the run that delegated the work. `None` means no
    /// limit.
    inherited: Option<BTreeSet<Permission>>,
    task: Task,
    toolbox: Toolbox,
    calls: Calls,
    history: History,
    grants: Grants,
    plans: Plans,
    allowance: Allowance,
    transcript: Transcript,
    end: Option<RunEnd>,
    /// What the journal lost, if it did.
    damage: Option<Damage>,
    /// What the process that drives the run suspended it for. Not part of the fold.
    left_waiting: Option<RunEnd>,
    /// The stop that the driving process suspended the run for. Not part of the fold.
    stopped: Option<StopOrder>,
}

impl Run {
    /// Folds a journal.
    ///
    /// # Errors
    /// If an event does not fit. The journal is then damaged or belongs to another run.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Result<Self, FoldError> {
        let mut folded = FoldedRun::new(KeptTurns::All);
        for event in events {
            folded.apply(event)?;
        }
        folded.finish()
    }

    /// The run that its first event starts.
    fn started(event: &Event) -> Result<Self, FoldError> {
        let Event::Started {
            run,
            agent,
            agents,
            assembly,
            parent,
            holds,
            task,
            settings,
            at,
        } = event
        else {
            return Err(FoldError::NotStarted);
        };
        let mut state = Self {
            id: run.clone(),
            assembly: assembly.clone(),
            accepted_files: BTreeMap::new(),
            parent: parent.clone(),
            inherited: holds.clone(),
            task: task.clone(),
            toolbox: Toolbox::new(agent, agents, task, settings),
            calls: Calls::new(run.clone()),
            history: History::default(),
            grants: Grants::default(),
            plans: Plans::default(),
            allowance: Allowance::new(settings.clone(), *at),
            transcript: Transcript::new(settings, task),
            end: None,
            damage: None,
            left_waiting: None,
            stopped: None,
        };
        state.set_system();
        state.settle();
        Ok(state)
    }

    /// Replaces the run with `folded`, which is the same run as its stored events give it. Permits that were
    /// issued stay issued: they are not part of the fold.
    pub fn restore(&mut self, mut folded: Self) {
        folded.calls.take_permits_of(&mut self.calls);
        folded.left_waiting = self.left_waiting.take();
        folded.stopped = self.stopped.take();
        *self = folded;
    }

    /// Returns what to do now.
    #[must_use]
    pub fn next(&self) -> Next {
        self.next_without_model().unwrap_or_else(|| {
            let request = self
                .transcript
                .request(self.calls.open_turns(), self.toolbox.shown());
            Next::CallModel(Box::new(request))
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

    /// Records that the driving process suspends the run to wait, such as for a person, possibly for one that a sub-agent
    /// asks.
    pub fn mark_waiting(&mut self, waiting: RunEnd) {
        self.left_waiting = Some(waiting);
    }

    /// Returns the end of the run, or what it waits for if the driving process suspended it. `None` if it can be
    /// resumed at once.
    #[must_use]
    pub fn end_or_waiting(&self) -> Option<RunEnd> {
        self.end.clone().or_else(|| self.left_waiting.clone())
    }

    /// Records that the driving process suspended the run because an operator stopped it.
    pub fn mark_stopped(&mut self, stop: StopOrder) {
        self.stopped = Some(stop);
    }

    /// The stop that the driving process suspended the run for, if it did.
    #[must_use]
    pub fn stopped(&self) -> Option<&StopOrder> {
        self.stopped.as_ref().filter(|_| self.end.is_none())
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

    /// The files that had changed when the run was resumed and that the user accepted, each with its digest.
    #[must_use]
    pub fn accepted_files(&self) -> &BTreeMap<String, String> {
        &self.accepted_files
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

    /// Whether the agent gave an answer, however the run ended.
    #[must_use]
    pub fn has_answered(&self) -> bool {
        self.transcript.answer().is_some()
    }

    /// How the run ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }
}

/// Applying events. What one part needs to know of the others is found before anything changes, and passed to it
/// here. The end of the run follows from the result.
impl Run {
    /// Applies the next event.
    ///
    /// # Errors
    /// If the event does not fit. The run is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.check(event)?;
        let was_idle = matches!(event, Event::Resumed { .. }) || self.is_waiting();
        let end = self.end_by(event);
        let share = self.share_for(event);
        let (turn, summary) = self.read_answer(event).unzip();

        let now = self.allowance.now();
        let show = |value: &_| self.transcript.shown(value);
        let grant = self.calls.apply(event, turn, now, &self.history, show)?;
        let returned = self.plans.apply(event, share)?;
        // The other parts refuse nothing.
        self.grants.apply(event, grant);
        self.toolbox.apply(event);
        self.transcript.apply(event, summary);
        if let Event::Resumed { accepted, .. } = event {
            self.accepted_files.extend(accepted.clone());
        }
        if let Event::JournalDamaged { reason, .. } = event {
            self.note_damage(reason);
        }
        let last_turn = self.calls.last_turn();
        self.allowance
            .apply(event, was_idle, last_turn, share.or(returned));
        self.end = end.or(self.end.take());

        if self.end.is_none() {
            self.calls.extend_turn(self.allowance.now());
        }
        self.update_shown(event);
        self.end_turns();
        self.settle();
        Ok(())
    }

    /// Makes the messages again that an event has changed.
    fn update_shown(&mut self, event: &Event) {
        match event {
            Event::Offered { .. } | Event::Recalled { .. } => self.set_system(),
            Event::ModelFailed { .. } => {
                let ended = self.calls.ended_after(self.transcript.left_out());
                self.transcript.show_again(ended);
            }
            _ => {}
        }
    }

    /// Sets the system prompt, after something in it has changed.
    pub(super) fn set_system(&mut self) {
        let (agent, missing) = (self.toolbox.agent(), self.toolbox.missing());
        let can_ask = self.toolbox.can_ask();
        let transcript = &mut self.transcript;
        transcript.set_system(agent, &self.task, &missing, can_ask);
    }

    /// Takes the turns into the history whose calls are all over, and leaves out what the model is not shown
    /// any more.
    fn end_turns(&mut self) {
        let now = self.allowance.now();
        while let Some(turn) = self.calls.next_over(now) {
            for entry in &turn.entries {
                let untrusted = self.untrusted_content(entry).map(Cow::into_owned);
                self.history.apply(turn.turn, entry, untrusted.as_ref());
            }
            self.transcript.end_turn(turn);
            self.allowance.end_turn(turn.turn);
            self.calls.end_turn();
        }
        if !self.calls.has_open(now) {
            self.transcript.leave_out(self.calls.open_turns());
        }
    }

    /// Refuses an event that does not fit the run as a whole. What concerns only calls or plans, they
    /// check themselves: a call can end after its run.
    fn check(&self, event: &Event) -> Result<(), FoldError> {
        match event {
            Event::Started { .. } => Err(FoldError::StartedTwice),
            Event::ModelAnswered { turn, .. } | Event::ModelFailed { turn, .. } => {
                self.check_asked(*turn)
            }
            Event::Recalled { .. } => {
                self.check_not_ended()?;
                match self.recalled().is_none() && self.turns().is_empty() {
                    true => Ok(()),
                    false => Err(FoldError::RecalledLate),
                }
            }
            Event::Offered { .. }
            | Event::TaskStarted { .. }
            | Event::Cancelled { .. }
            | Event::BudgetReached { .. } => self.check_not_ended(),
            Event::CostReported { call, .. } => self.calls.call(call).map(drop),
            Event::Decided { .. }
            | Event::Asked { .. }
            | Event::Settled { .. }
            | Event::Held { .. }
            | Event::Released { .. }
            | Event::Undone { .. }
            | Event::CallStarted { .. }
            | Event::CallEnded { .. }
            | Event::CallRetried { .. }
            | Event::Reused { .. }
            | Event::Planned { .. }
            | Event::Replanned { .. }
            | Event::TaskEnded { .. }
            | Event::TaskMarked { .. }
            | Event::Resumed { .. }
            | Event::JournalDamaged { .. }
            | Event::TimePassed { .. } => Ok(()),
        }
    }

    fn check_not_ended(&self) -> Result<(), FoldError> {
        match self.end {
            Some(_) => Err(FoldError::Ended),
            None => Ok(()),
        }
    }

    fn check_asked(&self, turn: Turn) -> Result<(), FoldError> {
        self.check_not_ended()?;
        let is_busy = self.calls.has_open(self.allowance.now()) || self.is_finishing();
        if turn != self.current_turn() || is_busy {
            return Err(FoldError::NotAsked(turn));
        }
        Ok(())
    }

    /// Reads the model's answer against the run as it was when the model was asked.
    fn read_answer(&self, event: &Event) -> Option<(TurnState, TurnSummary)> {
        let Event::ModelAnswered { answer, at, .. } = event else {
            return None;
        };
        let reader = Reader {
            toolbox: &self.toolbox,
            calls: &self.calls,
            history: &self.history,
            transcript: &self.transcript,
            max_calls_per_turn: self.settings().max_calls_per_turn,
            reuses_results: self.settings().reuse_results,
            asked_at: self.allowance.now(),
            at: *at,
        };
        Some(reader.read(answer.clone()))
    }

    /// The calls to lend to the run that an event starts, if it starts one. They are computed while the
    /// call or task still counts among those that have not started.
    fn share_for(&self, event: &Event) -> Option<u32> {
        match event {
            Event::CallStarted { call, .. } => {
                let is_sub_agent = self.kind(call) == Some(CallKind::SubAgent);
                is_sub_agent.then(|| self.share_of_sub_agent())
            }
            Event::TaskStarted { plan, task, .. } => Some(self.share_of_task(plan, task)),
            _ => None,
        }
    }

    /// The end of the run that an event states, if it does.
    fn end_by(&self, event: &Event) -> Option<RunEnd> {
        let (kind, message) = match event {
            Event::Cancelled { .. } => return Some(RunEnd::Cancelled),
            Event::ModelFailed { kind, message, .. } => (*kind, message),
            _ => return None,
        };
        let category = match kind {
            ModelErrorKind::Cancelled => return Some(RunEnd::Cancelled),
            ModelErrorKind::ContextTooLong if self.transcript.can_shorten() => return None,
            ModelErrorKind::ContextTooLong => ErrorCategory::BudgetExceeded,
            ModelErrorKind::RateLimited => ErrorCategory::RateLimited,
            ModelErrorKind::Overloaded | ModelErrorKind::Unreachable => ErrorCategory::Unavailable,
            ModelErrorKind::Authentication => ErrorCategory::Authentication,
            ModelErrorKind::UnknownModel => ErrorCategory::NotFound,
            ModelErrorKind::Malformed => ErrorCategory::InvalidOutput,
            ModelErrorKind::Timeout => ErrorCategory::Timeout,
        };
        Some(RunEnd::Failed {
            category,
            message: message.clone(),
        })
    }

    /// Ends the run if its events end it. While deferred calls are open it does not end, unless its time
    /// is up.
    pub(super) fn settle(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.end = self.reached_end().filter(|end| {
            let is_out_of_time = matches!(
                end,
                RunEnd::Budget {
                    budget: Budget::Time,
                    ..
                }
            );
            is_out_of_time || !self.calls.has_deferred(self.allowance.now())
        });
    }

    /// Whether the run ends as soon as its deferred calls have.
    pub(super) fn is_finishing(&self) -> bool {
        self.end.is_none()
            && self.calls.has_deferred(self.allowance.now())
            && self.reached_end().is_some()
    }

    /// The end of a run that answered, if it did not do its task: its only call failed, or an approver rejected a
    /// call and no later call succeeded.
    fn failed_end(&self) -> Option<RunEnd> {
        if !self.settings().rejection_fails {
            return None;
        }
        if self.task.call.is_some() && !self.is_plan_only() {
            let failure = self.single_outcome()?.err()?;
            return Some(RunEnd::Failed {
                category: failure.category,
                message: failure.operator_message,
            });
        }
        self.final_rejection().map(|message| RunEnd::Failed {
            category: ErrorCategory::Rejected,
            message,
        })
    }

    /// The call that an approver rejected, if no later call succeeded.
    fn final_rejection(&self) -> Option<String> {
        let mut rejection = self.history.rejection().clone();
        self.calls
            .open_entries()
            .for_each(|entry| rejection.add(entry));
        rejection.message()
    }

    fn reached_end(&self) -> Option<RunEnd> {
        let is_answered = self.transcript.answer().is_some();
        if self.allowance.is_out_of_time() && !is_answered {
            return Some(RunEnd::Budget {
                budget: Budget::Time,
                message: None,
            });
        }
        if let Some(message) = self.transcript.too_long(&self.task) {
            return Some(RunEnd::Failed {
                category: ErrorCategory::InvalidArguments,
                message,
            });
        }
        if self.calls.has_open(self.allowance.now()) {
            return None;
        }
        if is_answered {
            return Some(self.failed_end().unwrap_or(RunEnd::Completed));
        }
        let mistaken_turns = self.transcript.mistaken_turns();
        if mistaken_turns >= self.settings().max_mistaken_turns {
            let message = format!(
                "the model did nothing right in {mistaken_turns} turns in a row; try another model, \
                 or `--dialect structured`"
            );
            return Some(RunEnd::Failed {
                category: ErrorCategory::InvalidOutput,
                message,
            });
        }
        if let Some(end) = self.allowance.used_up() {
            return Some(end);
        }
        let turns = u32::try_from(self.calls.turn_count()).unwrap_or(u32::MAX);
        (turns >= self.settings().max_iterations).then_some(RunEnd::IterationLimit)
    }
}

/// Which turns of a run are kept while its events are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptTurns {
    /// All, to report what happened.
    All,
    /// Those that may still change or that the model is shown, to continue the run: see
    /// [`Run::release_turns`].
    Shown,
}

/// A run that is folded event by event, for journals that are too long to be in memory at once.
#[derive(Debug)]
pub struct FoldedRun {
    run: Option<Run>,
    kept: KeptTurns,
}

impl FoldedRun {
    /// A run without events.
    #[must_use]
    pub fn new(kept: KeptTurns) -> Self {
        Self { run: None, kept }
    }

    /// Applies the next event.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        match &mut self.run {
            None => self.run = Some(Run::started(event)?),
            Some(run) => {
                run.apply(event)?;
                if self.kept == KeptTurns::Shown {
                    run.release_turns();
                }
            }
        }
        Ok(())
    }

    /// The run.
    ///
    /// # Errors
    /// If there were no events.
    pub fn finish(self) -> Result<Run, FoldError> {
        self.run.ok_or(FoldError::NotStarted)
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
        let mut names = self.history.found_tools().to_vec();
        for entry in self.calls.open_entries() {
            history::add_found_tools(&mut names, entry);
        }
        names
    }
}

/// The turns and calls of the run.
impl Run {
    /// The turns so far, without those that [`Run::release_turns`] dropped.
    #[must_use]
    pub fn turns(&self) -> &[TurnState] {
        self.calls.turns()
    }

    /// How many turns there are so far, including those that were dropped.
    #[must_use]
    pub fn turn_count(&self) -> usize {
        self.calls.turn_count()
    }

    /// Whether turns were dropped.
    #[must_use]
    pub fn has_released_turns(&self) -> bool {
        self.calls.turn_count() > self.calls.turns().len()
    }

    /// The calls that failed because their tool does not exist or is not configured: the first of each tool
    /// in the turns that have ended, and all in the others.
    pub fn missing_tool_entries(&self) -> impl Iterator<Item = &Entry> {
        let open = self.calls.open_entries();
        let open = open.filter(|entry| history::missing_tool(entry).is_some());
        self.history.missing_tools().iter().chain(open)
    }

    /// Drops turns that have ended and that the model is not shown any more. What the run does next stays the
    /// same; what is reported about it has to be read back from its journal.
    pub fn release_turns(&mut self) {
        self.calls.drop_turns(self.transcript.left_out());
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
        self.may_be_repeated_at(call, RiskLevel::Reversible)
    }

    /// As [`Run::may_be_repeated`], if the call is at least as risky as this.
    #[must_use]
    pub fn may_be_repeated_at(&self, call: &CallId, assessed: RiskLevel) -> bool {
        self.entry(call)
            .is_ok_and(|entry| entry.may_be_repeated_at(assessed))
    }

    /// The questions that wait for a person.
    pub fn questions(&self) -> impl Iterator<Item = &Approval> {
        self.calls.open_entries().filter_map(|entry| match entry {
            Entry::Call { progress, .. } => progress.question(),
            Entry::Mistake { .. } | Entry::Finish => None,
        })
    }

    /// The calls that are held, each with the end of its undo window.
    pub fn held_calls(&self) -> impl Iterator<Item = (&CallRecord, Timestamp)> {
        let now = self.allowance.now();
        self.calls
            .open_entries()
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
        let own = self.own_calls();
        own.saturating_add(self.allowance.calls_of_others())
    }

    /// How many calls are left for a run that starts now.
    fn calls_left(&self) -> u32 {
        self.allowance.calls_left(self.own_calls())
    }

    /// How many calls of its own the run has used, including those that have not run yet.
    fn own_calls(&self) -> u32 {
        self.history.used_calls() + self.calls.used_open_calls()
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
