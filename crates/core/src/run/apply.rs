//! Applies events to a run. Each event goes to the parts it concerns; the end of the run follows from
//! the result. Every event is checked before it changes anything, so a refused event leaves the run
//! unchanged.

use windlass_spec::{ErrorCategory, Timestamp, Turn};

use super::event::Event;
use super::outcome::{FoldError, RunEnd};
use super::reading::Reader;
use super::settings::Budget;
use super::toolbox::Offer;
use super::{CallKind, Run};
use crate::gate::PriorApproval;
use crate::model::{ModelAnswer, ModelErrorKind};

impl Run {
    /// Applies the next event.
    ///
    /// # Errors
    /// If the event does not fit. The run is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        let was_idle = matches!(event, Event::Resumed { .. }) || self.is_waiting();
        self.change(event)?;
        self.allowance.pass_time(event.at(), was_idle);
        if self.end.is_none() {
            self.calls.extend_turn(self.allowance.now());
        }
        self.settle();
        Ok(())
    }

    /// Sends an event to the parts it concerns. In each arm, what can fail comes before any change to
    /// another part.
    fn change(&mut self, event: &Event) -> Result<(), FoldError> {
        let now = self.allowance.now();
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
                self.check_not_ended()?;
                self.toolbox.apply(Offer {
                    intent: intent.as_deref().cloned(),
                    tools: tools.clone(),
                    left_out: left_out.clone(),
                    set: set.clone(),
                    gap: gap.as_deref().cloned(),
                });
            }
            Event::Recalled { strategies, .. } => {
                self.check_not_ended()?;
                if self.recalled().is_some() || !self.turns().is_empty() {
                    return Err(FoldError::RecalledLate);
                }
                self.transcript.recall(strategies);
            }
            Event::Decided { call, decision, at } => {
                self.calls.decide(call, decision, *at)?;
                if let Some(PriorApproval::Request(granted)) = decision.covered_by() {
                    self.grants.use_up(granted);
                }
            }
            Event::Asked { approval, .. } => {
                self.calls.entry(approval.call())?;
                self.calls.ask((**approval).clone(), now)?;
            }
            Event::Settled { approval, at } => {
                let show = |value: &_| self.transcript.shown(value);
                if let Some(grant) = self.calls.settle(approval, *at, show)? {
                    self.grants.add(grant);
                }
            }
            Event::Held {
                call,
                until,
                deferred,
                ..
            } => self.calls.hold(call, *until, *deferred)?,
            Event::Released { call, .. } => self.calls.release(call)?,
            Event::Undone { call, by, at } => self.calls.undo(call, by, *at)?,
            Event::CallStarted { call, variant, at } => {
                // The share is computed while this call still counts among those that have not started.
                let is_sub_agent = self.kind(call) == Some(CallKind::SubAgent);
                let share = is_sub_agent.then(|| self.share_of_sub_agent());
                self.calls.start(call, variant.as_ref(), now, *at)?;
                if let Some(share) = share {
                    self.allowance.lend(call, share);
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
                let variant = ran.as_ref().and_then(|ran| ran.variant.as_ref());
                self.calls.end(call, end, variant, *tainted, *at)?;
                self.allowance.take_back(call, *calls);
                self.allowance.spend(*usage);
            }
            Event::Planned { call, plan, at } => {
                if !self.calls.is_creating_plan(call)? {
                    return Err(FoldError::NoPlan(call.clone()));
                }
                self.plans.create(call, plan, *at)?;
            }
            Event::Replanned { plan, tasks, .. } => self.plans.replan(plan, tasks)?,
            Event::TaskStarted {
                plan,
                task,
                attempt,
                at,
            } => {
                self.check_not_ended()?;
                let share = self.share_of_task(plan, task);
                self.plans.start_task(plan, task, *attempt, share, *at)?;
                self.allowance.lend_to_task(self.calls.last_turn(), share);
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
                let lent = self.plans.end_task(plan, task, *attempt, end, *at)?;
                let turn = self.calls.last_turn();
                self.allowance.take_back_from_task(turn, lent, *calls);
                self.allowance.spend(*usage);
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
                self.plans
                    .mark_task(plan, task, *status, result, *tainted, *at)?;
            }
            Event::Cancelled { .. } => {
                self.check_not_ended()?;
                self.end = Some(RunEnd::Cancelled);
            }
            Event::TimePassed { .. } | Event::Resumed { .. } => {}
        }
        Ok(())
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

    fn take_answer(&mut self, answer: ModelAnswer, at: Timestamp) {
        let usage = answer.usage;
        let reader = Reader {
            toolbox: &self.toolbox,
            calls: &self.calls,
            transcript: &self.transcript,
            max_calls_per_turn: self.settings().max_calls_per_turn,
            asked_at: self.allowance.now(),
            at,
        };
        let read = reader.read(answer);
        let has_calls = read.turn.entries.iter().any(|entry| entry.call().is_some());
        self.allowance.spend(usage);
        self.transcript.apply(has_calls, read.mistakes, read.answer);
        self.calls.push(read.turn);
    }

    fn take_model_failure(&mut self, kind: ModelErrorKind, message: &str) {
        if kind == ModelErrorKind::ContextTooLong && self.transcript.shorten() {
            return;
        }
        let category = match kind {
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
                    budget: Budget::Time
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

    fn reached_end(&self) -> Option<RunEnd> {
        let is_answered = self.transcript.answer().is_some();
        if self.allowance.is_out_of_time() && !is_answered {
            return Some(RunEnd::Budget {
                budget: Budget::Time,
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
            return Some(RunEnd::Completed);
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
        if let Some(budget) = self.allowance.used_up() {
            return Some(RunEnd::Budget { budget });
        }
        let turns = u32::try_from(self.turns().len()).unwrap_or(u32::MAX);
        (turns >= self.settings().max_iterations).then_some(RunEnd::IterationLimit)
    }
}
