//! How events change a run.

use windlass_spec::{
    CallChange, CallId, CallState, Effect, ErrorCategory, Failure, Timestamp, Turn,
};

use super::event::{CallEnd, Event};
use super::gating::with_set;
use super::offer::Offer;
use super::outcome::{FoldError, RunEnd};
use super::settings::Budget;
use super::stand::{Held, Step};
use super::state::{Entry, Run};
use crate::approval::Principal;
use crate::gate::{Covered, Decision, Verdict};
use crate::model::ModelErrorKind;

/// How often a request may be shortened because the model found it too long.
const MAX_SHORTENINGS: u32 = 3;

impl Run {
    /// Takes the next event.
    ///
    /// # Errors
    /// If the event does not fit. The run is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        let was_idle = matches!(event, Event::Resumed { .. }) || self.is_waiting();
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
            Event::Offered {
                intent,
                tools,
                left_out,
                set,
                gap,
                ..
            } => {
                if self.end.is_some() {
                    return Err(FoldError::Ended);
                }
                self.offer_tools(Offer {
                    intent: intent.as_deref().cloned(),
                    tools: tools.clone(),
                    left_out: left_out.clone(),
                    set: set.clone(),
                    gap: gap.as_deref().cloned(),
                });
            }
            Event::Recalled { strategies, .. } => {
                if self.end.is_some() {
                    return Err(FoldError::Ended);
                }
                if self.recalled.is_some() || !self.turns.is_empty() {
                    return Err(FoldError::RecalledLate);
                }
                self.recalled = Some(strategies.clone());
            }
            Event::Decided { call, decision, at } => self.take_decision(call, decision, *at)?,
            Event::Asked { approval, .. } => self.take_question(approval)?,
            Event::Settled { approval, at } => self.take_settled(approval, *at)?,
            Event::Held {
                call,
                until,
                deferred,
                ..
            } => self.hold_call(call, *until, *deferred)?,
            Event::Released { call, .. } => self.hold_mut(call)?.is_released = true,
            Event::Undone { call, by, at } => self.undo_call(call, by, *at)?,
            Event::CallStarted { call, variant, at } => {
                let calls = match self.is_of_sub_agent(call) {
                    true => self.share_of_sub_agent(),
                    false => 0,
                };
                self.start_call(call, *at)?;
                if let Some(Entry::Call { stand, .. }) = self.entry_mut(call) {
                    stand.variant.clone_from(variant);
                    stand.calls = calls;
                }
            }
            Event::CallEnded {
                call,
                end,
                usage,
                calls,
                ran,
                tainted,
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
                if let Some(Entry::Call { stand, .. }) = self.entry_mut(call) {
                    stand.calls = *calls;
                    stand.is_from_outside |= *tainted;
                }
                // Another process may have gone on with another implementation.
                if let Some(variant) = ran.as_ref().and_then(|ran| ran.variant.as_ref())
                    && let Some(Entry::Call { stand, .. }) = self.entry_mut(call)
                {
                    stand.variant = Some(variant.clone());
                }
            }
            Event::Planned { call, plan, at } => self.take_plan(call, plan, *at)?,
            Event::Replanned { plan, tasks, .. } => {
                let known = self.plan_mut(plan)?;
                let replanned = known.replanned((**tasks).clone());
                *known = replanned.map_err(|error| FoldError::Replan(plan.clone(), error))?;
            }
            Event::TaskStarted {
                plan,
                task,
                attempt,
                at,
            } => {
                if self.end.is_some() {
                    return Err(FoldError::Ended);
                }
                let calls = self.share_of_task(plan, task);
                self.plan_mut(plan)?.start(task, *attempt, calls, *at)?;
                self.lend_to_task(calls);
            }
            Event::TaskEnded {
                plan,
                task,
                attempt,
                end,
                usage,
                calls,
                at,
            } => {
                let lent = self.plan_mut(plan)?.end(task, *attempt, end, *at)?;
                self.take_back_from_task(lent, *calls);
                self.usage += *usage;
            }
            Event::TaskMarked {
                plan,
                task,
                status,
                result,
                tainted,
                at,
                ..
            } => {
                let result = result.as_ref();
                let plan = self.plan_mut(plan)?;
                plan.mark(task, *status, result, *tainted, *at)?;
            }
            Event::Cancelled { .. } => {
                if self.end.is_some() {
                    return Err(FoldError::Ended);
                }
                self.end = Some(RunEnd::Cancelled);
            }
            Event::TimePassed { .. } | Event::Resumed { .. } => {}
        }
        if was_idle {
            self.waited += event.at().microseconds_since(self.now);
        }
        // Clocks can be set back; a run's time cannot.
        self.now = self.now.max(event.at());
        if let Some(turn) = self.turns.last_mut().filter(|_| self.end.is_none()) {
            turn.ended_at = self.now;
        }
        self.settle();
        Ok(())
    }

    fn check_asked(&self, turn: Turn) -> Result<(), FoldError> {
        if self.end.is_some() {
            return Err(FoldError::Ended);
        }
        if turn != self.current_turn() || self.has_open_calls() || self.is_finishing() {
            return Err(FoldError::NotAsked(turn));
        }
        Ok(())
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

    /// Takes a decision of the gate: the first, or a stricter one. A stricter one takes back what
    /// people and time had come to, because that was about another decision.
    fn take_decision(
        &mut self,
        call: &CallId,
        decision: &Decision,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let (record, earlier) = self.call(call)?;
        let tightens = |earlier: &Decision| {
            record.state() == CallState::Pending && self.is_stricter(call, earlier, decision)
        };
        if earlier.is_some_and(|earlier| !tightens(earlier)) {
            return Err(FoldError::DecidedTwice(call.clone()));
        }
        let set = decision.set();
        if !set.is_empty()
            && let Some(Entry::Call { record, stand, .. }) = self.entry_mut(call)
        {
            let before = record.arguments().clone();
            **record = with_set(record, set);
            stand.before_edit.get_or_insert(before);
        }
        if let Some(failure) = decision.failure() {
            self.advance(call, CallChange::Fail(failure), at)?;
        }
        if let Some(Covered::Request(granted)) = decision.covered_by() {
            self.grants.retain(|grant| grant.call != *granted);
        }
        if let Some(Entry::Call {
            decision: place,
            stand,
            ..
        }) = self.entry_mut(call)
        {
            *place = Some(Box::new(decision.clone()));
            stand.approved = None;
            stand.held = None;
        }
        Ok(())
    }

    fn start_call(&mut self, call: &CallId, at: Timestamp) -> Result<(), FoldError> {
        let entry = self.entry(call)?;
        let may_start = match self.step_of(entry) {
            Some(Step::Runs) => true,
            Some(Step::Held(until)) => at >= until,
            _ => false,
        };
        if !may_start {
            return Err(FoldError::NotAllowed(call.clone()));
        }
        self.advance(call, CallChange::Start, at)
    }

    fn hold_call(
        &mut self,
        call: &CallId,
        until: Timestamp,
        is_deferred: bool,
    ) -> Result<(), FoldError> {
        let refused = || FoldError::NotHeld(call.clone());
        let (record, decision) = self.call(call)?;
        let is_to_be_held = record.state() == CallState::Pending
            && decision.map(Decision::verdict) == Some(Verdict::Hold);
        match self.entry_mut(call) {
            Some(Entry::Call { stand, .. }) if is_to_be_held && stand.held.is_none() => {
                stand.held = Some(Held {
                    until,
                    is_released: false,
                    is_deferred,
                });
                self.has_deferred |= is_deferred;
                Ok(())
            }
            _ => Err(refused()),
        }
    }

    /// The hold of a call that has not started.
    fn hold_mut(&mut self, call: &CallId) -> Result<&mut Held, FoldError> {
        let refused = || FoldError::NotHeld(call.clone());
        let (record, _) = self.call(call)?;
        if record.state() != CallState::Pending {
            return Err(refused());
        }
        match self.entry_mut(call) {
            Some(Entry::Call { stand, .. }) => stand.held.as_mut().ok_or_else(refused),
            _ => Err(refused()),
        }
    }

    fn undo_call(&mut self, call: &CallId, by: &Principal, at: Timestamp) -> Result<(), FoldError> {
        self.hold_mut(call)?;
        let message = format!(
            "{by} undid this call before it ran; it did nothing. Do not make it again unless the \
             person who gave the task says so."
        );
        let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
        self.advance(call, CallChange::Cancel(failure), at)
    }

    pub(super) fn entry_mut(&mut self, call: &CallId) -> Option<&mut Entry> {
        let turn = self.turns.get_mut(call.turn.number() as usize - 1)?;
        turn.entries.get_mut(call.index as usize)
    }

    pub(super) fn advance(
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

    /// Ends the run if what has happened ends it. While calls are yet to run later it does not end,
    /// unless its time is up.
    pub(super) fn settle(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.end = self.reached_end().filter(|end| {
            let is_out_of_time = matches!(
                end,
                RunEnd::Budget {
                    budget: Budget::Time
                }
            );
            is_out_of_time || !self.has_deferred_calls()
        });
    }

    /// Whether the run ends as soon as the calls that run later have.
    pub(super) fn is_finishing(&self) -> bool {
        self.end.is_none() && self.has_deferred_calls() && self.reached_end().is_some()
    }

    fn reached_end(&self) -> Option<RunEnd> {
        let seconds = self.time_used(self.now).as_secs();
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
        if self.has_open_calls() {
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
